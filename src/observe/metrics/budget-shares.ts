/**
 * The highest used share of a budget, by scope and period, over the last five to ten minutes. A gauge set by
 * each request would show the last budget, not the one nearest to its end; one series per key would be too
 * many.
 */

const WINDOW_MS = 300_000

/** The highest share of one scope and period. */
export interface BudgetShare {
  /** From a closed set, as `kind`. */
  readonly scope: string
  readonly kind: string
  /** 0 to 1. */
  readonly ratio: number
}

interface WindowMaxima {
  readonly scope: string
  readonly kind: string
  /** Maxima of the current and the previous window. */
  current: number
  previous: number
}

/** Maxima of two windows. Times are monotonic milliseconds. */
export class BudgetShares {
  private readonly maxima = new Map<string, WindowMaxima>()
  private beganMs = Number.NEGATIVE_INFINITY

  /** Records the used share of a budget of a request. */
  record({ scope, kind, ratio }: BudgetShare, nowMs: number): void {
    this.advance(nowMs)
    const name = `${scope} ${kind}`
    const share = this.maxima.get(name) ?? { scope, kind, current: 0, previous: 0 }
    share.current = Math.max(share.current, ratio)
    this.maxima.set(name, share)
  }

  /** Every scope and period seen so far; 0 if no request used one of its budgets for two windows. */
  highest(nowMs: number): BudgetShare[] {
    this.advance(nowMs)
    return [...this.maxima.values()].map(({ scope, kind, current, previous }) => {
      return { scope, kind, ratio: Math.max(current, previous) }
    })
  }

  private advance(nowMs: number): void {
    const elapsedMs = nowMs - this.beganMs
    if (elapsedMs < WINDOW_MS) return
    for (const share of this.maxima.values()) {
      share.previous = elapsedMs < 2 * WINDOW_MS ? share.current : 0
      share.current = 0
    }
    this.beganMs = nowMs
  }
}
