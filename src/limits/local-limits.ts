/**
 * Limits while the store is away: each process keeps its share of them by itself, from where they stood
 * when they were last heard of. One object is one outage. Pure but for its own counts.
 *
 * How far all processes together can go beyond a limit, with `processes` set right:
 * - requests and tokens: what had been used since this process last heard of the limit, so one bucket at
 *   the most; and one request of each process where a limit has fewer than there are processes;
 * - concurrent: the requests that other processes had admitted beyond their share, so the limit once more
 *   (and one of each process where the limit is less than that);
 * - budgets: what one outage may spend, 1 % of it (configurable). One of which 95 % had been spent when it
 *   was last heard of, or nothing was heard, is closed.
 */
import type { LimitingConfig } from '../config/config.js'
import type {
  BudgetDemand,
  Demand,
  RateDemand,
  ConcurrencyDemand,
  LimitState,
} from '../store/ledger.js'
import { nameOf, type LastLimitStates } from './last-limit-states.js'

/** What is decided without the store. `closed`: a budget cannot be judged, which is nobody's fault. */
export interface LocalDecision {
  readonly admitted: boolean
  readonly closed: boolean
  readonly limitStates: readonly LimitState[]
}

const MINUTE_MS = 60_000
/** Of a budget, what must be left for an outage to spend any of it. */
const LEAST_LEFT = 0.05
/** A budget that is closed is asked for again when the store may be back. */
const CLOSED_RETRY_MS = 1_000

/** The limits of one outage, as this process keeps them. */
export class LocalLimits {
  private readonly lastStates: LastLimitStates
  private readonly away: LimitingConfig['away']
  /** Theoretical arrival time of each rate, monotonic ms (GCRA). */
  private readonly arrivals = new Map<string, number>()
  /** Requests of this process that hold a place, by limit. */
  private readonly slots = new Map<string, number>()
  /** Nano-dollars that this outage has spent or set aside, by budget. */
  private readonly spent = new Map<string, number>()

  constructor(lastStates: LastLimitStates, away: LimitingConfig['away']) {
    this.lastStates = lastStates
    this.away = away
  }

  /** A request that runs as the outage begins holds its slots. */
  takeSlots(demands: readonly Demand[]): void {
    for (const demand of demands) if (demand.kind === 'concurrent') this.commit(demand, 0)
  }

  /** Checks all demands, then commits all or nothing. `nowMs` is monotonic. */
  admit(demands: readonly Demand[], nowMs: number): LocalDecision {
    const limitStates = demands.map((demand) => this.stateOf(demand, nowMs))
    const refused = limitStates.filter(({ retryAfterMs }) => retryAfterMs !== 0)
    if (refused.length > 0) {
      const closed = limitStates.some(
        ({ retryAfterMs }, index) => retryAfterMs !== 0 && isBudget(demands[index]),
      )
      return { admitted: false, closed, limitStates }
    }
    for (const demand of demands) this.commit(demand, nowMs)
    const after = demands.map((demand) => ({ ...this.stateOf(demand, nowMs), retryAfterMs: 0 }))
    return { admitted: true, closed: false, limitStates: after }
  }

  /** A request has ended: its slots are free, and of its money what it did not need comes back. */
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
    switch (demand.kind) {
      case 'requests':
      case 'tokens':
        return this.rateStateOf(demand, nowMs)
      case 'concurrent':
        return this.slotStateOf(demand)
      case 'usd_day':
      case 'usd_month':
        return this.budgetStateOf(demand, nowMs)
      default:
        return demand satisfies never
    }
  }

  private rateStateOf(demand: RateDemand, nowMs: number): LimitState {
    const { unitMs, windowMs, cost } = this.rateOf(demand)
    const arrivalMs = this.arrival(demand, nowMs)
    const usedMs = arrivalMs - nowMs
    const afterMs = usedMs + cost * unitMs
    const over = afterMs > windowMs + ROUNDING_MS
    const waitMs = Math.max(1, Math.ceil(afterMs - windowMs))
    return {
      limit: demand.perMinute,
      remaining: Math.max(0, Math.floor((windowMs - usedMs + ROUNDING_MS) / unitMs)),
      resetMs: usedMs,
      retryAfterMs: demand.cost > demand.perMinute ? -1 : over ? waitMs : 0,
    }
  }

  private slotStateOf(demand: ConcurrencyDemand): LimitState {
    const share = this.shareOf(demand.limit)
    const taken = this.slots.get(nameOf(demand)) ?? 0
    const remaining = Math.max(0, share - taken)
    const retryAfterMs = remaining > 0 ? 0 : CLOSED_RETRY_MS
    return { limit: demand.limit, remaining, resetMs: 0, retryAfterMs }
  }

  private budgetStateOf(demand: BudgetDemand, nowMs: number): LimitState {
    const { limitNanoUsd: limit, costNanoUsd: cost } = demand
    const lastStates = this.lastStates.find(demand)
    const closed = { limit, remaining: 0, resetMs: 0, retryAfterMs: CLOSED_RETRY_MS }
    if (lastStates === null) return closed
    const sinceMs = nowMs - lastStates.atMs
    // A limit that was changed since keeps what was spent of it.
    const left =
      sinceMs >= lastStates.resetMs ? limit : limit - (lastStates.limit - lastStates.remaining)
    if (left < limit * LEAST_LEFT) return closed
    const { budgetShare, budgetNanoUsd, processes } = this.away
    const most = Math.min(limit * budgetShare, budgetNanoUsd) / processes
    const remaining = Math.max(0, Math.floor(most - (this.spent.get(nameOf(demand)) ?? 0)))
    const resetMs = Math.max(0, lastStates.resetMs - sinceMs)
    return { limit, remaining, resetMs, retryAfterMs: cost <= remaining ? 0 : CLOSED_RETRY_MS }
  }

  private commit(demand: Demand, nowMs: number): void {
    const name = nameOf(demand)
    if (demand.kind === 'concurrent') {
      this.slots.set(name, (this.slots.get(name) ?? 0) + 1)
    } else if (isBudget(demand)) {
      this.spent.set(name, (this.spent.get(name) ?? 0) + demand.costNanoUsd)
    } else {
      const { unitMs, cost } = this.rateOf(demand)
      this.arrivals.set(name, this.arrival(demand, nowMs) + cost * unitMs)
    }
  }

  /**
   * What one unit of this process's share takes of the minute. A share of less than one request still
   * lets one in; a request for more tokens than the share takes all of it.
   */
  private rateOf(demand: RateDemand): { unitMs: number; windowMs: number; cost: number } {
    const unitMs = (MINUTE_MS * this.away.processes) / demand.perMinute
    const cost = Math.min(demand.cost, Math.max(1, Math.floor(MINUTE_MS / unitMs)))
    return { unitMs, windowMs: Math.max(MINUTE_MS, unitMs), cost }
  }

  /** Never in the past; at first where the limit stood when it was last heard of. */
  private arrival(demand: RateDemand, nowMs: number): number {
    const held = this.arrivals.get(nameOf(demand))
    if (held !== undefined) return Math.max(held, nowMs)
    const lastStates = this.lastStates.find(demand)
    return lastStates === null
      ? nowMs
      : Math.max(nowMs, lastStates.atMs + Math.min(lastStates.resetMs, MINUTE_MS))
  }

  private shareOf(limit: number): number {
    return Math.max(1, Math.floor(limit / this.away.processes))
  }
}

/** Sums of fractions of a millisecond. */
const ROUNDING_MS = 1e-6

function isBudget(demand: Demand | undefined): demand is BudgetDemand {
  return demand?.kind === 'usd_day' || demand?.kind === 'usd_month'
}
