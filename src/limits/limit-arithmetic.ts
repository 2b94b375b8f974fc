/**
 * The arithmetic of limits: a rate as GCRA, a number of slots, and a budget that is whole again when
 * the calendar says so. Knows no engine and no clock; whole numbers in, whole numbers out.
 *
 * A rate keeps what was taken and has not flowed back, in 1/60,000 of a request or token: a limit of
 * n a minute then gives back exactly n such units a ms, and no fraction is ever rounded. (It is the
 * "theoretical arrival time" of GCRA times the rate, so that a changed limit finds its past intact.)
 * Exact up to 1.5e11 a minute, where units reach 2^53; beyond, good to 16 digits and never below zero.
 * An engine with a script of its own mirrors these formulas.
 */

/** Units of one request or token. */
export const UNITS = 60_000

/** What to wait for requests that run to end: nobody knows when. */
export const RUNNING_RETRY_MS = 1_000

/** How a limit stands; see `Standing` of the ledger, which has the same fields. */
export interface LimitLevel {
  readonly limit: number
  readonly remaining: number
  readonly resetMs: number
  readonly retryAfterMs: number
}

/** What of `units` has not flowed back after so long; a clock that went back gives nothing back. */
export function remainingUnits(units: number, elapsedMs: number, perMinute: number): number {
  return elapsedMs <= 0 ? units : Math.max(0, units - elapsedMs * perMinute)
}

/** Whether `cost` more fit beside `units`. */
export function rateFits(units: number, perMinute: number, cost: number): boolean {
  return units + cost * UNITS <= perMinute * UNITS
}

/** How a rate stands with `units` taken, for a request of `cost`. */
export function rateState(units: number, perMinute: number, cost: number): LimitLevel {
  return {
    limit: perMinute,
    remaining: Math.max(0, perMinute - Math.ceil(units / UNITS)),
    resetMs: perMinute > 0 ? Math.ceil(units / perMinute) : 0,
    retryAfterMs: rateRetryMs(units, perMinute, cost),
  }
}

/** How a number of slots stands with `taken` of them taken. */
export function slotState(taken: number, limit: number): LimitLevel {
  const retryAfterMs = taken < limit ? 0 : limit > 0 ? RUNNING_RETRY_MS : -1
  return { limit, remaining: Math.max(0, limit - taken), resetMs: 0, retryAfterMs }
}

/**
 * How a budget stands with `spent` of it spent, `leftMs` before its day or month ends. `reserved` of that is the
 * most that requests may cost which run: what they do not use can be had when they end.
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
