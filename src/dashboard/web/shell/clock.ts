/** A shared clock for all ages on the page; it runs while the page is visible. */
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

/** The current time in ms, updated every few seconds. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now)
}
