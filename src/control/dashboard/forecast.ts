/** Forecasts of spend at the end of a period. Pure. */
import { DAY_MS, HOUR_MS } from '../../base/time-units.js'
import { dayOf, monthOf } from '../../store/limit-arithmetic.js'

/** A period is not forecast before this share of it has passed. */
const MIN_SHARE = 0.03
/** The days before today that the forecast by weekday is made of. */
export const FORECAST_DAYS = 28
/** This number of them must have requests. */
const MIN_DAYS = 14

/** A period, its end exclusive; ms since 1970. */
export interface Span {
  readonly fromMs: number
  readonly toMs: number
}

/** The month (UTC) of a time: its first moment, and that of the next month. */
export function monthAt(ms: number): Span {
  const month = monthOf(ms)
  return { fromMs: Date.UTC(1970, month), toMs: Date.UTC(1970, month + 1) }
}

/**
 * The spend at the end of the period if it goes on as until now; null in the first hour and the first 3 % of
 * the period.
 */
export function linearForecast(spent: number, { fromMs, toMs }: Span, nowMs: number): number | null {
  const [passed, whole] = [nowMs - fromMs, toMs - fromMs]
  if (passed < HOUR_MS || passed < MIN_SHARE * whole) return null
  return Math.round((spent * whole) / passed)
}

/**
 * The spend at the end of the period if each day that is left costs as much as that weekday did in the last
 * four weeks; null if fewer than 14 of these days have any. `days` has the spend of the 28 days before today
 * (UTC), the oldest first.
 */
export function weekdayForecast(
  spent: number,
  days: readonly number[],
  { toMs }: Span,
  nowMs: number,
): number | null {
  if (days.filter((spend) => spend > 0).length < MIN_DAYS) return null
  let sum = spent
  for (const { spend } of daysLeft(days, toMs, nowMs)) sum += spend
  return Math.round(sum)
}

/** What is left of the days of the period, each with its expected spend. */
function* daysLeft(
  days: readonly number[],
  toMs: number,
  nowMs: number,
): Generator<{ readonly startMs: number; readonly spend: number }> {
  const today = dayOf(nowMs)
  for (let day = today; day * DAY_MS < toMs; day += 1) {
    const weekday = [0, 1, 2, 3].map((week) => days[((day - today) % 7) + week * 7] ?? 0)
    const mean = weekday.reduce((sum, spend) => sum + spend, 0) / weekday.length
    const part = day === today ? ((day + 1) * DAY_MS - nowMs) / DAY_MS : 1
    yield { startMs: day * DAY_MS, spend: mean * part }
  }
}

/** A budget in its running period. */
interface Budget extends Span {
  readonly spent: number
  readonly limit: number
}

/**
 * The start of the day (UTC) on which the spend passes the budget by a forecast; null if it does not within
 * the period. `days`: by weekday; null: linear.
 */
export function overOn(
  { spent, limit, fromMs, toMs }: Budget,
  days: readonly number[] | null,
  nowMs: number,
): number | null {
  if (days === null) {
    const atMs = spent === 0 ? Infinity : fromMs + ((nowMs - fromMs) * limit) / spent
    return atMs < toMs ? dayOf(Math.max(atMs, nowMs)) * DAY_MS : null
  }
  let sum = spent
  for (const { startMs, spend } of daysLeft(days, toMs, nowMs)) {
    sum += spend
    if (sum > limit) return startMs
  }
  return null
}
