/**
 * One row of `limits`, and the arithmetic of one demand on it; formulas are those of src/limits/bucket.ts.
 */
import {
  budgetStanding,
  dayOf,
  drained,
  leftOfDay,
  leftOfMonth,
  monthOf,
  placeStanding,
  rateStanding,
  UNITS,
} from '../../../limits/bucket.js'
import type { BudgetDemand, Demand, RateDemand, LimitState } from '../../ledger.js'
import { numberIn, type Row } from '../driver.js'

/** What a reservation holds of a subject until it ends; `account` is empty for a shared subject. */
export type Hold =
  | readonly [kind: 'tokens', account: string, subject: string, cost: number, perMinute: number]
  | readonly [kind: 'concurrent', account: string, subject: string]
  | readonly [
      kind: BudgetDemand['kind'],
      account: string,
      subject: string,
      cost: number,
      period: number,
    ]

/** A rate: what has not flowed back, and when that was so. */
export interface Rate {
  units: number
  atMs: number
}

/** A budget: of which day or month, and what of it is spent. */
export interface Budget {
  period: number
  spent: number
  reserved: number
}

/** A row of `limits`. */
export interface Subject {
  /** The row's number; null: it is not written yet. */
  id: number | null
  readonly account: string
  readonly subject: string
  readonly requests: Rate
  readonly tokens: Rate
  places: number
  readonly day: Budget
  readonly month: Budget
  isChanged: boolean
}

/** An account's own subjects are apart from everybody else's; a shared one is everybody's. */
export function accountOf(accountId: string, { shared }: Pick<Demand, 'shared'>): string {
  return shared ? '' : accountId
}

/** What tells rows apart in memory. */
export function nameOf({ account, subject }: Pick<Subject, 'account' | 'subject'>): string {
  return `${account}\0${subject}`
}

/** The row, or one of which nothing is taken. */
export function subjectOf(account: string, subject: string, row: Row | undefined): Subject {
  const of = (name: string) => (row === undefined ? 0 : numberIn(row, name))
  return {
    id: row === undefined ? null : numberIn(row, 'id'),
    account,
    subject,
    requests: { units: of('requests'), atMs: of('requests_at_ms') },
    tokens: { units: of('tokens'), atMs: of('tokens_at_ms') },
    places: of('places'),
    day: { period: of('day'), spent: of('day_spent'), reserved: of('day_reserved') },
    month: { period: of('month'), spent: of('month_spent'), reserved: of('month_reserved') },
    isChanged: false,
  }
}

/** The budget of a day or month. */
export function budgetOf({ day, month }: Subject, kind: BudgetDemand['kind']): Budget {
  return kind === 'usd_day' ? day : month
}

/** Days or months since 1970 (UTC). */
export function periodOf(kind: BudgetDemand['kind'], atMs: number): number {
  return kind === 'usd_day' ? dayOf(atMs) : monthOf(atMs)
}

/** Starts a new day or month. Never an earlier one: a clock that is set back would make a budget whole twice. */
export function begin(budget: Budget, period: number): void {
  if (period > budget.period) Object.assign(budget, { period, spent: 0, reserved: 0 })
}

/** Lets flow back what has by now; a clock that was set back starts anew from there. */
export function drain(rate: Rate, perMinute: number, nowMs: number): void {
  rate.units = drained(rate.units, nowMs - rate.atMs, perMinute)
  rate.atMs = nowMs
}

/** How the demand stands if `more` is taken besides what the row says. */
export function standingOf(
  subject: Subject | undefined,
  demand: Demand,
  more: number,
  nowMs: number,
): LimitState {
  if (subject === undefined) throw new Error('a demand without a subject')
  switch (demand.kind) {
    case 'requests':
    case 'tokens': {
      const units = unitsOf(subject[demand.kind], demand, nowMs) + more * UNITS
      return rateStanding(units, demand.perMinute, demand.cost)
    }
    case 'concurrent':
      return placeStanding(subject.places + more, demand.limit)
    case 'usd_day':
    case 'usd_month': {
      const { limitNanoUsd, costNanoUsd } = demand
      const budget = budgetOf(subject, demand.kind)
      const leftMs = demand.kind === 'usd_day' ? leftOfDay(nowMs) : leftOfMonth(nowMs)
      const isOver = periodOf(demand.kind, nowMs) > budget.period
      const [spent, reserved] = isOver ? [0, 0] : [budget.spent, budget.reserved]
      return budgetStanding(spent + more, reserved, limitNanoUsd, costNanoUsd, leftMs)
    }
    default:
      return demand satisfies never
  }
}

function unitsOf({ units, atMs }: Rate, { perMinute }: RateDemand, nowMs: number): number {
  return drained(units, nowMs - atMs, perMinute)
}

/** What demands before this one take of the same; two rules of one subject both count. */
export function ahead(
  subjects: readonly Subject[],
  demands: readonly Demand[],
  at: number,
): number {
  const own = demands[at]
  let sum = 0
  for (let before = 0; before < at; before += 1) {
    const demand = demands[before]
    if (demand === undefined || demand.kind !== own?.kind) continue
    if (subjects[before] === subjects[at]) sum += amountOf(demand)
  }
  return sum
}

function amountOf(demand: Demand): number {
  switch (demand.kind) {
    case 'requests':
    case 'tokens':
      return demand.cost
    case 'concurrent':
      return 1
    case 'usd_day':
    case 'usd_month':
      return demand.costNanoUsd
    default:
      return demand satisfies never
  }
}

/** What a reservation for these demands has to remember. */
export function holdsOf(
  accountId: string,
  demands: readonly Demand[],
  subjects: readonly Subject[],
  nowMs: number,
): Hold[] {
  const holds: Hold[] = []
  demands.forEach((demand, at) => {
    const account = accountOf(accountId, demand)
    const { subject } = demand
    switch (demand.kind) {
      case 'requests':
        return
      case 'tokens':
        return void holds.push([demand.kind, account, subject, demand.cost, demand.perMinute])
      case 'concurrent':
        return void holds.push([demand.kind, account, subject])
      case 'usd_day':
      case 'usd_month': {
        const row = subjects[at]
        const began = row === undefined ? 0 : budgetOf(row, demand.kind).period
        const period = Math.max(began, periodOf(demand.kind, nowMs))
        return void holds.push([demand.kind, account, subject, demand.costNanoUsd, period])
      }
      default:
        demand satisfies never
    }
  })
  return holds
}
