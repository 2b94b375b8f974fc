/**
 * A process's slice of a limit of concurrent requests: slots that its requests may use without a command to
 * Redis. The caller passes the time.
 *
 * Redis always holds at least as many slots for the process as it uses: slots are not used from the report
 * that returns them, and not before they are granted. Reports are numbered, since a delayed one may arrive
 * after its successors.
 */
import type { ConcurrencyDemand, Demand, LimitState } from '../../ledger.js'
import { REPORT_INTERVAL_MS } from './counter-slice.js'
import { amountsOf, type SliceReport } from './encode-demands.js'
import { UsageWindow } from './usage-window.js'

/** Minimum number of slots requested beyond the peak. */
const SPARE = 2

/** The slice of one limit of concurrent requests. */
export class ConcurrencySlice {
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
