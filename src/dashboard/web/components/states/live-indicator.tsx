/** Shows whether the view is updated live. */
import { useConnection } from '../../api/connection-state.js'

/** A dot and a word: `live`, `paused` while the connection is lost, or `fixed range` for a past range. */
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
