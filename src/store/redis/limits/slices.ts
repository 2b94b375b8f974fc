/**
 * The slices of one process: parts of busy limits that Redis has granted to it in advance, so that a request
 * under them is admitted without a command. Pure; the caller passes the time. How slices work: docs/explanation/redis-store.md.
 */
import type { Demand, LimitState } from '../../ledger.js'
import type { SliceReport } from './encode-demands.js'
import {
  applyCounterReply,
  costOf,
  covers,
  isReportDue,
  isBusy,
  MIN_REQUESTS,
  remainingOf,
  limitOf,
  newCounterSlice,
  REPORT_INTERVAL_MS,
  rollCounterWindow,
  limitStateOf,
  reportCounterSlice,
  USABLE_MS,
  WINDOW_MS,
  type CounterSlice,
} from './counter-slices.js'
import {
  applyConcurrencyReply,
  idleSlots,
  MIN_CONCURRENT,
  newConcurrencySlice,
  rollConcurrencyWindow,
  takeSlot,
  reportConcurrencySlice,
  needsSlots,
  type ConcurrencySlice,
} from './concurrency-slices.js'

/** Maximum number of tracked limits; 10,000 take about 3 MB. */
const MAX_TRACKED = 10_000

/** Numbers of each slice in a reply. */
export const NUMBERS_PER_SLICE = 5

/** The limits of a request. */
export interface SliceRequest {
  readonly accountId: string
  readonly demands: readonly Demand[]
}

/** A slice of either kind. */
type Slice = CounterSlice | ConcurrencySlice

/** The slices of one process at one ledger. */
export class Slices {
  private readonly nameOf: (accountId: string, demand: Demand) => string | null
  private readonly slices = new Map<string, Slice>()
  /** Reports about concurrent requests so far: each has its own number. */
  private reportCount = 0
  /** The slices whose slots a request uses, by request id. */
  private readonly slotsInUse = new Map<string, readonly ConcurrencySlice[]>()

  /** `nameOf` returns the key of a demand's counter, or null if there can be no slice of it. */
  constructor(nameOf: (accountId: string, demand: Demand) => string | null) {
    this.nameOf = nameOf
  }

  /**
   * Takes the cost of the demands from their slices, all or none, and returns the states of the limits, with others'
   * slices counted as used. Null if the request needs a command. Slots are held until `releaseSlots`.
   */
  take(
    requestId: string,
    accountId: string,
    demands: readonly Demand[],
    nowMs: number,
  ): LimitState[] | null {
    let isCovered = demands.length > 0
    const found: Slice[] = []
    for (const demand of demands) {
      const slice = this.track(accountId, demand, nowMs)
      if (slice === null) isCovered = false
      else if (!covers(slice, demand, nowMs)) {
        isCovered = false
        if (slice.kind === 'concurrent') slice.missed += 1
      }
      if (slice !== null) found.push(slice)
    }
    if (!isCovered) return null
    for (const [at, slice] of found.entries()) {
      const demand = demands[at]
      // Two rules of one subject may together exceed the slice.
      if (demand !== undefined && covers(slice, demand, nowMs)) {
        if (slice.kind === 'concurrent') takeSlot(slice)
        else slice.taken += costOf(demand)
        continue
      }
      for (const [before, each] of found.slice(0, at).entries()) {
        const other = demands[before]
        if (each.kind === 'concurrent') each.inUse -= 1
        else if (other !== undefined) each.taken -= costOf(other)
      }
      return null
    }
    const concurrency = found.filter((slice) => slice.kind === 'concurrent')
    if (concurrency.length > 0) this.slotsInUse.set(requestId, concurrency)
    return found.map((slice, at) => limitStateOf(slice, demands[at], nowMs))
  }

  /** The request has ended: its slots are free. */
  releaseSlots(requestId: string): void {
    for (const slice of this.slotsInUse.get(requestId) ?? []) slice.inUse -= 1
    this.slotsInUse.delete(requestId)
  }

  /**
   * The reports of the slices of these requests, each once, to send with another command. Slices that need no report are
   * left out.
   */
  reportsFor(requests: Iterable<SliceRequest>, nowMs: number): SliceReport[] {
    const slices = new Set<Slice>()
    if (this.slices.size === 0) return []
    for (const { accountId, demands } of requests) {
      for (const demand of demands) {
        const name = this.nameOf(accountId, demand)
        const slice = name === null ? undefined : this.slices.get(name)
        if (slice !== undefined) slices.add(slice)
      }
    }
    const reports: SliceReport[] = []
    for (const slice of slices) {
      roll(slice, nowMs)
      const isReported = !isEmpty(slice) || isBusy(slice)
      if (isReported && isDue(slice, nowMs)) reports.push(this.report(slice, nowMs))
    }
    return reports
  }

  /** The reports to send by themselves: slices without a recent report. Drops idle slices. */
  overdueReports(nowMs: number): SliceReport[] {
    const reports: SliceReport[] = []
    for (const [name, slice] of this.slices) {
      roll(slice, nowMs)
      const left = slice.kind === 'concurrent' ? idleSlots(slice) : remainingOf(slice)
      if (isEmpty(slice)) {
        if (nowMs - slice.windowMs >= 2 * WINDOW_MS) this.slices.delete(name)
      } else if (nowMs - slice.reportedAtMs >= WINDOW_MS || (slice.isLow && left > 0)) {
        reports.push(this.report(slice, nowMs))
      }
    }
    return reports
  }

  /** The last reports, which return everything: nothing is taken from now on. */
  finalReports(nowMs: number): SliceReport[] {
    const reports: SliceReport[] = []
    for (const slice of this.slices.values()) {
      if (isEmpty(slice)) continue
      slice.count = slice.countBefore = 0
      if (slice.kind === 'concurrent') slice.inUse = 0
      reports.push(this.report(slice, nowMs))
    }
    this.slices.clear()
    return reports
  }

  /** Applies the reply to reports sent at `reportedAtMs`. */
  applyReplies(
    reports: readonly SliceReport[],
    numbers: readonly number[],
    reportedAtMs: number,
    nowMs: number,
  ): void {
    const usableUntilMs = reportedAtMs + USABLE_MS
    for (const [at, [name, , , taken]] of reports.entries()) {
      const slice = this.slices.get(name)
      const from = at * NUMBERS_PER_SLICE
      const own = numbers.slice(from, from + NUMBERS_PER_SLICE)
      if (slice === undefined || own.length < NUMBERS_PER_SLICE) continue
      if (slice.kind === 'concurrent') applyConcurrencyReply(slice, own, usableUntilMs)
      else applyCounterReply(slice, own, { taken, usableUntilMs, nowMs })
    }
  }

  private report(slice: Slice, nowMs: number): SliceReport {
    if (slice.kind !== 'concurrent') return reportCounterSlice(slice, nowMs)
    return reportConcurrencySlice(slice, isBusy(slice), nowMs, (this.reportCount += 1))
  }

  /** Counts a request of the demand and returns its slice; null if there can be none. */
  private track(accountId: string, demand: Demand, nowMs: number): Slice | null {
    const limit = limitOf(demand)
    const isTooSmall =
      demand.kind === 'concurrent' ? limit < MIN_CONCURRENT : limit < costOf(demand) * MIN_REQUESTS
    const name = this.nameOf(accountId, demand)
    if (name === null || isTooSmall) return null
    let slice = this.slices.get(name)
    if (slice === undefined) {
      if (this.slices.size >= MAX_TRACKED) return null
      slice =
        demand.kind === 'concurrent'
          ? newConcurrencySlice(name, limit, nowMs, this.reportCount + 1)
          : newCounterSlice(name, demand.kind, limit, nowMs)
      this.slices.set(name, slice)
    }
    slice.limit = limit
    roll(slice, nowMs)
    slice.count += 1
    if (slice.kind !== 'concurrent') {
      slice.amount += costOf(demand)
      slice.largest = Math.max(slice.largest, costOf(demand))
    }
    return slice
  }
}

/** Begins the next window of a slice if the last one is over. */
function roll(slice: Slice, nowMs: number): void {
  if (slice.kind === 'concurrent') rollConcurrencyWindow(slice, nowMs, WINDOW_MS)
  else rollCounterWindow(slice, nowMs)
}

/** Whether Redis holds nothing for the slice, and all that it used was reported. */
function isEmpty(slice: Slice): boolean {
  if (slice.kind === 'concurrent') return slice.held === 0
  return remainingOf(slice) === 0 && slice.taken <= slice.reportedTaken
}

/** Whether a settlement must report the slice. */
function isDue(slice: Slice, nowMs: number): boolean {
  if (slice.kind !== 'concurrent') return isReportDue(slice, nowMs)
  return nowMs - slice.reportedAtMs >= REPORT_INTERVAL_MS || needsSlots(slice)
}
