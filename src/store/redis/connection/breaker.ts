/**
 * The circuit breaker of a connection: open after several failures, closed by a probe. Timeouts and error replies count
 * as failures: another gateway counted a swallowed timeout as a success, and all its requests hung.
 */

/** Consecutive failures that open it. */
const FAILURES = 5
/** Or this share of at least `MIN_CALLS` commands in a second. */
const ERROR_RATE = 0.5
const MIN_CALLS = 20
const WINDOW_MS = 1_000

/** Closed (commands are sent) or open (commands fail at once). */
export class Breaker {
  private inARow = 0
  private calls = 0
  private failures = 0
  private windowMs = Number.NEGATIVE_INFINITY
  private opened = false

  get open(): boolean {
    return this.opened
  }

  /** Opens it; true if it was closed. */
  trip(): boolean {
    const wasClosed = !this.opened
    this.opened = true
    return wasClosed
  }

  /** Counts a failure; true if it opens the breaker. */
  failed(nowMs: number): boolean {
    this.count(nowMs)
    this.inARow += 1
    this.failures += 1
    if (this.opened) return false
    const many = this.calls >= MIN_CALLS && this.failures >= this.calls * ERROR_RATE
    this.opened = this.inARow >= FAILURES || many
    return this.opened
  }

  /** Counts a success. An open breaker stays open: the command was sent before it opened. */
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
