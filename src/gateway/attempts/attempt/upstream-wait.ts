/** Measures how long an attempt waits for its upstream before the client's reply begins. */
import type { AttemptResult } from '../attempt-result.js'

/**
 * The events that an attempt waits for: a connection; the head; the first content, or the end of a whole
 * body.
 */
type Awaited = 'connectMs' | 'firstByteMs' | 'replyMs'

/** Adds the waiting times to the attempt's result, so that they do not count as the gateway's own time. */
export class UpstreamWait {
  private result: AttemptResult | null
  private awaited: Awaited | null = null
  private sinceMs = 0

  /**
   * `result` is null if the reply has begun, because the client's wait then counts as relaying; and for a
   * hedge, while the time counts for the other attempt.
   */
  constructor(result: AttemptResult | null) {
    this.result = result
  }

  /** The awaited event occurred at `nowMs`, and `awaited` is the next one. */
  next(awaited: Awaited | null, nowMs: number): void {
    const { result } = this
    if (result === null) {
      this.awaited = awaited
      return
    }
    const waitedMs = nowMs - this.sinceMs
    // One assignment for each member: a computed key is slower (docs/explanation/performance.md).
    switch (this.awaited) {
      case 'connectMs':
        result.connectMs = (result.connectMs ?? 0) + waitedMs
        break
      case 'firstByteMs':
        result.firstByteMs = (result.firstByteMs ?? 0) + waitedMs
        break
      case 'replyMs':
        result.replyMs = (result.replyMs ?? 0) + waitedMs
        break
      default:
    }
    this.awaited = awaited
    this.sinceMs = nowMs
  }

  /** Counts the time in `result` from now on. */
  count(result: AttemptResult): void {
    this.result = result
    this.sinceMs = performance.now()
  }

  /** Stops measuring, whether the awaited event occurred or not. */
  end(): void {
    if (this.awaited !== null) this.next(null, performance.now())
  }
}
