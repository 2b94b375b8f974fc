/**
 * Measures the longest turn of the event loop in processor time of this thread, without other work on the
 * machine and, on Linux, without other threads of this process.
 */
import { existsSync, readFileSync } from 'node:fs'

/** The processor time of the main thread in ns is its first number. */
const MAIN_THREAD = `/proc/self/task/${process.pid}/schedstat`
const HAS_THREADS = existsSync(MAIN_THREAD)

/** Watches from its creation to `end`. */
export class TurnWatch {
  private slowestMs = 0
  private isOver = false
  private cpuMs = cpuMs()
  private beganMs = performance.now()

  constructor() {
    this.next()
  }

  /** The longest turn in ms. */
  end(): number {
    this.isOver = true
    return this.slowestMs
  }

  private next(): void {
    setImmediate(() => {
      const ms = Math.min(performance.now() - this.beganMs, cpuMs() - this.cpuMs)
      this.slowestMs = Math.max(this.slowestMs, ms)
      this.cpuMs = cpuMs()
      this.beganMs = performance.now()
      if (!this.isOver) this.next()
    })
  }
}

function cpuMs(): number {
  if (HAS_THREADS) return Number.parseInt(readFileSync(MAIN_THREAD, 'utf8'), 10) / 1e6
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}
