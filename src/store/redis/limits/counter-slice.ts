/**
 * A process's slice of a rate or a budget: an amount that its requests may use without a command to Redis.
 * The caller passes the time. How slices work: docs/explanation/redis-store.md.
 */
import { budgetState } from '../../../limits/arithmetic/budget-limit.js'
import { rateState, remainingUnits, UNITS } from '../../../limits/arithmetic/rate-limit.js'
import type { Demand, LimitState } from '../../ledger.js'
import { amountsOf, type SliceReport } from './encode-demands.js'
import { UsageWindow } from './usage-window.js'

/** Interval of reports of a slice that has enough left. */
export const REPORT_INTERVAL_MS = 250

/** The slice of one rate or budget. */
export class CounterSlice {
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
    if (this.kind !== 'requests' && this.taken > this.reportedTaken) return true
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
