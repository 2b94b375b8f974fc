/**
 * Measures the longest turn of the event loop in processor time of this thread, without other work on the
 * machine and, on Linux, without other threads of this process.
 */
import { existsSync, openSync, readSync } from 'node:fs'

/** The processor time of the main thread in ns is its first number. */
const MAIN_THREAD = `/proc/self/task/${process.pid}/schedstat`
/** Stays open: opening it in each turn took half of the time of a test. */
const file = existsSync(MAIN_THREAD) ? openSync(MAIN_THREAD, 'r') : null
const text = Buffer.alloc(64)

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
      const [nowMs, usedMs] = [performance.now(), cpuMs()]
      this.slowestMs = Math.max(this.slowestMs, Math.min(nowMs - this.beganMs, usedMs - this.cpuMs))
      this.cpuMs = usedMs
      this.beganMs = nowMs
      if (!this.isOver) this.next()
    })
  }
}

function cpuMs(): number {
  if (file !== null) {
    const bytes = readSync(file, text, 0, text.length, 0)
    return Number.parseInt(text.toString('latin1', 0, bytes), 10) / 1e6
  }
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}
