/**
 * The slices of one process: parts of busy limits that Redis has granted to it in advance, so that a request
 * under them is admitted without a command. The caller passes the time. How slices work:
 * docs/explanation/redis-store.md.
 */
import type { Demand, LimitState } from '../../ledger.js'
import { ConcurrencySlice } from './concurrency-slice.js'
import { CounterSlice } from './counter-slice.js'
import { amountsOf, type SliceReport } from './encode-demands.js'
import { WINDOW_MS } from './usage-window.js'

/** Maximum number of tracked limits; 10,000 take about 3 MB. */
const MAX_TRACKED = 10_000
/**
 * Smaller limits have no slices: a tenth of the limit would be less than one slot for each of two processes.
 */
const MIN_CONCURRENT = 20
/**
 * All slices of a limit hold 1 % of it, one process half of that: a smaller limit has no room for one
 * request.
 */
const MIN_REQUESTS = 200
/**
 * How long after a report a slice may be used: half of the time for which Redis keeps it
 * (scripts/limits/counter-slice.lua), so that an amount is never used twice.
 */
const USABLE_MS = 5_000

/** Numbers of each slice in a reply. */
export const NUMBERS_PER_SLICE = 5

/** The limits of a request. */
export interface SliceRequest {
  readonly accountId: string
  readonly demands: readonly Demand[]
}

/** A request to admit. */
export interface SliceAdmission extends SliceRequest {
  readonly requestId: string
}

/** A slice of either kind. */
type Slice = CounterSlice | ConcurrencySlice

/** The slices of one process at one ledger. */
export class Slices {
  private readonly nameOf: (accountId: string, demand: Demand) => string | null
  private readonly slices = new Map<string, Slice>()
  private reportCount = 0
  /** The slices whose slots a request uses, by request id. */
  private readonly slotsInUse = new Map<string, readonly ConcurrencySlice[]>()

  /** `nameOf` returns the key of a demand's counter, or null if there can be no slice of it. */
  constructor(nameOf: (accountId: string, demand: Demand) => string | null) {
    this.nameOf = nameOf
  }

  /**
   * Takes the cost of the demands from their slices, all or none, and returns the states of the limits, with
   * others' slices counted as used. Null if the request needs a command. Slots are held until `releaseSlots`.
   */
  take({ requestId, accountId, demands }: SliceAdmission, nowMs: number): LimitState[] | null {
    const taken: { readonly slice: Slice; readonly demand: Demand }[] = []
    // Every slice counts the request, also if another one does not admit it.
    for (const demand of demands) {
      const slice = this.track(accountId, demand, nowMs)
      if (slice?.take(demand, nowMs) === true) taken.push({ slice, demand })
    }
    if (demands.length === 0 || taken.length < demands.length) {
      for (const { slice, demand } of taken) slice.untake(demand)
      return null
    }
    const slots = taken.flatMap(({ slice }) => (slice.kind === 'concurrent' ? [slice] : []))
    if (slots.length > 0) this.slotsInUse.set(requestId, slots)
    return taken.map(({ slice, demand }) => slice.state(demand, nowMs))
  }

  /** The request has ended: its slots are free. */
  releaseSlots(requestId: string): void {
    for (const slice of this.slotsInUse.get(requestId) ?? []) slice.untake()
    this.slotsInUse.delete(requestId)
  }

  /**
   * The reports of the slices of these requests, each once, to send with another command. Slices that need no
   * report are left out.
   */
  reportsFor(requests: Iterable<SliceRequest>, nowMs: number): SliceReport[] {
    if (this.slices.size === 0) return []
    const slices = new Set<Slice>()
    for (const { accountId, demands } of requests) {
      for (const demand of demands) {
        const name = this.nameOf(accountId, demand)
        const slice = name === null ? undefined : this.slices.get(name)
        if (slice !== undefined) slices.add(slice)
      }
    }
    const reports: SliceReport[] = []
    for (const slice of slices) {
      slice.roll(nowMs)
      const isReported = !slice.isEmpty || slice.window.isBusy
      if (isReported && slice.isDue(nowMs)) reports.push(slice.report(nowMs))
    }
    return reports
  }

  /** The reports to send by themselves: slices without a recent report. Drops idle slices. */
  overdueReports(nowMs: number): SliceReport[] {
    const reports: SliceReport[] = []
    for (const [name, slice] of this.slices) {
      slice.roll(nowMs)
      if (slice.isEmpty) {
        if (slice.window.isIdle(nowMs)) this.slices.delete(name)
      } else if (nowMs - slice.reportedAtMs >= WINDOW_MS || slice.isSurplus) {
        reports.push(slice.report(nowMs))
      }
    }
    return reports
  }

  /** The last reports, which return everything: nothing is taken from now on. */
  finalReports(nowMs: number): SliceReport[] {
    const held = Array.from(this.slices.values()).filter((slice) => !slice.isEmpty)
    this.slices.clear()
    return held.map((slice) => {
      slice.end()
      return slice.report(nowMs)
    })
  }

  /** Applies the reply to reports that were sent at `reportedAtMs`. */
  applyReplies(
    reports: readonly SliceReport[],
    numbers: readonly number[],
    { reportedAtMs, nowMs }: { readonly reportedAtMs: number; readonly nowMs: number },
  ): void {
    const times = { usableUntilMs: reportedAtMs + USABLE_MS, nowMs }
    for (const [at, report] of reports.entries()) {
      const own = numbers.slice(at * NUMBERS_PER_SLICE, (at + 1) * NUMBERS_PER_SLICE)
      if (own.length === NUMBERS_PER_SLICE) {
        this.slices.get(report[0])?.applyReply(own, report, times)
      }
    }
  }

  /** Counts a request of the demand and returns its slice; null if there can be none. */
  private track(accountId: string, demand: Demand, nowMs: number): Slice | null {
    const { kind } = demand
    const { limit, cost } = amountsOf(demand)
    const name = this.nameOf(accountId, demand)
    const minLimit = kind === 'concurrent' ? MIN_CONCURRENT : cost * MIN_REQUESTS
    if (name === null || limit < minLimit) return null
    let slice = this.slices.get(name)
    if (slice === undefined) {
      if (this.slices.size >= MAX_TRACKED) return null
      slice =
        kind === 'concurrent'
          ? new ConcurrencySlice(name, nowMs, () => (this.reportCount += 1))
          : new CounterSlice(name, kind, nowMs)
      this.slices.set(name, slice)
    }
    slice.roll(nowMs)
    slice.count(demand)
    return slice
  }
}
