/**
 * Measures what something took, for an upper limit, on a machine that has other work: time in which this
 * process was not run is the machine's and does not count, so a limit need not be generous to be safe.
 * Knows nothing of what is measured.
 */
const TICK_MS = 5
/** What lies between two ticks beyond this, the machine took. */
const MOST_MS = 2 * TICK_MS

/** Starts; what it returns stops it and tells the milliseconds, never more than have gone by. */
export function stopwatch(): () => number {
  let countedMs = 0
  let lastMs = performance.now()
  const count = (): void => {
    const nowMs = performance.now()
    countedMs += Math.min(nowMs - lastMs, MOST_MS)
    lastMs = nowMs
  }
  const ticks = setInterval(count, TICK_MS).unref()
  return () => {
    clearInterval(ticks)
    count()
    return countedMs
  }
}
