/** Limits the time that requests wait for the ledger, with one timer for all of them. */

/**
 * Redis commands fail after 100 ms by the setting of their client. An embedded store has no such limit: a
 * process that was stopped in the middle of a transaction blocks all others until it continues.
 */
const TIMEOUT_MS = 2_000
const SWEEP_MS = 100

interface PendingResult {
  readonly sinceMs: number
  isSettled: boolean
  readonly giveUp: () => void
}

/** Holds a timer while results are pending. */
export class LedgerTimeout {
  private readonly now: () => number
  private readonly timeoutMs: number
  private pending: PendingResult[] = []
  private timer: NodeJS.Timeout | null = null

  /** `now` is monotonic, in ms. */
  constructor(now: () => number, timeoutMs = TIMEOUT_MS) {
    this.now = now
    this.timeoutMs = timeoutMs
  }

  /** Resolves to the result, or null if it does not arrive in time. Rejects if `result` does. */
  wait<Result>(result: Promise<Result>): Promise<Result | null> {
    return new Promise((resolve, reject) => {
      const pending: PendingResult = {
        sinceMs: this.now(),
        isSettled: false,
        giveUp: () => resolve(null),
      }
      this.pending.push(pending)
      this.timer ??= setInterval(() => this.sweep(), SWEEP_MS).unref()
      result.then(
        (value) => {
          pending.isSettled = true
          resolve(value)
        },
        (error: unknown) => {
          pending.isSettled = true
          reject(error instanceof Error ? error : new Error(String(error)))
        },
      )
    })
  }

  /** Stops the timer. */
  close(): void {
    if (this.timer !== null) clearInterval(this.timer)
    this.timer = null
  }

  private sweep(): void {
    const oldestMs = this.now() - this.timeoutMs
    this.pending = this.pending.filter(({ isSettled, sinceMs, giveUp }) => {
      if (!isSettled && sinceMs <= oldestMs) giveUp()
      return !isSettled && sinceMs > oldestMs
    })
    if (this.pending.length === 0) this.close()
  }
}
