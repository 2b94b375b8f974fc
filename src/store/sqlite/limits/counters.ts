/** The counters of one subject: a row of `limits`. `check-demand.ts` computes with them. */
import type { BudgetKind } from '../../../limits/arithmetic/budget-period.js'
import type { Demand } from '../../ledger.js'
import { numberIn, type Row } from '../driver.js'

/** A rate: the units that have not flowed back at a time. */
export interface Rate {
  units: number
  atMs: number
}

/**
 * A budget: its day, week or month (since 1970, UTC), and the nano-dollars spent; those reserved are part of
 * them.
 */
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
  readonly week: Budget
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
    week: { period: of('week'), spent: of('week_spent'), reserved: of('week_reserved') },
    month: { period: of('month'), spent: of('month_spent'), reserved: of('month_reserved') },
    isChanged: false,
    isCurrent: true,
  }
}

/** The budget of a kind. */
export function budgetOf({ day, week, month }: Counters, kind: BudgetKind): Budget {
  return kind === 'usd_day' ? day : kind === 'usd_week' ? week : month
}

/**
 * Starts a new period; never an earlier one, so that a clock that is set back does not refill a budget.
 */
export function startPeriod(budget: Budget, period: number): void {
  if (period > budget.period) Object.assign(budget, { period, spent: 0, reserved: 0 })
}
