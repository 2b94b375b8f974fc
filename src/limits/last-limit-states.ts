/**
 * How limits stood when they were last heard of: what a process goes by while the store is away.
 * Knows no clock; who notes and who asks says what time it is.
 */
import type { Demand, LimitState } from '../store/ledger.js'

/** A limitState and when it was heard of, monotonic ms. */
export interface LastLimitState extends LimitState {
  readonly atMs: number
}

/** Remembers the limitStates used last, of a bounded number of limits. */
export class LastLimitStates {
  private recent = new Map<string, LastLimitState>()
  private old = new Map<string, LastLimitState>()
  private readonly generation: number

  /** 20,000 limits are about 4 MB; who has more in use at once loses those used least. */
  constructor(capacity = 20_000) {
    this.generation = Math.max(1, Math.floor(capacity / 2))
  }

  note(demand: Demand, limitState: LimitState, atMs: number): void {
    const { limit, remaining, resetMs, retryAfterMs } = limitState
    this.recent.set(nameOf(demand), { limit, remaining, resetMs, retryAfterMs, atMs })
    if (this.recent.size < this.generation) return
    this.old = this.recent
    this.recent = new Map()
  }

  /** Null where nothing has been heard of it, or too long ago. */
  find(demand: Demand): LastLimitState | null {
    const name = nameOf(demand)
    return this.recent.get(name) ?? this.old.get(name) ?? null
  }
}

/** What tells one count from another: the subject, and what of it is counted. */
export function nameOf({ kind, subject }: Demand): string {
  return `${kind} ${subject}`
}
