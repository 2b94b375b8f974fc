/** The arithmetic of rate limits, budgets and concurrency limits, the same for both stores. */

import { DAY_MS } from '../base/time-units.js'
import { byMember, LIMIT_MEMBERS, type BudgetKind, type WindowKind } from '../base/limit-members.js'

/** Parts of one request, token or other unit. */
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
  return units + Math.round(cost * UNITS) <= perMinute * UNITS
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

/** A budget or quota in its running window: nano-dollars, tokens or requests. */
interface BudgetUse {
  readonly limit: number
  /** Includes `reserved`. */
  readonly spent: number
  /** The maximum use of running requests, whose unused part becomes available when they end. */
  readonly reserved: number
}

/** The level of a budget or quota for a request of `cost`, `leftMs` before its end; null: never. Pure. */
export function budgetState(budget: BudgetUse, cost: number, leftMs: number | null): LimitLevel {
  const { limit, spent } = budget
  return {
    limit,
    remaining: Math.max(0, limit - spent),
    resetMs: spent > 0 ? (leftMs ?? 0) : 0,
    retryAfterMs: budgetRetryMs(budget, cost, leftMs),
  }
}

function budgetRetryMs({ limit, spent, reserved }: BudgetUse, cost: number, leftMs: number | null): number {
  if (cost > limit) return -1
  if (spent + cost <= limit) return 0
  if (spent - reserved + cost > limit) return leftMs ?? -1
  return leftMs === null ? RUNNING_RETRY_MS : Math.min(RUNNING_RETRY_MS, leftMs)
}

/** `retryAfterMs` if a running request must end first, at an unknown time. */
export const RUNNING_RETRY_MS = 1_000

/** The level of a concurrency limit with `taken` slots in use. */
export function slotState(taken: number, limit: number): LimitLevel {
  const retryAfterMs = taken < limit ? 0 : limit > 0 ? RUNNING_RETRY_MS : -1
  return { limit, remaining: Math.max(0, limit - taken), resetMs: 0, retryAfterMs }
}

/** The fields are those of `LimitState` of the ledger. */
interface LimitLevel {
  readonly limit: number
  readonly remaining: number
  readonly resetMs: number
  readonly retryAfterMs: number
}

const WEEK_DAYS = 7
/** 1970 began on a Thursday, three days after the Monday of its week. */
const DAYS_BEFORE_1970 = 3
/** The month that was computed last; only an optimisation. */
let lastMonth = { month: 0, fromMs: 0, toMs: 0 }

/** What the kinds count, and their windows. */
export const WINDOWS = byMember('kind', ({ counts, window }) => ({ counts, window }))

/** Whether the text is the kind of an amount of a calendar window, or of one that never resets. */
export function isWindowKind(kind: unknown): kind is WindowKind {
  return typeof kind === 'string' && WINDOW_KINDS.has(kind)
}

const WINDOW_KINDS: ReadonlySet<string> = new Set(
  LIMIT_MEMBERS.filter(({ window }) => window !== 'minute' && window !== 'running').map(({ kind }) => kind),
)

/** Whether a limit is a budget or a quota. */
export function isWindowed<D extends { readonly kind: string }>(
  demand: D,
): demand is Extract<D, { readonly kind: WindowKind }> {
  return WINDOW_KINDS.has(demand.kind)
}

/** The limit and the cost of a budget or quota: nano-dollars, tokens or requests. */
export function windowAmounts(demand: BudgetAmounts | QuotaAmounts): { limit: number; cost: number } {
  return 'limitNanoUsd' in demand ? { limit: demand.limitNanoUsd, cost: demand.costNanoUsd } : demand
}

interface BudgetAmounts {
  readonly limitNanoUsd: number
  readonly costNanoUsd: number
}

interface QuotaAmounts {
  readonly limit: number
  readonly cost: number
}

/** Whether the text is the kind of a budget. */
export function isBudgetKind(kind: unknown): kind is BudgetKind {
  return isWindowKind(kind) && WINDOWS[kind].counts === 'usd'
}

/** Whether a limit is a budget. */
export function isBudget<D extends { readonly kind: string }>(
  demand: D,
): demand is Extract<D, { readonly kind: BudgetKind }> {
  return isBudgetKind(demand.kind)
}

/** The days, weeks or months since 1970 (UTC), weeks from Monday; 1 for an amount that never resets. */
export function periodOf(kind: WindowKind, nowMs: number): number {
  switch (WINDOWS[kind].window) {
    case 'day':
      return dayOf(nowMs)
    case 'week':
      return weekOf(nowMs)
    case 'month':
      return monthOf(nowMs)
    default:
      return 1
  }
}

/** Ms until the next day, week or month (UTC); null for an amount that never resets. */
export function leftOf(kind: WindowKind, nowMs: number): number | null {
  switch (WINDOWS[kind].window) {
    case 'day':
      return (dayOf(nowMs) + 1) * DAY_MS - nowMs
    case 'week':
      return ((weekOf(nowMs) + 1) * WEEK_DAYS - DAYS_BEFORE_1970) * DAY_MS - nowMs
    case 'month':
      return Date.UTC(1970, monthOf(nowMs) + 1) - nowMs
    default:
      return null
  }
}

/**
 * The running day, week or month (UTC): its first moment and that of the next one, ms since 1970. An amount
 * that never resets has begun in 1970.
 */
export function spanOf(kind: WindowKind, nowMs: number): { readonly fromMs: number; readonly toMs: number } {
  const toMs = nowMs + (leftOf(kind, nowMs) ?? Infinity)
  switch (WINDOWS[kind].window) {
    case 'day':
      return { fromMs: toMs - DAY_MS, toMs }
    case 'week':
      return { fromMs: toMs - WEEK_DAYS * DAY_MS, toMs }
    case 'month':
      return { fromMs: Date.UTC(1970, monthOf(nowMs)), toMs }
    default:
      return { fromMs: 0, toMs }
  }
}

/** Days since 1970 (UTC). */
export function dayOf(nowMs: number): number {
  return Math.floor(nowMs / DAY_MS)
}

function weekOf(nowMs: number): number {
  return Math.floor((dayOf(nowMs) + DAYS_BEFORE_1970) / WEEK_DAYS)
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
