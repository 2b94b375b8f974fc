/**
 * The counters of one subject (a row of `limits`), and the arithmetic of one demand on them. The formulas are those
 * of src/limits/limit-arithmetic.ts.
 */
import {
  budgetState,
  dayOf,
  remainingUnits,
  leftOfDay,
  leftOfMonth,
  monthOf,
  slotState,
  rateState,
  UNITS,
} from '../../../limits/limit-arithmetic.js'
import type { BudgetDemand, Demand, LimitState, RateDemand } from '../../ledger.js'
import { numberIn, type Row } from '../driver.js'

/** A rate: the units that have not flowed back at a time. */
export interface Rate {
  units: number
  atMs: number
}

/** A budget: its day or month (since 1970, UTC), and the nano-dollars spent; those reserved are part of them. */
export interface Budget {
  period: number
  spent: number
  reserved: number
}

/** A row of `limits` in memory. */
export interface Counters {
  /** The row's number; null if it is not written yet. */
  id: number | null
  /** Empty for a subject that accounts share. */
  readonly accountId: string
  readonly subject: string
  readonly requests: Rate
  readonly tokens: Rate
  slots: number
  readonly day: Budget
  readonly month: Budget
  isChanged: boolean
  /** False once another process may have changed the row: it must be read again. */
  isCurrent: boolean
}

/** The account that a demand is counted for; empty if accounts share the limit. */
export function accountOf(accountId: string, { shared }: Pick<Demand, 'shared'>): string {
  return shared ? '' : accountId
}

/** The counters in a row, or counters of which nothing is taken. */
export function countersIn(accountId: string, subject: string, row: Row | undefined): Counters {
  const of = (name: string) => (row === undefined ? 0 : numberIn(row, name))
  return {
    id: row === undefined ? null : numberIn(row, 'id'),
    accountId,
    subject,
    requests: { units: of('requests'), atMs: of('requests_at_ms') },
    tokens: { units: of('tokens'), atMs: of('tokens_at_ms') },
    slots: of('places'),
    day: { period: of('day'), spent: of('day_spent'), reserved: of('day_reserved') },
    month: { period: of('month'), spent: of('month_spent'), reserved: of('month_reserved') },
    isChanged: false,
    isCurrent: true,
  }
}

/** The budget of a day or month. */
export function budgetOf({ day, month }: Counters, kind: BudgetDemand['kind']): Budget {
  return kind === 'usd_day' ? day : month
}

/** Days or months since 1970 (UTC). */
export function periodOf(kind: BudgetDemand['kind'], atMs: number): number {
  return kind === 'usd_day' ? dayOf(atMs) : monthOf(atMs)
}

/** Starts a new day or month; never an earlier one, so that a clock that is set back does not refill a budget. */
export function startPeriod(budget: Budget, period: number): void {
  if (period > budget.period) Object.assign(budget, { period, spent: 0, reserved: 0 })
}

/** Removes the units that have flowed back since. A clock that was set back starts again from its new time. */
export function drain(rate: Rate, perMinute: number, nowMs: number): void {
  rate.units = remainingUnits(rate.units, nowMs - rate.atMs, perMinute)
  rate.atMs = nowMs
}

/** Takes the amount of a demand, whether it fits or not. */
export function take(counters: Counters, demand: Demand, nowMs: number): void {
  switch (demand.kind) {
    case 'requests':
    case 'tokens':
      drain(counters[demand.kind], demand.perMinute, nowMs)
      counters[demand.kind].units += demand.cost * UNITS
      return
    case 'concurrent':
      counters.slots += 1
      return
    case 'usd_day':
    case 'usd_month': {
      const budget = budgetOf(counters, demand.kind)
      startPeriod(budget, periodOf(demand.kind, nowMs))
      budget.spent += demand.costNanoUsd
      budget.reserved += demand.costNanoUsd
      return
    }
    default:
      demand satisfies never
  }
}

/** The state of the demand's limit if `more` were taken besides. */
export function stateOf(
  counters: Counters,
  demand: Demand,
  more: number,
  nowMs: number,
): LimitState {
  switch (demand.kind) {
    case 'requests':
    case 'tokens': {
      const units = unitsOf(counters[demand.kind], demand, nowMs) + more * UNITS
      return rateState(units, demand.perMinute, demand.cost)
    }
    case 'concurrent':
      return slotState(counters.slots + more, demand.limit)
    case 'usd_day':
    case 'usd_month': {
      const { limitNanoUsd, costNanoUsd } = demand
      const budget = budgetOf(counters, demand.kind)
      const leftMs = demand.kind === 'usd_day' ? leftOfDay(nowMs) : leftOfMonth(nowMs)
      const isOver = periodOf(demand.kind, nowMs) > budget.period
      const [spent, reserved] = isOver ? [0, 0] : [budget.spent, budget.reserved]
      return budgetState(spent + more, reserved, limitNanoUsd, costNanoUsd, leftMs)
    }
    default:
      return demand satisfies never
  }
}

function unitsOf({ units, atMs }: Rate, { perMinute }: RateDemand, nowMs: number): number {
  return remainingUnits(units, nowMs - atMs, perMinute)
}

/** The amount that a demand takes: requests, tokens, slots or nano-dollars. */
export function amountOf(demand: Demand): number {
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
