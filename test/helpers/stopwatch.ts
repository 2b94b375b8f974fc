/**
 * Measures the duration of a step on a busy machine. Time in which this process did not run, or in which no
 * core was idle, is not counted, so that an upper limit can be tight: a step that takes long because other
 * work has the cores is not slow.
 */
import { cpus } from 'node:os'

const TICK_MS = 5
/** Time between two ticks above this limit is not counted. */
const MOST_MS = 2 * TICK_MS
/** At least this part of the time is counted on a machine without an idle core. */
const LEAST_PART = 0.1

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
  const idleBefore = idleMs()
  const count = (): void => {
    const nowMs = performance.now()
    countedMs += Math.min(nowMs - lastMs, MOST_MS)
    lastMs = nowMs
  }
  const ticks = setInterval(count, TICK_MS).unref()
  return () => {
    clearInterval(ticks)
    count()
    return Math.max(Math.min(countedMs, idleMs() - idleBefore), countedMs * LEAST_PART)
  }
}

/** The time that the cores together had nothing to do. The system counts in steps of 10 ms. */
function idleMs(): number {
  return cpus().reduce((sum, { times }) => sum + times.idle, 0)
}
