/** Budgets in nano-dollars. Pure; `budget-period.ts` computes the time until the period ends. */
import { RUNNING_RETRY_MS } from './concurrency-limit.js'
import type { LimitLevel } from './limit-level.js'

/** A budget in its running day, week or month, in nano-dollars. */
export interface BudgetUse {
  readonly limit: number
  /** Includes `reserved`. */
  readonly spent: number
  /** The maximum cost of running requests, whose unused part becomes available when they end. */
  readonly reserved: number
}

/** The level of a budget for a request of `cost`, `leftMs` before its period ends. */
export function budgetState(budget: BudgetUse, cost: number, leftMs: number): LimitLevel {
  const { limit, spent } = budget
  return {
    limit,
    remaining: Math.max(0, limit - spent),
    resetMs: spent > 0 ? leftMs : 0,
    retryAfterMs: budgetRetryMs(budget, cost, leftMs),
  }
}

function budgetRetryMs(
  { limit, spent, reserved }: BudgetUse,
  cost: number,
  leftMs: number,
): number {
  if (cost > limit) return -1
  if (spent + cost <= limit) return 0
  return spent - reserved + cost <= limit ? Math.min(RUNNING_RETRY_MS, leftMs) : leftMs
}
