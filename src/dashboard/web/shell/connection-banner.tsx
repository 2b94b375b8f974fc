/** Says that the connection is lost and how old the figures are; asks until it is back. */
import { useEffect } from 'react'
import { read } from '../api/endpoints.js'
import { clearFailures, useConnection } from '../api/connection.js'
import { clockTime } from '../format/time.js'
import { useLocation } from '../routing/location.js'

const EVERY_MS = 2_000

/** A line at the head of the page while no replies come; nothing else. */
export function ConnectionBanner() {
  const { isLost, lastAtMs } = useConnection()
  const { path } = useLocation()
  useEffect(() => clearFailures(), [path])
  useEffect(() => {
    if (!isLost) return undefined
    const timer = setInterval(() => {
      // How it ended is noted by the call itself.
      read('/session', {}, { passive: true }).catch(() => undefined)
    }, EVERY_MS)
    return () => clearInterval(timer)
  }, [isLost])
  return (
    <div role="status" className={isLost ? 'connection' : 'unseen'}>
      {isLost ? (
        <>
          <b>Reconnecting…</b> Figures are as of {clockTime(lastAtMs)}.
        </>
      ) : null}
    </div>
  )
}
