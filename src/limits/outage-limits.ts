/**
 * Enforces limits while the store is unavailable: each process enforces its share of them, starting from
 * their last known states. An object is used for one outage. Times are arguments.
 *
 * The maximum by which all processes together can exceed a limit, with `processes` set right: - requests and
 * tokens: the use since this process last got the state of the limit, so at most one bucket; and one request
 * for each process if the limit is smaller than the number of processes; - concurrent: the requests that
 * other processes had admitted beyond their share, so at most the limit again (and one for each process if
 * the limit is smaller than the number of processes); - budgets: the share that one outage may spend, by
 * default 1 %. A budget that is unknown, or was 95 % spent at its last known state, is closed.
 */
import type { LimitingConfig } from '../config/config.js'
import type {
  BudgetDemand,
  Demand,
  RateDemand,
  ConcurrencyDemand,
  LimitState,
  QuotaDemand,
} from '../store/ledger.js'
import { isBudget, isWindowed, isWindowKind, leftOf, windowAmounts } from '../store/limit-arithmetic.js'

/** A decision without the store. `closed`: refused because the state of a budget is unknown. */
interface OutageDecision {
  readonly admitted: boolean
  readonly closed: boolean
  readonly limitStates: readonly LimitState[]
}

const MINUTE_MS = 60_000
/** The share of a budget that must be left for this process to spend any of it. */
const MIN_LEFT_SHARE = 0.05
/** `retry-after` of a closed budget. */
const CLOSED_RETRY_MS = 1_000

/** The limits that this process enforces during one outage. */
export class OutageLimits {
  private readonly lastStates: LastLimitStates
  private readonly away: LimitingConfig['away']
  /** Theoretical arrival time of each rate, monotonic ms (GCRA). */
  private readonly arrivals = new Map<string, number>()
  /** Slots in use by requests of this process, by limit. */
  private readonly slots = new Map<string, number>()
  /** Nano-dollars, tokens or requests spent or reserved during the outage, by budget or quota. */
  private readonly spent = new Map<string, number>()

  constructor(lastStates: LastLimitStates, away: LimitingConfig['away']) {
    this.lastStates = lastStates
    this.away = away
  }

  /** Counts the slots of a request that was running when the outage began. */
  takeSlots(demands: readonly Demand[]): void {
    for (const demand of demands) if (demand.kind === 'concurrent') this.commit(demand, 0)
  }

  /** Checks all demands, then commits all or nothing. `nowMs` is monotonic. */
  admit(demands: readonly Demand[], nowMs: number): OutageDecision {
    const limitStates = demands.map((demand) => this.stateOf(demand, nowMs))
    const refused = limitStates.filter(({ retryAfterMs }) => retryAfterMs !== 0)
    if (refused.length > 0) {
      const closed = limitStates.some(
        ({ retryAfterMs }, index) => retryAfterMs !== 0 && isWindowKind(demands[index]?.kind),
      )
      return { admitted: false, closed, limitStates }
    }
    for (const demand of demands) this.commit(demand, nowMs)
    const statesAfter = demands.map((demand) => ({
      ...this.stateOf(demand, nowMs),
      retryAfterMs: 0,
    }))
    return { admitted: true, closed: false, limitStates: statesAfter }
  }

  /** Frees the slots of an ended request, and the unused part of its budget. */
  end(demands: readonly Demand[], spentNanoUsd: number | null, wasAdmittedHere: boolean): void {
    for (const demand of demands) {
      const name = nameOf(demand)
      if (demand.kind === 'concurrent') {
        this.slots.set(name, Math.max(0, (this.slots.get(name) ?? 0) - 1))
      } else if (isBudget(demand) && wasAdmittedHere && spentNanoUsd !== null) {
        const spent = (this.spent.get(name) ?? 0) - demand.costNanoUsd + spentNanoUsd
        this.spent.set(name, Math.max(0, spent))
      }
    }
  }

  private stateOf(demand: Demand, nowMs: number): LimitState {
    if ('perMinute' in demand) return this.rateStateOf(demand, nowMs)
    switch (demand.kind) {
      case 'concurrent':
        return this.slotStateOf(demand)
      default:
        return this.windowStateOf(demand, nowMs)
    }
  }

  private rateStateOf(demand: RateDemand, nowMs: number): LimitState {
    const { unitMs, windowMs, cost } = this.rateOf(demand)
    const arrivalMs = this.arrival(demand, nowMs)
    const usedMs = arrivalMs - nowMs
    const afterMs = usedMs + cost * unitMs
    const isOverLimit = afterMs > windowMs + ROUNDING_MS
    const waitMs = Math.max(1, Math.ceil(afterMs - windowMs))
    return {
      limit: demand.perMinute,
      remaining: Math.max(0, Math.floor((windowMs - usedMs + ROUNDING_MS) / unitMs)),
      resetMs: usedMs,
      retryAfterMs: demand.cost > demand.perMinute ? -1 : isOverLimit ? waitMs : 0,
    }
  }

  private slotStateOf(demand: ConcurrencyDemand): LimitState {
    const share = this.shareOf(demand.limit)
    const taken = this.slots.get(nameOf(demand)) ?? 0
    const remaining = Math.max(0, share - taken)
    const retryAfterMs = remaining > 0 ? 0 : CLOSED_RETRY_MS
    return { limit: demand.limit, remaining, resetMs: 0, retryAfterMs }
  }

  private windowStateOf(demand: BudgetDemand | QuotaDemand, nowMs: number): LimitState {
    const { limit, cost } = windowAmounts(demand)
    const lastStates = this.lastStates.find(demand)
    const closed = { limit, remaining: 0, resetMs: 0, retryAfterMs: CLOSED_RETRY_MS }
    if (lastStates === null) return closed
    const sinceMs = nowMs - lastStates.atMs
    // If the limit was changed meanwhile, the amount spent stays the same.
    const isOver = leftOf(demand.kind, 0) !== null && sinceMs >= lastStates.resetMs
    const remainingBudget = isOver ? limit : limit - (lastStates.limit - lastStates.remaining)
    if (remainingBudget < limit * MIN_LEFT_SHARE) return closed
    const { budgetShare, budgetNanoUsd, processes } = this.away
    const most = isBudget(demand) ? budgetNanoUsd : Number.POSITIVE_INFINITY
    const maxSpend = Math.min(limit * budgetShare, most) / processes
    const remaining = Math.max(0, Math.floor(maxSpend - (this.spent.get(nameOf(demand)) ?? 0)))
    const resetMs = Math.max(0, lastStates.resetMs - sinceMs)
    return { limit, remaining, resetMs, retryAfterMs: cost <= remaining ? 0 : CLOSED_RETRY_MS }
  }

  private commit(demand: Demand, nowMs: number): void {
    const name = nameOf(demand)
    if (demand.kind === 'concurrent') {
      this.slots.set(name, (this.slots.get(name) ?? 0) + 1)
    } else if (isWindowed(demand)) {
      this.spent.set(name, (this.spent.get(name) ?? 0) + windowAmounts(demand).cost)
    } else {
      const { unitMs, cost } = this.rateOf(demand)
      this.arrivals.set(name, this.arrival(demand, nowMs) + cost * unitMs)
    }
  }

  /**
   * The refill time of one unit in this process's share. A share of less than one request still admits one; a
   * request for more tokens than the share uses all of it.
   */
  private rateOf(demand: RateDemand): { unitMs: number; windowMs: number; cost: number } {
    const unitMs = (MINUTE_MS * this.away.processes) / demand.perMinute
    const cost = Math.min(demand.cost, Math.max(1, Math.floor(MINUTE_MS / unitMs)))
    return { unitMs, windowMs: Math.max(MINUTE_MS, unitMs), cost }
  }

  /** The theoretical arrival time, not before `nowMs`; starts from the last known state of the limit. */
  private arrival(demand: RateDemand, nowMs: number): number {
    const arrivalMs = this.arrivals.get(nameOf(demand))
    if (arrivalMs !== undefined) return Math.max(arrivalMs, nowMs)
    const lastStates = this.lastStates.find(demand)
    return lastStates === null
      ? nowMs
      : Math.max(nowMs, lastStates.atMs + Math.min(lastStates.resetMs, MINUTE_MS))
  }

  private shareOf(limit: number): number {
    return Math.max(1, Math.floor(limit / this.away.processes))
  }
}

/** Tolerance for the rounding of sums. */
const ROUNDING_MS = 1e-6

/** The state of a limit, and when the store reported it: monotonic, in ms. */
interface LastLimitState extends LimitState {
  readonly atMs: number
}

/**
 * The last known states of a bounded number of limits, the most recently used ones, from which a process
 * continues while the store is unavailable. Times are arguments.
 */
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
function nameOf({ kind, subject }: Demand): string {
  return `${kind} ${subject}`
}
