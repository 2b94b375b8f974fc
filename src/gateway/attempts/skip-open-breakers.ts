/** The order in which the candidates of a request are tried: an open circuit breaker is skipped. */
import type { Breaker } from './breaker.js'

/**
 * The candidates of a request that were not used yet: in order, without those whose circuit breaker is open.
 * Breakers alone never fail a request: if all are open, the candidates are tried in the order in which their
 * breakers may be tested, because each of them may have recovered. `Breaker.tryOpen` bounds the load of that.
 */
export class CandidateQueue<Item> {
  private remaining: Item[]
  private readonly breakerOf: (candidate: Item) => Breaker
  /** All breakers were open when the first candidate was taken; null before. */
  private allOpen: boolean | null = null

  constructor(order: readonly Item[], breakerOf: (candidate: Item) => Breaker) {
    this.remaining = [...order]
    this.breakerOf = breakerOf
  }

  /**
   * Takes the next candidate; null if no further one should be tried. A candidate whose breaker is closed but
   * refuses in its slow start comes after the others. The first call returns a candidate if there are any.
   */
  take(): Item | null {
    const allowed =
      this.remaining.find((candidate) => this.breakerOf(candidate).allows()) ??
      this.remaining.find((candidate) => this.breakerOf(candidate).state === 'closed') ??
      null
    const isFirst = this.allOpen === null
    this.allOpen ??= allowed === null
    const taken = allowed ?? (this.allOpen ? this.soonest(isFirst) : null)
    if (taken !== null) this.remove(taken)
    return taken
  }

  /** Removes a candidate, which is taken or used by a hedge. */
  remove(candidate: Item): void {
    this.remaining = this.remaining.filter((other) => other !== candidate)
  }

  /** The first of all candidates is not limited: otherwise a breaker alone would fail the request. */
  private soonest(isFirst: boolean): Item | null {
    const inMs = (candidate: Item): number => this.breakerOf(candidate).testInMs
    const inOrder = this.remaining.toSorted((one, other) => inMs(one) - inMs(other))
    if (isFirst) return inOrder[0] ?? null
    return inOrder.find((candidate) => this.breakerOf(candidate).tryOpen()) ?? null
  }
}
