/**
 * Budgets that keep retries and hedges from multiplying the load of an upstream: each is a share of its
 * recent requests.
 */
import { RollingSums, type Clock } from '../../base/rolling-sums.js'

const RETRY_WINDOW_MS = 10_000
const MIN_RETRIES = 3
const REQUESTS = 0
const RETRIES = 1

/** The retries of one upstream. */
export class RetryBudget {
  /** Retries that were refused since the process started. */
  denied = 0
  private readonly clock: Clock
  private readonly sums = new RollingSums(RETRY_WINDOW_MS, 2)

  constructor(clock: Clock) {
    this.clock = clock
  }

  /** Counts the first attempt of a request. */
  request(): void {
    this.sums.add(REQUESTS, 1, this.clock.now())
  }

  /** Takes one retry if fewer than `share` of the requests, or fewer than 3, were retries. */
  tryRetry(share: number): boolean {
    const nowMs = this.clock.now()
    const maxRetries = Math.max(MIN_RETRIES, share * this.sums.sum(REQUESTS, nowMs))
    if (this.sums.sum(RETRIES, nowMs) + 1 > maxRetries) {
      this.denied += 1
      return false
    }
    this.sums.add(RETRIES, 1, nowMs)
    return true
  }
}

const HEDGE_WINDOW_MS = 600_000
const MINUTE_MS = 60_000
const REQUEST_COST = 1
const HEDGES = 2
const HEDGE_COST = 3

/**
 * The hedge budget of a route: a share of the estimated cost of all its requests in the last 10 minutes, and
 * at least one hedge a minute.
 */
export class HedgeBudget {
  private readonly clock: Clock
  private readonly sums = new RollingSums(HEDGE_WINDOW_MS, 4)
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
