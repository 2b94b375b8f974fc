/** One clock for every age on the page: it ticks while somebody looks. */
import { useSyncExternalStore } from 'react'

const TICK_MS = 5_000
const listeners = new Set<() => void>()
let now = Date.now()
let timer: ReturnType<typeof setInterval> | undefined

function tick(): void {
  now = Date.now()
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  if (timer === undefined) {
    timer = setInterval(tick, TICK_MS)
    tick()
  }
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

/** The time in ms, renewed every few seconds. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now)
}
