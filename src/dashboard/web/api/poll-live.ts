/** Polls the latest requests each second while the page is visible. */
import { useEffect, useRef } from 'react'
import type { LiveReply } from '../../server/schema/schema.js'
import { useResource } from './load-resource.js'

const EVERY_MS = 1_000
/** Minimum interval between reloads of sums, which cost the server more than the latest requests. */
const AGAIN_AFTER_MS = 2_000

/** The latest requests and the sums of this hour; null before the first reply. */
export function useLive(account: string | null, enabled: boolean): LiveReply | null {
  const { data } = useResource('/live', { account }, { everyMs: EVERY_MS, enabled })
  return enabled ? data : null
}

/** Calls `act` after new requests, at most once per interval. */
export function useOnTraffic(live: LiveReply | null, act: () => void): void {
  const latest = useRef(act)
  latest.current = act
  const seen = useRef<string | null>(null)
  const lastMs = useRef(0)
  const mark = live === null ? null : `${live.hour.startMs} ${live.hour.requests}`
  useEffect(() => {
    if (mark === null || mark === seen.current) return undefined
    const first = seen.current === null
    seen.current = mark
    if (first) return undefined
    const wait = Math.max(0, lastMs.current + AGAIN_AFTER_MS - Date.now())
    const timer = setTimeout(() => {
      lastMs.current = Date.now()
      latest.current()
    }, wait)
    return () => clearTimeout(timer)
  }, [mark])
}
