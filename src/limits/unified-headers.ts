/**
 * Budgets in the form of Claude Code's gateway protocol: headers of replies, and the refusal whose message it
 * shows unchanged.
 */
import { GatewayError } from '../errors.js'
import type { LimitState } from '../store/ledger.js'
import { isBudget } from '../store/limit-arithmetic.js'
import type { LimitDemand } from './find-limits.js'

/** Shares of a budget at which Claude Code warns, the highest first. */
const THRESHOLDS = [0.95, 0.75]
const PREFIX = 'anthropic-ratelimit-unified'

/** Name, value, … of the budget that is used most; empty without one. */
export function unifiedHeaders(
  limitDemands: readonly LimitDemand[],
  limitStates: readonly LimitState[],
  isAdmitted: boolean,
): string[] {
  let used: { readonly ratio: number; readonly resetMs: number } | null = null
  for (const [index, { demand }] of limitDemands.entries()) {
    const limitState = limitStates[index]
    if (limitState === undefined || !isBudget(demand)) continue
    // Without the reservation of this request, since it may cost far less.
    const remaining = limitState.remaining + (isAdmitted ? demand.costNanoUsd : 0)
    const ratio = limitState.limit <= 0 ? 1 : Math.min(1, Math.max(0, 1 - remaining / limitState.limit))
    if (used === null || ratio > used.ratio) used = { ratio, resetMs: limitState.resetMs }
  }
  if (used === null) return []
  const { ratio, resetMs } = used
  const reset = resetMs > 0 ? [`${PREFIX}-reset`, String(Math.ceil((Date.now() + resetMs) / 1_000))] : []
  if (!isAdmitted) return [`${PREFIX}-status`, 'rejected', ...reset]
  const surpassed = THRESHOLDS.find((threshold) => ratio >= threshold)
  return [
    ...[`${PREFIX}-status`, surpassed === undefined ? 'allowed' : 'allowed_warning'],
    ...[`${PREFIX}-representative-claim`, 'overage'],
    ...[`${PREFIX}-overage-utilization`, String(Math.round(ratio * 100) / 100)],
    ...(surpassed === undefined ? [] : [`${PREFIX}-overage-surpassed-threshold`, String(surpassed)]),
    ...reset,
  ]
}

/** The refusal of a budget with the status that Claude Code expects, and the time until the budget renews. */
export function budgetRefusal(
  error: GatewayError,
  limitDemands: readonly LimitDemand[],
  limitStates: readonly LimitState[],
): GatewayError {
  if (error.kind !== 'budget_exceeded') return error
  let waitMs = 0
  for (const [index, { demand }] of limitDemands.entries()) {
    if (isBudget(demand)) waitMs = Math.max(waitMs, limitStates[index]?.retryAfterMs ?? 0)
  }
  const retry = waitMs > 0 ? { retryAfterSeconds: Math.ceil(waitMs / 1_000) } : {}
  return new GatewayError('budget_exceeded', error.message, { status: 429, ...retry })
}
