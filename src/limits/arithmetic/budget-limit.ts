/** Budgets in nano-dollars. Pure; `budget-period.ts` computes the time until the day or month ends. */
import { RUNNING_RETRY_MS } from './concurrency-limit.js'
import type { LimitLevel } from './limit-level.js'

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
