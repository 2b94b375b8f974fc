/**
 * Logs why the store failed; the reply to a client does not contain the reason. An unavailable store fails
 * every request, so each reason is logged once in ten seconds.
 */
import type { Logger } from '../observe/log/log.js'
import { reasonOf } from './errors.js'

const AGAIN_MS = 10_000
/** Maximum number of reasons in ten seconds; each damaged record is a reason of its own. */
const MOST_REASONS = 32

/** Writes a line for each new reason. */
export class StoreErrorLog {
  private readonly log: Pick<Logger, 'warn'>
  private readonly now: () => number
  private readonly reported = new Map<string, number>()

  /** `now` is a monotonic clock in ms. */
  constructor(log: Pick<Logger, 'warn'>, now: () => number = () => performance.now()) {
    this.log = log
    this.now = now
  }

  /** `op` is the operation's name in `sluice_store_errors_total`. */
  report(op: string, error: unknown): void {
    const nowMs = this.now()
    for (const [reason, atMs] of this.reported) {
      if (nowMs - atMs >= AGAIN_MS) this.reported.delete(reason)
    }
    const reason = reasonOf(error)
    if (this.reported.has(reason) || this.reported.size >= MOST_REASONS) return
    this.reported.set(reason, nowMs)
    this.log.warn('store failed', { op, reason })
  }
}
