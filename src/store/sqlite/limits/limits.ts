/**
 * Limits in SQLite: checks demands, takes them all or none, and corrects the counters when a request is
 * settled. The arithmetic runs inside the transaction that the admissions and settlements of one turn of the
 * event loop share, so that limits hold across processes.
 */
import { DAY_MS } from '../../../base/time-units.js'
import type { LedgerEntry } from '../../../ledger/entry.js'
import type {
  AddedUse,
  BudgetDemand,
  BudgetMark,
  BudgetSpent,
  Demand,
  LimitState,
  QuotaDemand,
  Raise,
  RateDemand,
} from '../../ledger.js'
import {
  dayOf,
  isWindowed,
  periodOf,
  WINDOWS,
  windowAmounts,
  budgetState,
  leftOf,
  slotState,
  remainingUnits,
  rateState,
  UNITS,
} from '../../limit-arithmetic.js'
import type { CorrectedUse } from '../../records/correct-entry.js'
import { unitOfKind, type LimitedUnit, type WindowKind } from '../../../base/limit-members.js'
import { chargedNanoUsd, chargedTokens } from '../../records/count-usage.js'
import { numberIn, textIn, type Row } from '../driver.js'
import type { Engine } from '../engine.js'
import { CounterRows, accountOf, budgetOf, rateOf, startPeriod, type Counters } from './counters.js'
import { holdRate, type BudgetHold, type Hold, type RateHold } from './holds.js'
import { markOf, othersIn, type Budget, type Rate } from './window-counters.js'

/** Rows looked at in one transaction of pruning; other writes run in between. */
const PRUNED_AT_ONCE = 500

/** The limits of a store. Its methods are for the inside of a transaction, except `look` and `prune`. */
export class Limits {
  private readonly engine: Engine
  private readonly rows: CounterRows

  constructor(engine: Engine) {
    this.engine = engine
    this.rows = new CounterRows(engine)
  }

  /** The counters of each demand's subject. */
  countersOf(accountId: string, demands: readonly Demand[]): Counters[] {
    let last: Counters | undefined
    return demands.map((demand) => {
      const account = accountOf(accountId, demand)
      // Most demands of a request are for one subject.
      if (last?.subject !== demand.subject || last.accountId !== account) {
        last = this.rows.find(account, demand.subject)
      }
      return last
    })
  }

  /** Whether all demands fit. */
  fit(demands: readonly Demand[], counters: readonly Counters[], nowMs: number): boolean {
    return this.states(demands, counters, nowMs).every(({ retryAfterMs }) => retryAfterMs === 0)
  }

  /** The state of each demand's limit before the request; two demands on one limit count together. */
  states(demands: readonly Demand[], counters: readonly Counters[], nowMs: number): LimitState[] {
    const alone = { nowMs, taken: 0 }
    return demands.map((demand, at) => {
      const state = stateOf(found(counters, at), demand, alone)
      const taken = takenBefore(demands, counters, at)
      if (taken === 0) return state
      const { retryAfterMs } = stateOf(found(counters, at), demand, { nowMs, taken })
      return { ...state, retryAfterMs }
    })
  }

  /** Takes all demands; the state of each limit afterwards. */
  take(
    demands: readonly Demand[],
    counters: readonly Counters[],
    { nowMs, arrivedMs = nowMs }: { readonly nowMs: number; readonly arrivedMs?: number },
  ): LimitState[] {
    demands.forEach((demand, at) => {
      const of = found(counters, at)
      this.rows.change(of)
      take(of, demand, { nowMs, arrivedMs })
    })
    const alone = { nowMs, taken: 0 }
    return demands.map((demand, at) => {
      const state = stateOf(found(counters, at), demand, alone)
      // The limit may be used up now, by this very request.
      return state.retryAfterMs === 0 ? state : { ...state, retryAfterMs: 0 }
    })
  }

  /** The state of each limit by itself, as committed. */
  look(accountId: string, demands: readonly Demand[], nowMs: number): LimitState[] {
    const alone = { nowMs, taken: 0 }
    return demands.map((demand) =>
      stateOf(this.rows.read(accountOf(accountId, demand), demand.subject), demand, alone),
    )
  }

  /** See `Ledger.addToBudget`. */
  add(
    accountId: string,
    demand: BudgetDemand | QuotaDemand,
    { period, total: all, sinceMs, isLast }: AddedUse,
  ): boolean {
    const counters = this.rows.find(accountOf(accountId, demand), demand.subject)
    const budget = budgetOf(counters, demand.kind)
    const { begun } = budget
    if (budget.period !== period || begun === undefined) return false
    this.rows.change(counters)
    const added = Math.max(begun.added, all)
    budget.spent += added - begun.added
    budget.begun = {
      begunMs: isLast ? 0 : begun.begunMs,
      sinceMs: Math.min(begun.sinceMs, Math.floor(sinceMs ?? 0)),
      added,
    }
    return true
  }

  /** See `Ledger.budgetMarks`. */
  marks(
    accountId: string,
    demands: readonly (BudgetDemand | QuotaDemand)[],
    nowMs: number,
  ): (BudgetMark | null)[] {
    return demands.map((demand) => {
      const counters = this.rows.read(accountOf(accountId, demand), demand.subject)
      const { period, begun } = budgetOf(counters, demand.kind)
      return period < periodOf(demand.kind, nowMs) ? null : markOf(period, begun)
    })
  }

  /** Replaces held amounts by the usage. */
  release(holds: readonly Hold[], usage: ActualUsage): void {
    for (const hold of holds) {
      const { counters: last, accountId, subject } = hold
      const counters = last?.isCurrent === true ? last : this.rows.find(accountId, subject)
      this.rows.change(counters)
      chargeActualUsage(counters, hold, usage)
    }
  }

  /** Takes all demands without a reservation, or none: then null. */
  raise(accountId: string, demands: Raise['demands'], nowMs: number): Raise | null {
    const counters = this.countersOf(accountId, demands)
    if (!this.fit(demands, counters, nowMs)) return null
    this.take(demands, counters, { nowMs })
    return { demands, day: dayOf(nowMs) }
  }

  /** Gives back what `raise` took. */
  lower(accountId: string, { demands, day }: Raise, nowMs: number): void {
    const holds = demands.map((demand): Hold => {
      const { subject } = demand
      const none = { tokens: null, rates: new Map(), slots: 0, budgets: new Map(), counters: null }
      const hold: Hold = { accountId: accountOf(accountId, demand), subject, ...none }
      if (!isWindowed(demand)) holdRate(hold, demand)
      else {
        const period = periodOf(demand.kind, day * DAY_MS)
        hold.budgets.set(demand.kind, { amount: windowAmounts(demand).cost, period })
      }
      return hold
    })
    this.release(holds, { tokens: 0, chargedTokens: 0, nanoUsd: 0, unitsOf: () => 0, nowMs })
  }

  /** Charges the budgets and quotas of the request's own time with usage that was not reserved. */
  charge(entry: LedgerEntry, demands: readonly Demand[]): void {
    const usage = { chargedTokens: chargedTokens(entry), nanoUsd: chargedNanoUsd(entry) }
    for (const demand of demands) {
      if (!isWindowed(demand)) continue
      const counters = this.rows.find(accountOf(entry.accountId, demand), demand.subject)
      const budget = budgetOf(counters, demand.kind)
      const period = periodOf(demand.kind, entry.atMs)
      if (period < budget.period) continue
      this.rows.change(counters)
      startPeriod(budget, period, entry.atMs)
      keep(counters, demand, entry.atMs)
      budget.spent += usedOf(demand.kind, usage) ?? windowAmounts(demand).cost
    }
  }

  /** Sets a budget to the amount that another ledger has counted, unless this one has a later period. */
  put({ accountId, kind, subject, period, amount, mark = null }: BudgetSpent): void {
    const counters = this.rows.find(accountId ?? '', subject)
    const budget = budgetOf(counters, kind)
    if (budget.period > period) return
    this.rows.change(counters)
    const begun =
      mark === null
        ? undefined
        : { begunMs: mark.begunMs ?? 0, sinceMs: mark.sinceMs ?? 0, added: mark.added }
    Object.assign(budget, { period, spent: amount, reserved: 0, begun })
  }

  /** Corrects the budgets and quotas of an account, if they still count the time of the entry. */
  correct(accountId: string, atMs: number, uses: readonly CorrectedUse[]): void {
    for (const { demand, amount } of uses) {
      const counters = this.rows.find(accountOf(accountId, demand), demand.subject)
      const budget = budgetOf(counters, demand.kind)
      if (budget.period !== periodOf(demand.kind, atMs)) continue
      this.rows.change(counters)
      budget.spent = Math.max(0, budget.spent + amount)
    }
  }

  /** Removes rows that nothing is held or spent of, and that were not used for a day. */
  async prune(nowMs: number): Promise<void> {
    const page = this.engine.prepare(
      `SELECT account_id, subject, places = 0 AND (day < ? OR day_spent = 0)
         AND (week < ? OR week_spent = 0) AND (month < ? OR month_spent = 0) AND max(requests_at_ms, tokens_at_ms) < ? AS is_idle,
         others, kept_until_ms
       FROM limits WHERE (account_id, subject) > (?, ?) ORDER BY account_id, subject LIMIT ?`,
    )
    const remove = this.engine.prepare('DELETE FROM limits WHERE account_id = ? AND subject = ?')
    const periods = (['usd_day', 'usd_week', 'usd_month'] as const).map((kind) => periodOf(kind, nowMs))
    const idle = [...periods, nowMs - DAY_MS]
    for (let after: [string, string] | null = ['', '']; after !== null;) {
      const from: [string, string] = after
      after = await this.engine.write('pruning limits', () => {
        const rows = page.all(...idle, ...from, PRUNED_AT_ONCE)
        for (const row of rows) {
          if (row['is_idle'] !== 1 || !areIdle(row, nowMs)) continue
          const [account, subject] = [textIn(row, 'account_id'), textIn(row, 'subject')]
          remove.run(account, subject)
          this.rows.forget(account, subject)
        }
        const last = rows.length < PRUNED_AT_ONCE ? undefined : rows.at(-1)
        return last === undefined ? null : [textIn(last, 'account_id'), textIn(last, 'subject')]
      })
    }
  }
}

/** Whether the budgets and quotas without columns of their own are over, and none has to be kept. */
function areIdle(row: Row, nowMs: number): boolean {
  const keptUntilMs = numberIn(row, 'kept_until_ms')
  if (keptUntilMs > nowMs) return false
  const { budgets, rates } = othersIn(row)
  if ([...(rates ?? [])].some(([, { atMs }]) => atMs >= nowMs - DAY_MS)) return false
  for (const [kind, { period, spent }] of budgets ?? []) {
    if (spent === 0 || (WINDOWS[kind].window === 'total' && keptUntilMs > 0)) continue
    if (period >= periodOf(kind, nowMs)) return false
  }
  return true
}

/** Notes for how long amounts that never reset are kept. */
function keep(counters: Counters, { keepMs }: { readonly keepMs?: number }, nowMs: number): void {
  if (keepMs !== undefined) counters.keptUntilMs = Math.max(counters.keptUntilMs, nowMs + keepMs)
}

/** The amount that earlier demands of the same request take of the same limit. */
function takenBefore(demands: readonly Demand[], counters: readonly Counters[], at: number): number {
  let sum = 0
  for (let before = 0; before < at; before += 1) {
    const demand = demands[before]
    if (demand === undefined || demand.kind !== demands[at]?.kind) continue
    if (counters[before] === counters[at]) sum += amountOf(demand)
  }
  return sum
}

function found(counters: readonly Counters[], at: number): Counters {
  const of = counters[at]
  if (of === undefined) throw new Error('a demand has no counters')
  return of
}

/**
 * Removes the units that have flowed back since. A clock that was set back starts again from its new time.
 *
 * Checks one demand against the counters of its subject, and takes its amount: requests and tokens of a
 * minute, slots of concurrent requests, and budgets. The formulas are those of src/store/limit-arithmetic.ts.
 */
function drain(rate: Rate, perMinute: number, nowMs: number): void {
  rate.units = remainingUnits(rate.units, nowMs - rate.atMs, perMinute)
  rate.atMs = nowMs
}

/** When a request takes its amounts, and when it arrived. */
interface Taking {
  readonly nowMs: number
  readonly arrivedMs: number
}

/** Takes the amount of a demand, whether it fits or not. */
function take(counters: Counters, demand: Demand, { nowMs, arrivedMs }: Taking): void {
  if ('perMinute' in demand) {
    const rate = rateOf(counters, demand.kind)
    drain(rate, demand.perMinute, nowMs)
    rate.units += unitsOfCost(demand.cost)
    return
  }
  switch (demand.kind) {
    case 'concurrent':
      counters.slots += 1
      return
    default: {
      const budget = budgetOf(counters, demand.kind)
      const { cost } = windowAmounts(demand)
      startPeriod(budget, periodOf(demand.kind, nowMs), arrivedMs)
      keep(counters, demand, nowMs)
      budget.spent += cost
      if (demand.kind !== 'requests_total') budget.reserved += cost
    }
  }
}

/** The time of a state, and the amount that earlier demands of the same request take of the limit. */
interface StateQuery {
  readonly nowMs: number
  readonly taken: number
}

/** The state of the demand's limit. */
function stateOf(counters: Counters, demand: Demand, { nowMs, taken }: StateQuery): LimitState {
  if ('perMinute' in demand) {
    const units = unitsOf(rateOf(counters, demand.kind), demand, nowMs) + unitsOfCost(taken)
    return rateState(units, demand.perMinute, demand.cost)
  }
  switch (demand.kind) {
    case 'concurrent':
      return slotState(counters.slots + taken, demand.limit)
    default: {
      const { limit, cost } = windowAmounts(demand)
      const budget = budgetOf(counters, demand.kind)
      const isOver = periodOf(demand.kind, nowMs) > budget.period
      const [spent, reserved] = isOver ? [0, 0] : [budget.spent, budget.reserved]
      return budgetState({ limit, spent: spent + taken, reserved }, cost, leftOf(demand.kind, nowMs))
    }
  }
}

function unitsOf({ units, atMs }: Rate, { perMinute }: RateDemand, nowMs: number): number {
  return remainingUnits(units, nowMs - atMs, perMinute)
}

/** The amount that a demand takes: requests, tokens, slots or nano-dollars. */
function amountOf(demand: Demand): number {
  if ('perMinute' in demand) return demand.cost
  switch (demand.kind) {
    case 'concurrent':
      return 1
    default:
      return windowAmounts(demand).cost
  }
}

/** The usage that replaces a reservation; null is unknown, and the reserved amount stays charged. */
interface ActualUsage {
  /** For limits of a minute. */
  readonly tokens: number | null
  /** For limits of a day, week or month and in all. */
  readonly chargedTokens: number | null
  readonly nanoUsd: number | null
  readonly unitsOf: (unit: LimitedUnit) => number | null
  /** Ms since 1970. */
  readonly nowMs: number
}

/**
 * Replaces the amounts that a request holds of the counters by its usage, and frees its slots.
 *
 * Corrects the counters of limits when a request is settled: its reserved tokens and cost are replaced by the
 * amounts that it used.
 */
export function chargeActualUsage(
  counters: Counters,
  { tokens, rates, slots, budgets }: Hold,
  usage: ActualUsage,
): void {
  counters.slots = Math.max(0, counters.slots - slots)
  if (tokens !== null) correctRate(counters.tokens, tokens, { used: usage.tokens, nowMs: usage.nowMs })
  for (const [kind, held] of rates) {
    correctRate(rateOf(counters, kind), held, { used: usage.unitsOf(unitOfKind(kind)), nowMs: usage.nowMs })
  }
  for (const [kind, held] of budgets) {
    chargeBudget(budgetOf(counters, kind), held, usedOf(kind, usage))
  }
}

/** Replaces the held amount by the used one. */
function correctRate(
  rate: Rate,
  { cost, perMinute }: RateHold,
  { used, nowMs }: { readonly used: number | null; readonly nowMs: number },
): void {
  if (used === null) return
  drain(rate, perMinute, nowMs)
  rate.units = Math.max(0, rate.units + unitsOfCost(used) - unitsOfCost(cost))
}

/** Whole: a cost has three digits after the point at most. */
function unitsOfCost(cost: number): number {
  return Math.round(cost * UNITS)
}

/** What the usage is for a budget or quota; null: unknown. */
function usedOf(
  kind: WindowKind,
  { chargedTokens, nanoUsd }: Pick<ActualUsage, 'chargedTokens' | 'nanoUsd'>,
): number | null {
  switch (WINDOWS[kind].counts) {
    case 'usd':
      return nanoUsd
    case 'tokens':
      return chargedTokens
    default:
      return 1
  }
}

/** Gives back the part of a held amount that was not spent; nothing if its period is over. */
function chargeBudget(budget: Budget, { amount, period }: BudgetHold, used: number | null): void {
  if (budget.period !== period) return
  budget.reserved = Math.max(0, budget.reserved - amount)
  if (used !== null) budget.spent = Math.max(0, budget.spent + used - amount)
}
