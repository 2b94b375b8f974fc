/**
 * A process's slice of a rate or of a budget: so much of it may be used without asking Redis. Pure; the caller
 * passes the time. How slices work: docs/explanation/redis-store.md.
 */
import { budgetState, remainingUnits, rateState, UNITS } from '../../../limits/limit-arithmetic.js'
import type { BudgetDemand, Demand, RateDemand, LimitState } from '../../ledger.js'
import type { SliceReport } from './encode-demands.js'
import { hasFreeSlot, concurrencyState, type ConcurrencySlice } from './concurrency-slices.js'

/** How long Redis keeps a slice whose process does not report (scripts/limits/counter-slice.lua). */
const SLICE_MS = 10_000
/** For this long after a question a slice may be used; half of what Redis keeps it, so that it is never used twice. */
export const USABLE_MS = SLICE_MS / 2
/** How long a settlement need not report a slice that has enough left. */
export const REPORT_INTERVAL_MS = 250
/** Requests per window (`WINDOW_MS`) that make a limit worth a slice. */
export const BUSY_REQUESTS = 8
/** How long requests are counted together. */
export const WINDOW_MS = 1_000
/** All slices of a limit hold 1 % of it, one process half of that: a smaller limit has no room for one request. */
export const MIN_REQUESTS = 200
/** A demand on a rate or a budget. Concurrent requests have slices of their own (`concurrency-slices.ts`). */
export type SliceDemand = RateDemand | BudgetDemand

/** What this process holds of one limit, and how often it asks for it. */
export interface CounterSlice {
  readonly name: string
  readonly kind: SliceDemand['kind']
  limit: number
  /** Totals since this process began; `granted - taken - givenBack` is left. */
  granted: number
  taken: number
  givenBack: number
  /** As far as Redis has been reports. */
  reportedTaken: number
  usableUntilMs: number
  reportedAtMs: number
  /** How the limit stood, and when this was heard. */
  used: number
  held: number
  leftMs: number
  repliedAtMs: number
  isLow: boolean
  /** What was asked for in the running window, and in the one before. */
  windowMs: number
  count: number
  amount: number
  countBefore: number
  amountBefore: number
  /** Of one request. */
  largest: number
}

/** A slice that nothing is granted of yet. */
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

/** Counts what is reports as asked for now; gives back what is more than twice what is wanted. */
export function reportCounterSlice(slice: CounterSlice, nowMs: number): SliceReport {
  const want = wantedAmount(slice)
  const left = remainingOf(slice)
  if (slice.isLow || left > 2 * want) slice.givenBack += left - (slice.isLow ? 0 : want)
  slice.reportedAtMs = nowMs
  const { name, kind, limit, taken, givenBack, largest } = slice
  return [name, kind, limit, taken, givenBack, want, largest]
}

/**
 * Whether a settlement has to speak of it: there is too little, it is long ago, or some of it goes back with
 * the settlement, which has to be there for that.
 */
export function isReportDue(slice: CounterSlice, nowMs: number): boolean {
  if (slice.kind !== 'requests' && slice.taken > slice.reportedTaken) return true
  return (
    nowMs - slice.reportedAtMs >= REPORT_INTERVAL_MS || 2 * remainingOf(slice) < wantedAmount(slice)
  )
}

/** Half of what a second takes, and two requests at the least. */
function wantedAmount(slice: CounterSlice): number {
  if (!isBusy(slice)) return 0
  const { amount, amountBefore, largest } = slice
  return Math.max(2 * largest, Math.ceil(Math.max(amount, amountBefore) / 2))
}

/** Whether the limit is used often enough for a slice. */
export function isBusy({ count, countBefore }: CounterSlice | ConcurrencySlice): boolean {
  return Math.max(count, countBefore) >= BUSY_REQUESTS
}

/** What is granted and not used. */
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

/** As it stood when it was last heard of; what others did since is in what is held, or will be heard of. */
export function limitStateOf(
  slice: CounterSlice | ConcurrencySlice,
  demand: Demand | undefined,
  nowMs: number,
): LimitState {
  if (slice.kind === 'concurrent') return concurrencyState(slice)
  const { limit, used, held, leftMs, repliedAtMs: heardMs } = slice
  const elapsedMs = Math.max(0, nowMs - heardMs)
  const cost = demand === undefined ? 0 : costOf(demand)
  const isRate = slice.kind === 'requests' || slice.kind === 'tokens'
  const limitState = isRate
    ? rateState(Math.ceil(remainingUnits(used, elapsedMs, limit)) + held * UNITS, limit, cost)
    : budgetState(used + held, 0, limit, cost, Math.ceil(Math.max(0, leftMs - elapsedMs)))
  return { ...limitState, retryAfterMs: 0 }
}

/** The size of the limit, in units of its kind. */
export function limitOf(demand: SliceDemand): number {
  return 'perMinute' in demand ? demand.perMinute : demand.limitNanoUsd
}

/** What the demand takes, in units of its kind; 0 of concurrent requests. */
export function costOf(demand: Demand): number {
  if (demand.kind === 'concurrent') return 0
  return 'cost' in demand ? demand.cost : demand.costNanoUsd
}
