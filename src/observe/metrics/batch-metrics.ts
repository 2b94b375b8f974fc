/** The metrics of batches. */
import type { Families } from './metric-families.js'

/** What batches that have not ended are doing. */
export const BATCH_STATES = ['checking', 'submitted', 'running', 'finishing'] as const
type BatchMetricState = (typeof BATCH_STATES)[number]

/** The batch metrics of a process. */
export class BatchMetrics {
  private readonly families: Families

  constructor(families: Families) {
    this.families = families
  }

  /** The batches of the fleet that have not ended, by state. */
  open(counts: Readonly<Record<BatchMetricState, number>>): void {
    for (const state of BATCH_STATES) this.families.batches.child(state).set(counts[state])
  }

  /** Lines of a batch that has ended, by how they ended; `result` is from a closed set. */
  lines(upstream: string, result: string, lines: number): void {
    if (lines > 0) this.families.batchLines.child(upstream, result).add(lines)
  }

  /** A question to a vendor about a batch. */
  poll(upstream: string, result: 'ok' | 'rate_limited' | 'error'): void {
    this.families.batchPolls.child(upstream, result).add()
  }
}
