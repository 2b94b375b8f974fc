/**
 * Reports slices that no settlement has reported: it renews those of long requests and returns those that are
 * idle.
 */
import type { LedgerContext } from '../ledger/context.js'
import { parseNumbers } from '../connection/parse-replies.js'
import { LEDGER_SCRIPTS } from '../ledger/scripts.js'
import { groupBy } from '../group-by.js'
import type { SliceReport } from './encode-demands.js'

/** Interval of the reports. */
const ROUND_MS = 500

/** Runs a timer until `end`. */
export class SliceReporter {
  private readonly context: LedgerContext
  private readonly timer: NodeJS.Timeout
  private isBusy = false

  constructor(context: LedgerContext) {
    this.context = context
    this.timer = setInterval(() => void this.round(), ROUND_MS).unref()
  }

  /** Returns what is left of all slices. Never rejects. */
  async end(): Promise<void> {
    clearInterval(this.timer)
    await this.report(this.context.slices.finalReports(performance.now()))
  }

  private async round(): Promise<void> {
    if (this.isBusy) return
    this.isBusy = true
    await this.report(this.context.slices.overdueReports(performance.now()))
    this.isBusy = false
  }

  /** Never rejects: reports have totals, so a lost one is repaired by the next. */
  private async report(reports: readonly SliceReport[]): Promise<void> {
    const { link, names, clock, slices, processName } = this.context
    // Keys of one slot have the same hash tag.
    const slotOf = ([key]: SliceReport) => (names.isCluster ? key.slice(0, key.indexOf('}')) : '')
    for (const group of groupBy(reports, slotOf).values()) {
      const reportedAtMs = performance.now()
      const args = [clock(), processName, JSON.stringify(group)]
      try {
        const keys = group.map(([key]) => key)
        const answer = await link.run('keeping slices', LEDGER_SCRIPTS.reportSlices, { keys, args })
        slices.applyReplies(group, parseNumbers(answer), { reportedAtMs, nowMs: performance.now() })
      } catch {
        // Redis is unavailable: slices end by themselves.
        return
      }
    }
  }
}
