/** The calendar days, weeks and months (UTC) of budgets, and the time until the next one. */

/** The kinds of budgets, and their periods. */
export const BUDGET_PERIODS = { usd_day: 'day', usd_week: 'week', usd_month: 'month' } as const

/** The kind of a budget. */
export type BudgetKind = keyof typeof BUDGET_PERIODS

const DAY_MS = 86_400_000
const WEEK_DAYS = 7
/** 1970 began on a Thursday, three days after the Monday of its week. */
const DAYS_BEFORE_1970 = 3
/** The month that was computed last; only an optimisation. */
let lastMonth = { month: 0, fromMs: 0, toMs: 0 }

/** Whether the text is the kind of a budget. */
export function isBudgetKind(kind: unknown): kind is BudgetKind {
  return kind === 'usd_day' || kind === 'usd_week' || kind === 'usd_month'
}

/** Whether a limit is a budget. */
export function isBudget<D extends { readonly kind: string }>(
  demand: D,
): demand is Extract<D, { readonly kind: BudgetKind }> {
  return isBudgetKind(demand.kind)
}

/** The days, weeks or months since 1970 (UTC); weeks begin on Monday. */
export function periodOf(kind: BudgetKind, nowMs: number): number {
  switch (kind) {
    case 'usd_day':
      return dayOf(nowMs)
    case 'usd_week':
      return weekOf(nowMs)
    case 'usd_month':
      return monthOf(nowMs)
    default:
      return kind satisfies never
  }
}

/** Ms until the next day, week or month (UTC). */
export function leftOf(kind: BudgetKind, nowMs: number): number {
  switch (kind) {
    case 'usd_day':
      return (dayOf(nowMs) + 1) * DAY_MS - nowMs
    case 'usd_week':
      return ((weekOf(nowMs) + 1) * WEEK_DAYS - DAYS_BEFORE_1970) * DAY_MS - nowMs
    case 'usd_month':
      return Date.UTC(1970, monthOf(nowMs) + 1) - nowMs
    default:
      return kind satisfies never
  }
}

/** Days since 1970 (UTC). */
export function dayOf(nowMs: number): number {
  return Math.floor(nowMs / DAY_MS)
}

function weekOf(nowMs: number): number {
  return Math.floor((dayOf(nowMs) + DAYS_BEFORE_1970) / WEEK_DAYS)
}

/** Months since 1970 (UTC). */
export function monthOf(nowMs: number): number {
  // A Date takes longer than the rest of a decision, and the month is nearly always the last one.
  if (nowMs < lastMonth.fromMs || nowMs >= lastMonth.toMs) {
    const date = new Date(nowMs)
    const month = (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth()
    lastMonth = { month, fromMs: Date.UTC(1970, month), toMs: Date.UTC(1970, month + 1) }
  }
  return lastMonth.month
}
