/**
 * One clock tick for every time-out of the data plane.
 * A timer per request and phase costs 0.4 µs each and must be re-armed per chunk; a sweep over what
 * is in flight costs nothing per chunk and is late by at most one tick.
 */

import { InFlightList, type InFlightItem } from './in-flight-list.js'

/** How late a time-out may be noticed, in ms. */
export const TICK_MS = 100

/** Something in flight that may have waited too long. `nowMs` is monotonic. */
export interface Timed extends InFlightItem {
  tick(nowMs: number): void
}

/** What is in flight and wants to know the time. Its timer runs only while there is something. */
export class Deadlines {
  private readonly inFlight = new InFlightList<Timed>()
  private timer: NodeJS.Timeout | null = null

  /** Calls `tick` every `TICK_MS` until `remove`. */
  add(timed: Timed): void {
    this.inFlight.add(timed)
    this.timer ??= setInterval(() => this.sweep(), TICK_MS).unref()
  }

  remove(timed: Timed): void {
    this.inFlight.remove(timed)
  }

  /** Stops the clock; for the end of the process. */
  close(): void {
    if (this.timer !== null) clearInterval(this.timer)
    this.timer = null
  }

  private sweep(): void {
    const nowMs = performance.now()
    this.inFlight.each((timed) => timed.tick(nowMs))
  }
}
