/**
 * A process's slice of a rate or a budget: an amount that it may use without a command to Redis. Pure; the caller passes
 * the time. How slices work: docs/explanation/redis-store.md.
 */
import { budgetState, remainingUnits, rateState, UNITS } from '../../../limits/limit-arithmetic.js'
import type { BudgetDemand, Demand, RateDemand, LimitState } from '../../ledger.js'
import type { SliceReport } from './encode-demands.js'
import { hasFreeSlot, concurrencyState, type ConcurrencySlice } from './concurrency-slices.js'

/** How long Redis keeps a slice whose process does not report (scripts/limits/counter-slice.lua). */
const SLICE_MS = 10_000
/** How long after a report a slice may be used: half of `SLICE_MS`, so that an amount is never used twice. */
export const USABLE_MS = SLICE_MS / 2
/** Interval of reports of a slice that has enough left. */
export const REPORT_INTERVAL_MS = 250
/** Requests per window (`WINDOW_MS`) that make a limit worth a slice. */
export const BUSY_REQUESTS = 8
/** The window in which requests are counted. */
export const WINDOW_MS = 1_000
/** All slices of a limit hold 1 % of it, one process half of that: a smaller limit has no room for one request. */
export const MIN_REQUESTS = 200
/** A demand on a rate or a budget. Concurrent requests have slices of their own (`concurrency-slices.ts`). */
export type SliceDemand = RateDemand | BudgetDemand

/** What this process holds of one limit, and how often it uses it. */
export interface CounterSlice {
  readonly name: string
  readonly kind: SliceDemand['kind']
  limit: number
  /** Totals since this process started; `granted - taken - givenBack` is left. */
  granted: number
  taken: number
  givenBack: number
  /** The part of `taken` that was reported. */
  reportedTaken: number
  usableUntilMs: number
  reportedAtMs: number
  /** The state of the limit in the last reply, and its time. */
  used: number
  held: number
  leftMs: number
  repliedAtMs: number
  isLow: boolean
  /** Requests and amounts in the current window and in the one before. */
  windowMs: number
  count: number
  amount: number
  countBefore: number
  amountBefore: number
  /** The largest amount of one request. */
  largest: number
}

/** A slice without a granted amount. */
export function newCounterSlice(
  name: string,
  kind: SliceDemand['kind'],
  limit: number,
  nowMs: number,
): CounterSlice {
  return {
    name,
    kind,
    limit,
    granted: 0,
    taken: 0,
    givenBack: 0,
    reportedTaken: 0,
    usableUntilMs: Number.NEGATIVE_INFINITY,
    reportedAtMs: Number.NEGATIVE_INFINITY,
    used: 0,
    held: 0,
    leftMs: 0,
    repliedAtMs: nowMs,
    isLow: false,
    windowMs: nowMs,
    count: 0,
    amount: 0,
    countBefore: 0,
    amountBefore: 0,
    largest: 0,
  }
}

/** The report of a slice at this time; returns an amount of more than twice what is needed. */
export function reportCounterSlice(slice: CounterSlice, nowMs: number): SliceReport {
  const want = wantedAmount(slice)
  const left = remainingOf(slice)
  if (slice.isLow || left > 2 * want) slice.givenBack += left - (slice.isLow ? 0 : want)
  slice.reportedAtMs = nowMs
  const { name, kind, limit, taken, givenBack, largest } = slice
  return [name, kind, limit, taken, givenBack, want, largest]
}

/**
 * Whether a settlement must report the slice: too little is left, the last report is old, or the settlement returns a
 * part of it.
 */
export function isReportDue(slice: CounterSlice, nowMs: number): boolean {
  if (slice.kind !== 'requests' && slice.taken > slice.reportedTaken) return true
  return (
    nowMs - slice.reportedAtMs >= REPORT_INTERVAL_MS || 2 * remainingOf(slice) < wantedAmount(slice)
  )
}

/** The amount for half a second, and for two requests or more. */
function wantedAmount(slice: CounterSlice): number {
  if (!isBusy(slice)) return 0
  const { amount, amountBefore, largest } = slice
  return Math.max(2 * largest, Math.ceil(Math.max(amount, amountBefore) / 2))
}

/** Whether the limit is used often enough for a slice. */
export function isBusy({ count, countBefore }: CounterSlice | ConcurrencySlice): boolean {
  return Math.max(count, countBefore) >= BUSY_REQUESTS
}

/** The granted amount that is not used. */
export function remainingOf({ granted, taken, givenBack }: CounterSlice): number {
  return Math.max(0, granted - taken - givenBack)
}

/** Whether the slice admits one more request with this demand. */
export function covers(
  slice: CounterSlice | ConcurrencySlice,
  demand: Demand,
  nowMs: number,
): boolean {
  if (slice.kind === 'concurrent') return hasFreeSlot(slice, nowMs)
  return (
    nowMs < slice.usableUntilMs && !slice.isLow && remainingOf(slice) >= Math.max(1, costOf(demand))
  )
}

/** Begins the next window if the last one is over. */
export function rollCounterWindow(slice: CounterSlice, nowMs: number): void {
  const sinceMs = nowMs - slice.windowMs
  if (sinceMs < WINDOW_MS) return
  const isNext = sinceMs < 2 * WINDOW_MS
  slice.countBefore = isNext ? slice.count : 0
  slice.amountBefore = isNext ? slice.amount : 0
  if (!isNext) slice.largest = 0
  slice.windowMs = nowMs
  slice.count = slice.amount = 0
}

/** The state of the limit in the last reply; amounts held by other processes count as used. */
export function limitStateOf(
  slice: CounterSlice | ConcurrencySlice,
  demand: Demand | undefined,
  nowMs: number,
): LimitState {
  if (slice.kind === 'concurrent') return concurrencyState(slice)
  const { limit, used, held, leftMs, repliedAtMs } = slice
  const elapsedMs = Math.max(0, nowMs - repliedAtMs)
  const cost = demand === undefined ? 0 : costOf(demand)
  const isRate = slice.kind === 'requests' || slice.kind === 'tokens'
  const limitState = isRate
    ? rateState(Math.ceil(remainingUnits(used, elapsedMs, limit)) + held * UNITS, limit, cost)
    : budgetState(used + held, 0, limit, cost, Math.ceil(Math.max(0, leftMs - elapsedMs)))
  return { ...limitState, retryAfterMs: 0 }
}

/** Applies a reply: total granted, used, held by all, ms until the period ends, 1 if little is left. */
export function applyCounterReply(
  slice: CounterSlice,
  [granted = 0, used = 0, held = 0, leftMs = 0, isLow = 0]: readonly number[],
  report: { readonly taken: number; readonly usableUntilMs: number; readonly nowMs: number },
): void {
  slice.granted = granted
  slice.used = used
  slice.held = held
  slice.leftMs = leftMs
  slice.isLow = isLow === 1
  slice.repliedAtMs = report.nowMs
  slice.reportedTaken = Math.max(slice.reportedTaken, report.taken)
  slice.usableUntilMs = report.usableUntilMs
}

/** The size of the limit, in units of its kind. */
export function limitOf(demand: Demand): number {
  if (demand.kind === 'concurrent') return demand.limit
  return 'perMinute' in demand ? demand.perMinute : demand.limitNanoUsd
}

/** The demand's cost, in units of its kind; 0 for concurrent requests. */
export function costOf(demand: Demand): number {
  if (demand.kind === 'concurrent') return 0
  return 'cost' in demand ? demand.cost : demand.costNanoUsd
}
