/** The metrics of exited workers: the sums of counters must not fall when a worker exits. */
import type { Collected } from '../../observe/metrics/metric.js'
import { aggregate } from '../../observe/metrics/aggregate-processes.js'

/** More sets are added up into one. */
const MAX_SETS = 8

/** The metrics of exited processes, without gauges. */
export class RetiredMetrics {
  private sets: Collected[][] = []
  private isCompacting = false

  /** One set for each process, or the sum of several. */
  get all(): readonly Collected[][] {
    return this.sets
  }

  /** Adds the last metrics of a process. */
  add(counted: readonly Collected[]): void {
    this.sets.push(counted.filter(({ type }) => type !== 'gauge'))
    void this.compact()
  }

  private async compact(): Promise<void> {
    if (this.isCompacting || this.sets.length < MAX_SETS) return
    this.isCompacting = true
    const batch = [...this.sets]
    try {
      const merged = await aggregate(batch)
      this.sets = [merged, ...this.sets.slice(batch.length)]
    } finally {
      this.isCompacting = false
    }
  }
}
