/**
 * Rate limits by GCRA. Pure; whole numbers in, whole numbers out.
 *
 * A rate stores the used units that have not been refilled yet. A unit is 1/60,000 of a request or token, so
 * a limit of n a minute refills exactly n units a ms and no fraction is rounded. (The value is the
 * "theoretical arrival time" of GCRA times the rate, so it stays valid if the limit changes.) Exact up to
 * 1.5e11 a minute, where units reach 2^53; above that, accurate to 16 digits and never negative. Lua scripts
 * of the Redis store implement the same formulas.
 */
import type { LimitLevel } from './limit-level.js'

/** Units of one request or token. */
export const UNITS = 60_000

/**
 * The part of `units` that is not refilled after the elapsed time; a clock that went backwards refills
 * nothing.
 */
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

function rateRetryMs(units: number, perMinute: number, cost: number): number {
  if (rateFits(units, perMinute, cost)) return 0
  if (cost > perMinute || perMinute <= 0) return -1
  return Math.ceil((units - (perMinute - cost) * UNITS) / perMinute)
}
