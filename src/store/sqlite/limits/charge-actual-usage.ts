/**
 * Corrects the counters of limits when a request is settled: its reserved tokens and cost are replaced by the
 * amounts that it used.
 */
import { UNITS } from '../../../limits/arithmetic/rate-limit.js'
import { drain } from './check-demand.js'
import type { Budget, Counters } from './counters.js'
import type { BudgetHold, Hold } from './holds.js'

/** The usage that replaces a reservation; null is unknown, and the reserved amount stays charged. */
export interface ActualUsage {
  readonly tokens: number | null
  readonly nanoUsd: number | null
  /** Ms since 1970. */
  readonly nowMs: number
}

/** Replaces the amounts that a request holds of the counters by its usage, and frees its slots. */
export function chargeActualUsage(
  counters: Counters,
  { tokens, slots, usd_day, usd_week, usd_month }: Hold,
  usage: ActualUsage,
): void {
  counters.slots = Math.max(0, counters.slots - slots)
  if (tokens !== null && usage.tokens !== null) {
    const rate = counters.tokens
    drain(rate, tokens.perMinute, usage.nowMs)
    rate.units = Math.max(0, rate.units + (usage.tokens - tokens.cost) * UNITS)
  }
  chargeBudget(counters.day, usd_day, usage.nanoUsd)
  chargeBudget(counters.week, usd_week, usage.nanoUsd)
  chargeBudget(counters.month, usd_month, usage.nanoUsd)
}

/** Gives back the part of a held amount that was not spent; nothing if its period is over. */
function chargeBudget(budget: Budget, held: BudgetHold | null, usedNanoUsd: number | null): void {
  if (held === null || budget.period !== held.period) return
  budget.reserved = Math.max(0, budget.reserved - held.nanoUsd)
  if (usedNanoUsd !== null) budget.spent = Math.max(0, budget.spent + usedNanoUsd - held.nanoUsd)
}
