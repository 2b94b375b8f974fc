/** The calendar days and months (UTC) of budgets, and the time until the next one. */

const DAY_MS = 86_400_000
/** The month that was computed last; only an optimisation. */
let lastMonth = { month: 0, fromMs: 0, toMs: 0 }

/** Days since 1970 (UTC). */
export function dayOf(nowMs: number): number {
  return Math.floor(nowMs / DAY_MS)
}

/** Ms until the next day (UTC). */
export function leftOfDay(nowMs: number): number {
  return (dayOf(nowMs) + 1) * DAY_MS - nowMs
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

/** Ms until the next month (UTC). */
export function leftOfMonth(nowMs: number): number {
  return Date.UTC(1970, monthOf(nowMs) + 1) - nowMs
}
