/**
 * The slices of one process: parts of busy limits that Redis has granted to it in advance, so that a request
 * under them is admitted without a command. The caller passes the time. How slices work:
 * docs/explanation/redis-store.md.
 */
import type { Demand, LimitState, ConcurrencyDemand } from '../../ledger.js'
import { budgetState, rateState, remainingUnits, UNITS } from '../../limit-arithmetic.js'
import { amountsOf, type SliceReport } from './encode-demands.js'

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

interface SliceRequest {
  readonly accountId: string
  readonly demands: readonly Demand[]
}

/** A request to admit. */
interface SliceAdmission extends SliceRequest {
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

/** Minimum number of slots requested beyond the peak. */
const SPARE = 2

/**
 * The slice of one limit of concurrent requests.
 *
 * A process's slice of a limit of concurrent requests: slots that its requests may use without a command to
 * Redis. The caller passes the time.
 *
 * Redis always holds at least as many slots for the process as it uses: slots are not used from the report
 * that returns them, and not before they are granted. Reports are numbered, since a delayed one may arrive
 * after its successors.
 */
class ConcurrencySlice {
  readonly kind: ConcurrencyDemand['kind'] = 'concurrent'
  reportedAtMs = Number.NEGATIVE_INFINITY
  private readonly name: string
  readonly window: UsageWindow
  private readonly nextReport: () => number
  private limit = 0
  /** Slots that this process may use, and those in use. */
  private held = 0
  private inUse = 0
  /** Requests since the last report that found no slot. */
  private missed = 0
  /** The number of the last report that returned slots; 0 if there is none. */
  private lastReturn = 0
  private usableUntilMs = Number.NEGATIVE_INFINITY
  /** From the last reply: maximum of idle slots, slots of all processes, whether few are left. */
  private last = { maxIdle: Number.POSITIVE_INFINITY, takenByAll: 0, isLow: false }

  /** `nextReport` numbers the reports of this process: each number is higher than all before. */
  constructor(name: string, nowMs: number, nextReport: () => number) {
    this.name = name
    this.window = new UsageWindow(nowMs)
    this.nextReport = nextReport
    this.lastReturn = nextReport()
  }

  /** Whether Redis holds no slot for the slice. */
  get isEmpty(): boolean {
    return this.held === 0
  }

  /** Whether the slice has to return its idle slots at once. */
  get isSurplus(): boolean {
    return this.last.isLow && this.held > this.inUse
  }

  roll(nowMs: number): void {
    this.window.roll(nowMs, this.inUse)
  }

  /** Counts a request, whether or not the slice admits it. */
  count(demand: Demand): void {
    this.limit = amountsOf(demand).limit
    this.window.count(0)
  }

  /** Uses a slot until `untake`; false if there is none. */
  take(_demand: Demand, nowMs: number): boolean {
    if (nowMs >= this.usableUntilMs || this.last.isLow || this.inUse >= this.held) {
      this.missed += 1
      return false
    }
    this.inUse += 1
    this.window.countPeak(this.inUse)
    return true
  }

  untake(): void {
    this.inUse -= 1
  }

  /** The state of the limit in the last reply; held slots count as used. */
  state(): LimitState {
    const remaining = Math.max(0, this.limit - this.last.takenByAll)
    return { limit: this.limit, remaining, resetMs: 0, retryAfterMs: 0 }
  }

  /** Whether a settlement must report the slice: the last report is old, or slots are missing. */
  isDue(nowMs: number): boolean {
    if (nowMs - this.reportedAtMs >= REPORT_INTERVAL_MS) return true
    const { maxIdle, isLow } = this.last
    return !isLow && maxIdle > 0 && (this.missed > 0 || this.held <= this.inUse)
  }

  /**
   * The report at this time: limit, number of the report, slots that it keeps in any case, wanted slots, and
   * slots in use. From now on the process uses no more than it keeps.
   */
  report(nowMs: number): SliceReport {
    const { name, kind, limit, inUse, missed, last, window } = this
    const number = this.nextReport()
    const idle = last.isLow ? 0 : last.maxIdle
    const spare = Math.max(SPARE, window.largest >> 2) + missed
    const want = window.isBusy ? Math.min(inUse + idle, window.largest + spare) : inUse
    // After this time other processes may have its idle slots.
    const isStale = nowMs >= this.usableUntilMs
    this.missed = 0
    this.reportedAtMs = nowMs
    // Returns the rest, regardless of replies to earlier reports.
    if (want <= this.held || isStale) {
      this.held = isStale ? inUse : want
      this.lastReturn = number
    }
    return [name, kind, limit, number, this.held, Math.max(want, this.held), inUse]
  }

  /** Stops using the slice: its next report returns all slots. */
  end(): void {
    this.window.clear()
    this.inUse = 0
  }

  /**
   * Applies a reply: slots held, slots of all, number of the report, maximum of idle slots, 1 if few are
   * left.
   */
  applyReply(
    [held = 0, takenByAll = 0, report = 0, maxIdle = 0, isLow = 0]: readonly number[],
    _report: SliceReport,
    { usableUntilMs }: { readonly usableUntilMs: number },
  ): void {
    // A reply to an earlier report may contain slots that were returned since.
    if (report < this.lastReturn) return
    this.held = Math.max(this.held, held)
    this.last = { maxIdle, takenByAll, isLow: isLow === 1 }
    this.usableUntilMs = usableUntilMs
  }
}

/** Interval of reports of a slice that has enough left. */
const REPORT_INTERVAL_MS = 250

/**
 * The slice of one rate or budget.
 *
 * A process's slice of a rate or a budget: an amount that its requests may use without a command to Redis.
 * The caller passes the time. How slices work: docs/explanation/redis-store.md.
 */
class CounterSlice {
  readonly kind: Exclude<Demand['kind'], 'concurrent'>
  reportedAtMs = Number.NEGATIVE_INFINITY
  private readonly name: string
  readonly window: UsageWindow
  private limit = 0
  /** Totals since this process started; `granted - taken - returned` is left. */
  private granted = 0
  private taken = 0
  private returned = 0
  /** The part of `taken` that was reported. */
  private reportedTaken = 0
  private usableUntilMs = Number.NEGATIVE_INFINITY
  /** The state of the limit in the last reply. */
  private last = { used: 0, held: 0, leftMs: 0, isLow: false, atMs: 0 }

  constructor(name: string, kind: CounterSlice['kind'], nowMs: number) {
    this.name = name
    this.kind = kind
    this.window = new UsageWindow(nowMs)
  }

  /** Whether Redis holds nothing for the slice, and all that it used was reported. */
  get isEmpty(): boolean {
    return this.remaining === 0 && this.taken <= this.reportedTaken
  }

  /** Whether the slice has to return its rest at once. */
  get isSurplus(): boolean {
    return this.last.isLow && this.remaining > 0
  }

  /** The granted amount that is not used. */
  private get remaining(): number {
    return Math.max(0, this.granted - this.taken - this.returned)
  }

  /** The amount for half a second, and for two requests or more. */
  private get wanted(): number {
    const { isBusy, largest, amount } = this.window
    return isBusy ? Math.max(2 * largest, Math.ceil(amount / 2)) : 0
  }

  roll(nowMs: number): void {
    this.window.roll(nowMs, 0)
  }

  /** Counts a request, whether or not the slice admits it. */
  count(demand: Demand): void {
    const { limit, cost } = amountsOf(demand)
    this.limit = limit
    this.window.count(cost)
  }

  /** Takes the cost of a request; false if the slice does not cover it. */
  take(demand: Demand, nowMs: number): boolean {
    const { cost } = amountsOf(demand)
    const isUsable = nowMs < this.usableUntilMs && !this.last.isLow
    if (!isUsable || this.remaining < Math.max(1, cost)) return false
    this.taken += cost
    return true
  }

  /** Takes back what `take` took. */
  untake(demand: Demand): void {
    this.taken -= amountsOf(demand).cost
  }

  /** The state of the limit in the last reply; amounts held by other processes count as used. */
  state(demand: Demand, nowMs: number): LimitState {
    const { limit, cost } = amountsOf(demand)
    const { used, held, leftMs, atMs } = this.last
    const elapsedMs = Math.max(0, nowMs - atMs)
    const isRate = this.kind === 'requests' || this.kind === 'tokens'
    const state = isRate
      ? rateState(Math.ceil(remainingUnits(used, elapsedMs, limit)) + held * UNITS, limit, cost)
      : budgetState(
          { limit, spent: used + held, reserved: 0 },
          cost,
          Math.ceil(Math.max(0, leftMs - elapsedMs)),
        )
    return { ...state, retryAfterMs: 0 }
  }

  /**
   * Whether a settlement must report the slice: too little is left, the last report is old, or the settlement
   * returns a part of what the slice took.
   */
  isDue(nowMs: number): boolean {
    const isFinal = this.kind === 'requests' || this.kind === 'requests_total'
    if (!isFinal && this.taken > this.reportedTaken) return true
    return nowMs - this.reportedAtMs >= REPORT_INTERVAL_MS || 2 * this.remaining < this.wanted
  }

  /** The report at this time; returns the rest if it is more than twice what is needed. */
  report(nowMs: number): SliceReport {
    const { remaining, wanted, last } = this
    if (last.isLow || remaining > 2 * wanted) this.returned += remaining - (last.isLow ? 0 : wanted)
    this.reportedAtMs = nowMs
    const { name, kind, limit, taken, returned, window } = this
    return [name, kind, limit, taken, returned, wanted, window.largest]
  }

  /** Stops using the slice: its next report returns the rest. */
  end(): void {
    this.window.clear()
  }

  /** Applies a reply: total granted, used, held by all, ms until the period ends, 1 if little is left. */
  applyReply(
    [granted = 0, used = 0, held = 0, leftMs = 0, isLow = 0]: readonly number[],
    [, , , taken]: SliceReport,
    { usableUntilMs, nowMs }: { readonly usableUntilMs: number; readonly nowMs: number },
  ): void {
    this.granted = granted
    this.last = { used, held, leftMs, isLow: isLow === 1, atMs: nowMs }
    this.reportedTaken = Math.max(this.reportedTaken, taken)
    this.usableUntilMs = usableUntilMs
  }
}

/** Length of a window. */
const WINDOW_MS = 1_000
/** Requests in a window that make a limit worth a slice. */
const BUSY_REQUESTS = 8

/** The use in one window. */
interface Use {
  requests: number
  amount: number
  /** The largest amount of one request, or the peak of concurrent requests. */
  largest: number
}

/** The use of one limit. */
class UsageWindow {
  private startMs: number
  private current: Use = newUse(0)
  private before: Use = newUse(0)

  constructor(nowMs: number) {
    this.startMs = nowMs
  }

  /** Whether the limit is used often enough for a slice. */
  get isBusy(): boolean {
    return Math.max(this.current.requests, this.before.requests) >= BUSY_REQUESTS
  }

  /** The amount of the window with the higher one. */
  get amount(): number {
    return Math.max(this.current.amount, this.before.amount)
  }

  /** The largest amount of one request, or the peak of concurrent requests. */
  get largest(): number {
    return Math.max(this.current.largest, this.before.largest)
  }

  /** Whether two windows are over since the last request. */
  isIdle(nowMs: number): boolean {
    return nowMs - this.startMs >= 2 * WINDOW_MS
  }

  /** Begins the next window if the current one is over; `inUse` is the number of concurrent requests. */
  roll(nowMs: number, inUse: number): void {
    if (nowMs - this.startMs < WINDOW_MS) return
    this.before = this.isIdle(nowMs) ? newUse(inUse) : this.current
    this.current = newUse(inUse)
    this.startMs = nowMs
  }

  /** Counts a request. */
  count(amount: number): void {
    this.current.requests += 1
    this.current.amount += amount
    this.countPeak(amount)
  }

  /** Counts concurrent requests. */
  countPeak(inUse: number): void {
    this.current.largest = Math.max(this.current.largest, inUse)
  }

  clear(): void {
    this.before = newUse(0)
    this.current = newUse(0)
  }
}

function newUse(inUse: number): Use {
  return { requests: 0, amount: 0, largest: inUse }
}
