/**
 * The candidates of a request as its attempts use them up: in order, without those whose circuit breaker is open. A
 * breaker never fails a request by itself: if all are open, the one that is tested soonest is used.
 */
import type { Breaker } from './health/breaker.js'

/** The candidates that are left. */
export class CandidateQueue<Candidate> {
  private left: Candidate[]
  private readonly breakerOf: (candidate: Candidate) => Breaker
  private wasUsed = false

  constructor(order: readonly Candidate[], breakerOf: (candidate: Candidate) => Breaker) {
    this.left = [...order]
    this.breakerOf = breakerOf
  }

  /**
   * Takes the next candidate; null when no further one should be tried. A closed breaker in its slow start that
   * refuses puts its candidate behind the others. The first call always yields one if there are any.
   */
  take(): Candidate | null {
    const allowed =
      this.left.find((candidate) => this.breakerOf(candidate).allows()) ??
      this.left.find((candidate) => this.breakerOf(candidate).state === 'closed') ??
      (this.wasUsed ? null : this.soonest())
    this.wasUsed = true
    if (allowed === null) return null
    this.left = this.left.filter((candidate) => candidate !== allowed)
    return allowed
  }

  /** Takes a candidate out of its turn. */
  remove(candidate: Candidate): void {
    this.left = this.left.filter((each) => each !== candidate)
  }

  /** Whether `take` would have a candidate whose breaker is not open. */
  get hasMore(): boolean {
    return this.left.some((candidate) => this.breakerOf(candidate).state !== 'open')
  }

  private soonest(): Candidate | null {
    let best: Candidate | null = null
    let bestMs = Number.POSITIVE_INFINITY
    for (const candidate of this.left) {
      const ms = this.breakerOf(candidate).testInMs
      if (ms < bestMs) {
        best = candidate
        bestMs = ms
      }
    }
    return best
  }
}
