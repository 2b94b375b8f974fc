/**
 * The slices of one process: parts of busy limits that Redis has granted to it in advance, so that a request
 * under them is admitted without a command. Pure; the caller passes the time. How slices work: docs/explanation/redis-store.md.
 */
import type { Demand, LimitState } from '../../ledger.js'
import type { SliceReport } from './encode-demands.js'
import {
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
  type SliceDemand,
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

/** The slices of one process at one ledger. */
export class Slices {
  private readonly nameOf: (accountId: string, demand: Demand) => string | null
  private readonly slices = new Map<string, CounterSlice | ConcurrencySlice>()
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
    const found: (CounterSlice | ConcurrencySlice)[] = []
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
    const places = found.filter((slice) => slice.kind === 'concurrent')
    if (places.length > 0) this.slotsInUse.set(requestId, places)
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
    const slices = new Set<CounterSlice | ConcurrencySlice>()
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
      if (slice.kind === 'concurrent') {
        rollConcurrencyWindow(slice, nowMs, WINDOW_MS)
        const isOf = slice.held > 0 || isBusy(slice)
        const isDue = nowMs - slice.reportedAtMs >= REPORT_INTERVAL_MS || needsSlots(slice)
        if (isOf && isDue) reports.push(this.reportConcurrency(slice, nowMs))
        continue
      }
      rollCounterWindow(slice, nowMs)
      const isOf = remainingOf(slice) > 0 || slice.taken > slice.reportedTaken || isBusy(slice)
      if (isOf && isReportDue(slice, nowMs)) reports.push(reportCounterSlice(slice, nowMs))
    }
    return reports
  }

  /** The reports to send by themselves: slices without a recent report. Drops idle slices. */
  overdueReports(nowMs: number): SliceReport[] {
    const reports: SliceReport[] = []
    for (const [name, slice] of this.slices) {
      const isConcurrency = slice.kind === 'concurrent'
      if (isConcurrency) rollConcurrencyWindow(slice, nowMs, WINDOW_MS)
      else rollCounterWindow(slice, nowMs)
      const left = isConcurrency ? idleSlots(slice) : remainingOf(slice)
      const isIdle = isConcurrency
        ? slice.held === 0
        : left === 0 && slice.taken === slice.reportedTaken
      if (isIdle) {
        if (nowMs - slice.windowMs >= 2 * WINDOW_MS) this.slices.delete(name)
      } else if (nowMs - slice.reportedAtMs >= WINDOW_MS || (slice.isLow && left > 0)) {
        reports.push(
          isConcurrency ? this.reportConcurrency(slice, nowMs) : reportCounterSlice(slice, nowMs),
        )
      }
    }
    return reports
  }

  /** The last reports, which return everything: nothing is taken from now on. */
  finalReports(nowMs: number): SliceReport[] {
    const reports: SliceReport[] = []
    for (const slice of this.slices.values()) {
      if (slice.kind === 'concurrent') {
        if (slice.held > 0)
          reports.push(
            reportConcurrencySlice({ ...slice, inUse: 0 }, false, nowMs, (this.reportCount += 1)),
          )
        continue
      }
      if (remainingOf(slice) === 0 && slice.taken === slice.reportedTaken) continue
      slice.count = slice.countBefore = 0
      reports.push(reportCounterSlice(slice, nowMs))
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
    for (const [at, [name, , , taken]] of reports.entries()) {
      const slice = this.slices.get(name)
      const from = at * NUMBERS_PER_SLICE
      if (slice?.kind === 'concurrent') {
        const own = numbers.slice(from, from + NUMBERS_PER_SLICE)
        if (own.length === NUMBERS_PER_SLICE)
          applyConcurrencyReply(slice, own, reportedAtMs + USABLE_MS)
        continue
      }
      const granted = numbers[from]
      if (slice === undefined || granted === undefined || !Number.isFinite(granted)) continue
      slice.granted = granted
      slice.used = numbers[from + 1] ?? 0
      slice.held = numbers[from + 2] ?? 0
      slice.leftMs = numbers[from + 3] ?? 0
      slice.isLow = numbers[from + 4] === 1
      slice.repliedAtMs = nowMs
      slice.reportedTaken = Math.max(slice.reportedTaken, taken)
      slice.usableUntilMs = reportedAtMs + USABLE_MS
    }
  }

  /** Counts a request of the demand and returns its slice; null if there can be none. */
  private track(
    accountId: string,
    demand: Demand,
    nowMs: number,
  ): CounterSlice | ConcurrencySlice | null {
    const name = this.nameOf(accountId, demand)
    if (name === null) return null
    if (demand.kind === 'concurrent') return this.trackConcurrency(demand.limit, name, nowMs)
    return this.trackCounter(demand, name, nowMs)
  }

  private trackCounter(demand: SliceDemand, name: string, nowMs: number): CounterSlice | null {
    const limit = limitOf(demand)
    const cost = costOf(demand)
    if (limit < cost * MIN_REQUESTS) return null
    let slice = this.slices.get(name)
    if (slice === undefined) {
      if (this.slices.size >= MAX_TRACKED) return null
      slice = newCounterSlice(name, demand.kind, limit, nowMs)
      this.slices.set(name, slice)
    }
    if (slice.kind === 'concurrent') return null
    slice.limit = limit
    rollCounterWindow(slice, nowMs)
    slice.count += 1
    slice.amount += cost
    slice.largest = Math.max(slice.largest, cost)
    return slice
  }

  private reportConcurrency(slice: ConcurrencySlice, nowMs: number): SliceReport {
    return reportConcurrencySlice(slice, isBusy(slice), nowMs, (this.reportCount += 1))
  }

  private trackConcurrency(limit: number, name: string, nowMs: number): ConcurrencySlice | null {
    if (limit < MIN_CONCURRENT) return null
    let slice = this.slices.get(name)
    if (slice === undefined) {
      if (this.slices.size >= MAX_TRACKED) return null
      slice = newConcurrencySlice(name, limit, nowMs, this.reportCount + 1)
      this.slices.set(name, slice)
    }
    if (slice.kind !== 'concurrent') return null
    slice.limit = limit
    rollConcurrencyWindow(slice, nowMs, WINDOW_MS)
    slice.count += 1
    return slice
  }
}
