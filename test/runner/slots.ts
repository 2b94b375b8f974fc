/**
 * When a run starts its next process: at once while few run, and beyond that only while the cores are idle,
 * because some tests mostly wait and others keep two cores busy.
 */
import { EventEmitter, once } from 'node:events'
import { cpus } from 'node:os'

/** How long the cores are watched: a new process needs a second to load its modules. */
const WATCH_MS = 1_000
/** The share of idle time from which one more process finds a core. */
const ENOUGH = 0.15
const END = 'end'

/** The idle and the whole time of all cores, in milliseconds since the machine's start. */
export interface CoreTimes {
  readonly idle: number
  readonly all: number
}

/** Of this machine, since its start. */
export function coreTimes(): CoreTimes {
  const sum = { idle: 0, all: 0 }
  for (const { times } of cpus()) {
    sum.idle += times.idle
    sum.all += times.user + times.nice + times.sys + times.irq + times.idle
  }
  return sum
}

/** The processes of a run: at least `least` while that number is left, and never more than `most`. */
export class Slots {
  private readonly least: number
  private readonly most: number
  private readonly times: () => CoreTimes
  private readonly ends = new EventEmitter()
  private running = 0

  constructor(least: number, most: number, times = coreTimes) {
    this.least = least
    this.most = most
    this.times = times
  }

  /** Resolves when one more process may start, and counts it. */
  async take(): Promise<void> {
    while (this.running >= this.least) {
      const before = this.times()
      const hasEnded = await this.endsWithin(WATCH_MS)
      if (hasEnded || this.running >= this.most) continue
      const after = this.times()
      if (after.idle - before.idle > ENOUGH * (after.all - before.all)) break
    }
    this.running += 1
  }

  /** A process has ended. */
  release(): void {
    this.running -= 1
    this.ends.emit(END)
  }

  private async endsWithin(ms: number): Promise<boolean> {
    const stop = new AbortController()
    const timer = setTimeout(() => {
      stop.abort()
    }, ms)
    try {
      await once(this.ends, END, { signal: stop.signal })
      return true
    } catch {
      return false
    } finally {
      clearTimeout(timer)
    }
  }
}
