/** The time for which an attempt waits for its upstream before the client's reply begins. */
import type { AttemptResult } from '../attempt-result.js'

/** A connection; the head of the reply; the first content of a stream, or the end of a whole body. */
type Awaited = 'connectMs' | 'firstByteMs' | 'replyMs'

/** Adds up into the attempt's result, so that waiting is not counted as time of the gateway's own. */
export class UpstreamWait {
  private result: AttemptResult | null
  private awaited: Awaited | null = null
  private sinceMs = 0

  /**
   * `result` is null if the reply has begun: what its client waits for then is counted as relaying; and for a hedge,
   * while the time is counted as that of the other attempt.
   */
  constructor(result: AttemptResult | null) {
    this.result = result
  }

  /** What was awaited has come at `nowMs`, and this is awaited next. */
  next(awaited: Awaited | null, nowMs: number): void {
    const { result } = this
    if (result === null) {
      this.awaited = awaited
      return
    }
    const waitedMs = nowMs - this.sinceMs
    // Each by its name (docs/decisions/0037).
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

  /** From now on, time is counted in `result`. */
  count(result: AttemptResult): void {
    this.result = result
    this.sinceMs = performance.now()
  }

  /** Nothing is awaited any more, whether it came or not. */
  end(): void {
    if (this.awaited !== null) this.next(null, performance.now())
  }
}
