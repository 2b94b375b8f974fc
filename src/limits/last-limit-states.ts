/**
 * The last known states of limits, from which a process continues while the store is unavailable. Times are
 * arguments.
 */
import type { Demand, LimitState } from '../store/ledger.js'

/** The state of a limit, and when the store reported it: monotonic, in ms. */
export interface LastLimitState extends LimitState {
  readonly atMs: number
}

/** Keeps the states of a bounded number of limits, the most recently used ones. */
export class LastLimitStates {
  private recent = new Map<string, LastLimitState>()
  private old = new Map<string, LastLimitState>()
  private readonly generation: number

  /** 20,000 limits take about 4 MB. If more are in use at once, the least recently used are dropped. */
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

  /** Null if no state is known. */
  find(demand: Demand): LastLimitState | null {
    const name = nameOf(demand)
    return this.recent.get(name) ?? this.old.get(name) ?? null
  }
}

/** The name of a counter: the kind and the subject of its limit. */
export function nameOf({ kind, subject }: Demand): string {
  return `${kind} ${subject}`
}
