/**
 * The remaining candidates of a request: in order, without those whose circuit breaker is open. Breakers
 * alone never fail a request: if all are open, the request goes to the candidate whose breaker is tested
 * soonest.
 */
import type { Breaker } from './health/breaker.js'

/** The candidates that were not used yet. */
export class CandidateQueue<Candidate> {
  private remaining: Candidate[]
  private readonly breakerOf: (candidate: Candidate) => Breaker
  private wasUsed = false

  constructor(order: readonly Candidate[], breakerOf: (candidate: Candidate) => Breaker) {
    this.remaining = [...order]
    this.breakerOf = breakerOf
  }

  /**
   * Takes the next candidate; null if no further one should be tried. A candidate whose breaker is closed but
   * refuses in its slow start comes after the others. The first call returns a candidate if there are any.
   */
  take(): Candidate | null {
    const allowed =
      this.remaining.find((candidate) => this.breakerOf(candidate).allows()) ??
      this.remaining.find((candidate) => this.breakerOf(candidate).state === 'closed') ??
      (this.wasUsed ? null : this.soonest())
    this.wasUsed = true
    if (allowed === null) return null
    this.remaining = this.remaining.filter((candidate) => candidate !== allowed)
    return allowed
  }

  /** Removes a candidate, which a hedge uses. */
  remove(candidate: Candidate): void {
    this.remaining = this.remaining.filter((other) => other !== candidate)
  }

  /** Whether a candidate is left whose breaker is not open. */
  get hasMore(): boolean {
    return this.remaining.some((candidate) => this.breakerOf(candidate).state !== 'open')
  }

  private soonest(): Candidate | null {
    let best: Candidate | null = null
    let bestMs = Number.POSITIVE_INFINITY
    for (const candidate of this.remaining) {
      const ms = this.breakerOf(candidate).testInMs
      if (ms < bestMs) {
        best = candidate
        bestMs = ms
      }
    }
    return best
  }
}
