/**
 * Says in the log why the store failed. A client sees only that it did, and a store that is away fails every
 * request: each reason is one line in ten seconds.
 */
import type { Logger } from '../observe/log/log.js'
import { reasonOf } from './errors.js'

const AGAIN_MS = 10_000
/** Reasons in ten seconds; of damaged records there may be many. */
const MOST_REASONS = 32

/** Writes a line for each new reason. */
export class StoreErrorLog {
  private readonly log: Pick<Logger, 'warn'>
  private readonly now: () => number
  private readonly told = new Map<string, number>()

  /** `now` in ms, from any beginning. */
  constructor(log: Pick<Logger, 'warn'>, now: () => number = () => performance.now()) {
    this.log = log
    this.now = now
  }

  /** `op` is the operation's name in `sluice_store_errors_total`. */
  report(op: string, error: unknown): void {
    const nowMs = this.now()
    for (const [reason, atMs] of this.told) {
      if (nowMs - atMs >= AGAIN_MS) this.told.delete(reason)
    }
    const reason = reasonOf(error)
    if (this.told.has(reason) || this.told.size >= MOST_REASONS) return
    this.told.set(reason, nowMs)
    this.log.warn('store failed', { op, reason })
  }
}
