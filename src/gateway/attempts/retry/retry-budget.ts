/**
 * The retry budget of an upstream: a share of its requests in the last 10 seconds, and at least 3. It
 * prevents retries from multiplying the load of a failing upstream. A fallback to another target does not
 * count.
 */
import type { Clock } from '../clock.js'
import { RollingSums } from '../health/rolling-sums.js'

const WINDOW_MS = 10_000
const MIN_RETRIES = 3
const REQUESTS = 0
const RETRIES = 1

/** The retries of one upstream. */
export class RetryBudget {
  /** Retries that were refused since the process started. */
  denied = 0
  private readonly clock: Clock
  private readonly sums = new RollingSums(WINDOW_MS, 2)

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
