/**
 * The hedge budget of a route: a share of the estimated cost of all its requests in the last 10 minutes, and
 * at least one hedge a minute.
 */
import type { Clock } from '../clock.js'
import { RollingSums } from '../health/rolling-sums.js'

const WINDOW_MS = 600_000
const MINUTE_MS = 60_000
const REQUESTS = 0
const REQUEST_COST = 1
const HEDGES = 2
const HEDGE_COST = 3

/** The hedges of one route. */
export class HedgeBudget {
  private readonly clock: Clock
  private readonly sums = new RollingSums(WINDOW_MS, 4)
  private lastHedgeMs = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.clock = clock
  }

  /** Counts a request of the route; its estimated cost is in the unit of `tryHedge`, 0 if free or unknown. */
  request(cost: number): void {
    const nowMs = this.clock.now()
    this.sums.add(REQUESTS, 1, nowMs)
    this.sums.add(REQUEST_COST, cost, nowMs)
  }

  /**
   * Takes a hedge of this estimated cost if the hedges stay within `share` of all cost, or none was sent in
   * the last minute. If requests cost nothing, the share is that of their number.
   */
  tryHedge(cost: number, share: number): boolean {
    const nowMs = this.clock.now()
    const total = this.sums.sum(REQUEST_COST, nowMs)
    const isWithin =
      total > 0
        ? this.sums.sum(HEDGE_COST, nowMs) + cost <= share * total
        : this.sums.sum(HEDGES, nowMs) + 1 <= share * this.sums.sum(REQUESTS, nowMs)
    if (!isWithin && nowMs - this.lastHedgeMs < MINUTE_MS) return false
    this.sums.add(HEDGES, 1, nowMs)
    this.sums.add(HEDGE_COST, cost, nowMs)
    this.lastHedgeMs = nowMs
    return true
  }
}
