/**
 * The time for which an exchange waits for its upstream before the client's answer begins.
 * Knows no connection, only what is awaited of one.
 */
import type { Facts } from './exchange.js'

/** A connection; the head of the answer; the first content of a stream, or the end of a whole body. */
type Awaited = 'connectMs' | 'firstByteMs' | 'replyMs'

/** Adds up into the exchange's facts: nothing of it may be taken for time of the gateway's own. */
export class Wait {
  private readonly facts: Facts | null
  private awaited: Awaited | null = null
  private sinceMs = 0

  /** `facts` is null once the answer has begun: what its client waits for then is counted there. */
  constructor(facts: Facts | null) {
    this.facts = facts
  }

  /** What was awaited has come at `nowMs`, and this is awaited next. */
  next(awaited: Awaited | null, nowMs: number): void {
    const { facts } = this
    if (facts === null) return
    const waitedMs = nowMs - this.sinceMs
    // Each by its name (docs/decisions/0037).
    switch (this.awaited) {
      case 'connectMs':
        facts.connectMs = (facts.connectMs ?? 0) + waitedMs
        break
      case 'firstByteMs':
        facts.firstByteMs = (facts.firstByteMs ?? 0) + waitedMs
        break
      case 'replyMs':
        facts.replyMs = (facts.replyMs ?? 0) + waitedMs
        break
      default:
    }
    this.awaited = awaited
    this.sinceMs = nowMs
  }

  /** Nothing is awaited any more, whether it came or not. */
  end(): void {
    if (this.awaited !== null) this.next(null, performance.now())
  }
}
