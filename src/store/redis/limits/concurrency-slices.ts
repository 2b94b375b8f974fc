/**
 * A process's slice of a limit of concurrent requests: slots that its requests may use without a command to Redis.
 * Functions change the slice; the caller passes the time.
 *
 * Redis always holds at least as many slots for the process as it uses: slots are not used from the report that returns
 * them, and not before they are granted. Reports are numbered, since a delayed one may arrive after its successors.
 */
import type { LimitState } from '../../ledger.js'
import type { SliceReport } from './encode-demands.js'

/** Smaller limits have no slices: a tenth of the limit would be less than one slot for each of two processes. */
export const MIN_CONCURRENT = 20
/** Minimum number of slots requested beyond the peak. */
const SPARE = 2

/** A limit of concurrent requests that this process uses. */
export interface ConcurrencySlice {
  readonly kind: 'concurrent'
  readonly name: string
  limit: number
  /** Slots that this process may use, and those in use. */
  held: number
  inUse: number
  /** The number of the last report that returned slots, or of the first. */
  lastReturn: number
  /** Maximum number of idle slots, from the last reply. */
  maxIdle: number
  /** Slots that all processes use or hold, from the last reply. */
  takenByAll: number
  isLow: boolean
  usableUntilMs: number
  reportedAtMs: number
  /** Requests in the current window and in the one before, and their peaks of concurrent ones. */
  windowMs: number
  count: number
  countBefore: number
  peak: number
  peakBefore: number
  /** Requests since the last report that found no slot. */
  missed: number
}

/** A slice without slots; `report` is the number of its first report. */
export function newConcurrencySlice(
  name: string,
  limit: number,
  nowMs: number,
  report: number,
): ConcurrencySlice {
  return {
    kind: 'concurrent',
    name,
    limit,
    held: 0,
    inUse: 0,
    lastReturn: report,
    maxIdle: limit,
    takenByAll: 0,
    isLow: false,
    usableUntilMs: Number.NEGATIVE_INFINITY,
    reportedAtMs: Number.NEGATIVE_INFINITY,
    windowMs: nowMs,
    count: 0,
    countBefore: 0,
    peak: 0,
    peakBefore: 0,
    missed: 0,
  }
}

/** Whether one more request may use a slot. */
export function hasFreeSlot(slice: ConcurrencySlice, nowMs: number): boolean {
  return nowMs < slice.usableUntilMs && !slice.isLow && slice.inUse < slice.held
}

/** Uses a slot. */
export function takeSlot(slice: ConcurrencySlice): void {
  slice.inUse += 1
  slice.peak = Math.max(slice.peak, slice.inUse)
}

/** Slots that are held and not in use. */
export function idleSlots({ held, inUse: busy }: ConcurrencySlice): number {
  return Math.max(0, held - busy)
}

/** Begins the next window if the last one is over. */
export function rollConcurrencyWindow(
  slice: ConcurrencySlice,
  nowMs: number,
  windowMs: number,
): void {
  const sinceMs = nowMs - slice.windowMs
  if (sinceMs < windowMs) return
  const isNext = sinceMs < 2 * windowMs
  slice.countBefore = isNext ? slice.count : 0
  slice.peakBefore = isNext ? slice.peak : slice.inUse
  slice.windowMs = nowMs
  slice.count = 0
  slice.peak = slice.inUse
}

/** Whether the process needs more slots. */
export function needsSlots(slice: ConcurrencySlice): boolean {
  return !slice.isLow && slice.maxIdle > 0 && (slice.missed > 0 || idleSlots(slice) === 0)
}

/**
 * The report of a slice: limit, number of the report (higher than all before), slots that it keeps in any case, wanted
 * slots, and slots in use. From now on the process uses no more than it keeps.
 */
export function reportConcurrencySlice(
  slice: ConcurrencySlice,
  isBusy: boolean,
  nowMs: number,
  report: number,
): SliceReport {
  const { inUse: busy, peak, peakBefore } = slice
  const most = Math.max(peak, peakBefore)
  const idle = slice.isLow || !isBusy ? 0 : slice.maxIdle
  const spare = Math.max(SPARE, most >> 2) + slice.missed
  const want = isBusy ? Math.min(busy + idle, most + spare) : busy
  slice.missed = 0
  slice.reportedAtMs = nowMs
  // After this time other processes may have its idle slots.
  const isStale = nowMs >= slice.usableUntilMs
  // Returns the rest, regardless of replies to earlier reports.
  if (want <= slice.held || isStale) {
    slice.held = isStale ? busy : want
    slice.lastReturn = report
  }
  const wanted = Math.max(want, slice.held)
  return [slice.name, slice.kind, slice.limit, report, slice.held, wanted, busy]
}

/** Applies a reply: slots held, slots of all processes, number of the report, maximum of idle slots, 1 if few are left. */
export function applyConcurrencyReply(
  slice: ConcurrencySlice,
  [held = 0, counted = 0, report = 0, idleMost = 0, isLow = 0]: readonly number[],
  usableUntilMs: number,
): void {
  // A reply to an earlier report may contain slots that were returned since.
  if (report < slice.lastReturn) return
  slice.held = Math.max(slice.held, held)
  slice.takenByAll = counted
  slice.maxIdle = idleMost
  slice.isLow = isLow === 1
  slice.usableUntilMs = usableUntilMs
}

/** The state of the limit in the last reply; held slots count as used. */
export function concurrencyState({ limit, takenByAll: counted }: ConcurrencySlice): LimitState {
  return { limit, remaining: Math.max(0, limit - counted), resetMs: 0, retryAfterMs: 0 }
}
