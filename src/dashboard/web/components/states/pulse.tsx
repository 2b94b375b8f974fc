/** Whether the view is updated as requests come in. */
import { useConnection } from '../../api/connection.js'

/** A dot and a word: `live`, `paused` while the connection is lost, `fixed range` for a time that is over. */
export function Pulse({ on }: { readonly on: boolean }) {
  const { isLost } = useConnection()
  const isLive = on && !isLost
  return (
    <span
      className={isLive ? 'pulse on' : 'pulse'}
      title={isLive ? 'Updated every second' : on ? 'The connection is lost' : 'Not updated'}
    >
      {isLive ? 'live' : on ? 'paused' : 'fixed range'}
      <span className="pulse-dot" aria-hidden="true" />
    </span>
  )
}
