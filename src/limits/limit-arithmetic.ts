/**
 * The arithmetic of limits: rates by GCRA, concurrency slots, and budgets of a calendar day or month. Pure; whole numbers
 * in, whole numbers out.
 *
 * A rate stores the used units that have not been refilled yet. A unit is 1/60,000 of a request or token, so a limit of n a
 * minute refills exactly n units a ms and no fraction is rounded. (The value is the "theoretical arrival time" of GCRA times
 * the rate, so it stays valid if the limit changes.) Exact up to 1.5e11 a minute, where units reach 2^53; above that,
 * accurate to 16 digits and never negative. Lua scripts of the Redis store implement the same formulas.
 */

/** Units of one request or token. */
export const UNITS = 60_000

/** `retryAfterMs` if a running request must end first, at an unknown time. */
export const RUNNING_RETRY_MS = 1_000

/** The level of a limit; the fields are those of `LimitState` of the ledger. */
export interface LimitLevel {
  readonly limit: number
  readonly remaining: number
  readonly resetMs: number
  readonly retryAfterMs: number
}

/** The part of `units` that is not refilled after the elapsed time; a clock that went backwards refills nothing. */
export function remainingUnits(units: number, elapsedMs: number, perMinute: number): number {
  return elapsedMs <= 0 ? units : Math.max(0, units - elapsedMs * perMinute)
}

/** Whether `cost` fits in addition to `units`. */
export function rateFits(units: number, perMinute: number, cost: number): boolean {
  return units + cost * UNITS <= perMinute * UNITS
}

/** The level of a rate with `units` used, for a request of `cost`. */
export function rateState(units: number, perMinute: number, cost: number): LimitLevel {
  return {
    limit: perMinute,
    remaining: Math.max(0, perMinute - Math.ceil(units / UNITS)),
    resetMs: perMinute > 0 ? Math.ceil(units / perMinute) : 0,
    retryAfterMs: rateRetryMs(units, perMinute, cost),
  }
}

/** The level of a concurrency limit with `taken` slots in use. */
export function slotState(taken: number, limit: number): LimitLevel {
  const retryAfterMs = taken < limit ? 0 : limit > 0 ? RUNNING_RETRY_MS : -1
  return { limit, remaining: Math.max(0, limit - taken), resetMs: 0, retryAfterMs }
}

/**
 * The level of a budget with `spent` of it used, `leftMs` before its day or month ends. `spent` includes `reserved`, the
 * maximum cost of running requests, whose unused part becomes available when they end.
 */
export function budgetState(
  spent: number,
  reserved: number,
  limit: number,
  cost: number,
  leftMs: number,
): LimitLevel {
  return {
    limit,
    remaining: Math.max(0, limit - spent),
    resetMs: spent > 0 ? leftMs : 0,
    retryAfterMs: budgetRetryMs(spent, reserved, limit, cost, leftMs),
  }
}

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

const DAY_MS = 86_400_000
/** The month that was computed last; only an optimisation. */
let lastMonth = { month: 0, fromMs: 0, toMs: 0 }

function rateRetryMs(units: number, perMinute: number, cost: number): number {
  if (rateFits(units, perMinute, cost)) return 0
  if (cost > perMinute || perMinute <= 0) return -1
  return Math.ceil((units - (perMinute - cost) * UNITS) / perMinute)
}

function budgetRetryMs(
  spent: number,
  reserved: number,
  limit: number,
  cost: number,
  leftMs: number,
): number {
  if (cost > limit) return -1
  if (spent + cost <= limit) return 0
  return spent - reserved + cost <= limit ? Math.min(RUNNING_RETRY_MS, leftMs) : leftMs
}
