/**
 * Whether a server that fails is asked at all: after some failures it is not, for a while.
 * Knows no client and no clock; who uses it counts time-outs and error replies as failures, too.
 *
 * A client that took a swallowed error for a success never opened its breaker, and every request of
 * another gateway hung for as long as the server did.
 */

/** In a row. */
const FAILURES = 5
/** Or this share of at least so many in a second. */
const ERROR_RATE = 0.5
const MIN_CALLS = 20
const WINDOW_MS = 1_000

/** Closed (asking) or open (not asking), by the outcomes that it is told. */
export class Breaker {
  private inARow = 0
  private calls = 0
  private failures = 0
  private windowMs = Number.NEGATIVE_INFINITY
  private opened = false

  get open(): boolean {
    return this.opened
  }

  /** True where it was closed. */
  trip(): boolean {
    const wasClosed = !this.opened
    this.opened = true
    return wasClosed
  }

  /** True where this failure opens it. */
  failed(nowMs: number): boolean {
    this.count(nowMs)
    this.inARow += 1
    this.failures += 1
    if (this.opened) return false
    const many = this.calls >= MIN_CALLS && this.failures >= this.calls * ERROR_RATE
    this.opened = this.inARow >= FAILURES || many
    return this.opened
  }

  /** A success of what was asked before it opened does not close it; a probe's does, by `close`. */
  succeeded(nowMs: number): void {
    this.count(nowMs)
    this.inARow = 0
  }

  close(): void {
    this.opened = false
    this.inARow = 0
    this.calls = 0
    this.failures = 0
  }

  private count(nowMs: number): void {
    if (nowMs - this.windowMs >= WINDOW_MS) {
      this.windowMs = nowMs
      this.calls = 0
      this.failures = 0
    }
    this.calls += 1
  }
}
