/** Forecasts of spend at the end of a month. Pure. */
import { monthOf } from '../../store/limit-arithmetic.js'

const HOUR_MS = 3_600_000
/** A month is not forecast before this share of it has passed. */
const MIN_SHARE = 0.03

/** The month (UTC) of a time: its first moment, and that of the next month. */
export function monthAt(ms: number): { readonly fromMs: number; readonly toMs: number } {
  const month = monthOf(ms)
  return { fromMs: Date.UTC(1970, month), toMs: Date.UTC(1970, month + 1) }
}

/**
 * The spend at the end of the period if it goes on as until now; null in the first hour and the first 3 % of
 * the period.
 */
export function linearForecast(
  spent: number,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
  nowMs: number,
): number | null {
  const [passed, whole] = [nowMs - fromMs, toMs - fromMs]
  if (passed < HOUR_MS || passed < MIN_SHARE * whole) return null
  return Math.round((spent * whole) / passed)
}
