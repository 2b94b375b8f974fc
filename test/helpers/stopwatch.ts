/**
 * Measures the duration of a step on a busy machine. Time in which this process did not run is not counted,
 * so that an upper limit can be tight.
 */
const TICK_MS = 5
/** Time between two ticks above this limit is not counted. */
const MOST_MS = 2 * TICK_MS

/** The milliseconds of CPU time that this process has used since the call. */
export function cpuWatch(): () => number {
  const began = process.cpuUsage()
  return () => {
    const { user, system } = process.cpuUsage(began)
    return (user + system) / 1000
  }
}

/** Starts the watch; the returned function stops it and returns the milliseconds. */
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
