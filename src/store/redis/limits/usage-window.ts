/**
 * Counts the use of a limit by this process in windows of a second: the current one and the one before.
 */

/** Length of a window. */
export const WINDOW_MS = 1_000
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
export class UsageWindow {
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
