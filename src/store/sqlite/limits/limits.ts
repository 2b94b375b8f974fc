/**
 * Limits in SQLite: checks demands, takes them all or none, and corrects the counters when a request is
 * settled. The arithmetic runs inside the transaction that the admissions and settlements of one turn of the
 * event loop share, so that limits hold across processes.
 */
import type { LedgerEntry } from '../../../ledger/entry.js'
import { dayOf, isBudget, periodOf } from '../../../limits/arithmetic/budget-period.js'
import type { BudgetSpent, Demand, LimitState, Raise } from '../../ledger.js'
import { chargedNanoUsd } from '../../records/count-usage.js'
import { textIn } from '../driver.js'
import type { Engine } from '../engine.js'
import { CounterRows } from './counter-rows.js'
import { chargeActualUsage, type ActualUsage } from './charge-actual-usage.js'
import { amountOf, stateOf, take } from './check-demand.js'
import { accountOf, budgetOf, startPeriod, type Counters } from './counters.js'
import type { Hold } from './holds.js'

/** Rows looked at in one transaction of pruning; other writes run in between. */
const PRUNED_AT_ONCE = 500
const DAY_MS = 86_400_000

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
  take(demands: readonly Demand[], counters: readonly Counters[], nowMs: number): LimitState[] {
    demands.forEach((demand, at) => {
      const of = found(counters, at)
      this.rows.change(of)
      take(of, demand, nowMs)
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
    this.take(demands, counters, nowMs)
    return { demands, day: dayOf(nowMs) }
  }

  /** Gives back what `raise` took. */
  lower(accountId: string, { demands, day }: Raise, nowMs: number): void {
    const holds = demands.map((demand): Hold => {
      const { subject } = demand
      const budgets = { usd_day: null, usd_week: null, usd_month: null }
      const none = { tokens: null, slots: 0, ...budgets, counters: null }
      const hold: Hold = { accountId: accountOf(accountId, demand), subject, ...none }
      if ('cost' in demand) {
        hold.tokens = { cost: demand.cost, perMinute: demand.perMinute }
      } else {
        const period = periodOf(demand.kind, day * DAY_MS)
        hold[demand.kind] = { nanoUsd: demand.costNanoUsd, period }
      }
      return hold
    })
    this.release(holds, { tokens: 0, nanoUsd: 0, nowMs })
  }

  /** Charges the budgets of the request's own day, week and month with usage that was not reserved. */
  charge(entry: LedgerEntry, demands: readonly Demand[]): void {
    for (const demand of demands) {
      if (!isBudget(demand)) continue
      const counters = this.rows.find(accountOf(entry.accountId, demand), demand.subject)
      const budget = budgetOf(counters, demand.kind)
      const period = periodOf(demand.kind, entry.atMs)
      if (period < budget.period) continue
      this.rows.change(counters)
      startPeriod(budget, period)
      budget.spent += chargedNanoUsd(entry) ?? demand.costNanoUsd
    }
  }

  /** Sets a budget to the amount that another ledger has counted, unless this one has a later period. */
  put({ accountId, kind, subject, period, nanoUsd }: BudgetSpent): void {
    const counters = this.rows.find(accountId ?? '', subject)
    const budget = budgetOf(counters, kind)
    if (budget.period > period) return
    this.rows.change(counters)
    Object.assign(budget, { period, spent: nanoUsd, reserved: 0 })
  }

  /** Removes rows that nothing is held or spent of, and that were not used for a day. */
  async prune(nowMs: number): Promise<void> {
    const page = this.engine.prepare(
      `SELECT account_id, subject, places = 0 AND (day < ? OR day_spent = 0)
         AND (week < ? OR week_spent = 0) AND (month < ? OR month_spent = 0) AND max(requests_at_ms, tokens_at_ms) < ? AS is_idle
       FROM limits WHERE (account_id, subject) > (?, ?) ORDER BY account_id, subject LIMIT ?`,
    )
    const remove = this.engine.prepare('DELETE FROM limits WHERE account_id = ? AND subject = ?')
    const periods = (['usd_day', 'usd_week', 'usd_month'] as const).map((kind) =>
      periodOf(kind, nowMs),
    )
    const idle = [...periods, nowMs - DAY_MS]
    for (let after: [string, string] | null = ['', '']; after !== null;) {
      const from: [string, string] = after
      after = await this.engine.write('pruning limits', () => {
        const rows = page.all(...idle, ...from, PRUNED_AT_ONCE)
        for (const row of rows) {
          if (row['is_idle'] !== 1) continue
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

/** The amount that earlier demands of the same request take of the same limit. */
function takenBefore(
  demands: readonly Demand[],
  counters: readonly Counters[],
  at: number,
): number {
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
