/**
 * One timer for all timeouts of the data plane. A timer per request and phase would cost 0.4 µs each and a
 * restart for each chunk; a sweep over the requests in flight costs nothing per chunk and is late by at most
 * one tick.
 */

import { InFlightList, type InFlightItem } from './in-flight-list.js'

/** Interval of the sweep, and the maximum delay of a timeout, in ms. */
export const TICK_MS = 100

/** An item with timeouts, checked in each `tick`. `nowMs` is monotonic. */
export interface Timed extends InFlightItem {
  tick(nowMs: number): void
}

/** The items with timeouts. The timer runs from the first `add` until `close`. */
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

  /** Stops the timer when the process exits. */
  close(): void {
    if (this.timer !== null) clearInterval(this.timer)
    this.timer = null
  }

  private sweep(): void {
    const nowMs = performance.now()
    this.inFlight.each((timed) => timed.tick(nowMs))
  }
}
