/** Bounds the time that requests wait for the ledger, with one timer for all of them. */

/**
 * Redis commands fail after 100 ms by the setting of their client. An embedded store has no such limit: a process that
 * was stopped in the middle of a transaction blocks all others until it continues.
 */
const TIMEOUT_MS = 2_000
const SWEEP_MS = 100

interface PendingAnswer {
  readonly sinceMs: number
  isAnswered: boolean
  readonly giveUp: () => void
}

/** Holds a timer while answers are pending. */
export class AnswerTimeout {
  private readonly now: () => number
  private readonly timeoutMs: number
  private pending: PendingAnswer[] = []
  private timer: NodeJS.Timeout | null = null

  /** `now` is monotonic, in ms. */
  constructor(now: () => number, timeoutMs = TIMEOUT_MS) {
    this.now = now
    this.timeoutMs = timeoutMs
  }

  /** The answer; null if it does not come in time. Rejects as `answer` does. */
  wait<Answer>(answer: Promise<Answer>): Promise<Answer | null> {
    return new Promise((resolve, reject) => {
      const pending: PendingAnswer = {
        sinceMs: this.now(),
        isAnswered: false,
        giveUp: () => resolve(null),
      }
      this.pending.push(pending)
      this.timer ??= setInterval(() => this.sweep(), SWEEP_MS).unref()
      answer.then(
        (value) => {
          pending.isAnswered = true
          resolve(value)
        },
        (error: unknown) => {
          pending.isAnswered = true
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
    this.pending = this.pending.filter(({ isAnswered, sinceMs, giveUp }) => {
      if (!isAnswered && sinceMs <= oldestMs) giveUp()
      return !isAnswered && sinceMs > oldestMs
    })
    if (this.pending.length === 0) this.close()
  }
}
