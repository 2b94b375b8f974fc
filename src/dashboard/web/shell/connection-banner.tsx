/** Shows that the connection is lost and the age of the figures, and polls until it is restored. */
import { useEffect } from 'react'
import { read } from '../api/endpoints.js'
import { clearFailures, useConnection } from '../api/connection-state.js'
import { clockTime } from '../format/time.js'
import { useLocation } from '../routing/location.js'

const EVERY_MS = 2_000

/** A line at the head of the page while no replies arrive. */
export function ConnectionBanner() {
  const { isLost, lastAtMs } = useConnection()
  const { path } = useLocation()
  useEffect(() => clearFailures(), [path])
  useEffect(() => {
    if (!isLost) return undefined
    const timer = setInterval(() => {
      // The call itself records its result.
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
