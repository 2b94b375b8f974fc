/**
 * Counts the attempts on canary targets (targets with `abort`) in one process and reports them to the canary
 * monitor.
 */
import { isProviderFailure } from '../../errors.js'
import type { AttemptResult } from '../attempts/attempt-result.js'

/** Identifies a target with `abort`: the index of its route, a dot, and its index in `targets`. */
export type CanaryId = string

/** Attempts on one target. */
export interface CanaryCount {
  readonly attempts: number
  /** Attempts that failed because of the provider. */
  readonly failures: number
}

/** The counts of one process since its last report. */
export interface CanaryReport {
  /** The number of the configuration generation that served the requests. */
  readonly generation: number
  readonly counts: Readonly<Record<CanaryId, CanaryCount>>
}

/**
 * Whether a message of another process is a report. The check is shallow because the sender runs the same
 * program.
 */
export function isCanaryReport(value: unknown): value is CanaryReport {
  return typeof value === 'object' && value !== null && 'counts' in value && 'generation' in value
}

/** Interval of the reports, in ms; it delays an abort by about the same time. */
const REPORT_MS = 50

/** The end of an attempt. */
export interface EndedAttempt {
  /** The status of the upstream's reply; null if there was none. */
  readonly status: AttemptResult['status']
  readonly outcome: NonNullable<AttemptResult['outcome']>
}

/** The counter of one process. */
export class CanaryCounter {
  private readonly send: (report: CanaryReport) => void
  private counts = new Map<CanaryId, { attempts: number; failures: number }>()
  private generation = 0
  private timer: NodeJS.Timeout | null = null

  constructor(send: (report: CanaryReport) => void) {
    this.send = send
  }

  /**
   * Records that an attempt of a request of that generation has ended. Failures are those that count for the
   * circuit breaker. A request that the provider refused as the client's mistake counts as an attempt without
   * a failure; an attempt that the client or the gateway ended is not counted.
   */
  ended(generation: number, id: CanaryId, { status, outcome }: EndedAttempt): void {
    const isFailure = outcome !== 'ok' && outcome !== 'cancelled' && isProviderFailure(outcome)
    const isRefusal = outcome === 'upstream_rejected' || (status ?? 0) >= 400
    if (outcome !== 'ok' && !isFailure && !isRefusal) return
    if (generation !== this.generation) {
      this.report()
      this.generation = generation
    }
    const count = this.counts.get(id) ?? { attempts: 0, failures: 0 }
    this.counts.set(id, count)
    count.attempts += 1
    if (isFailure) count.failures += 1
    this.timer ??= setTimeout(() => this.report(), REPORT_MS).unref()
  }

  /** Sends the counts now, if there are any. */
  report(): void {
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
    if (this.counts.size === 0) return
    const counts = Object.fromEntries(this.counts)
    this.counts = new Map()
    this.send({ generation: this.generation, counts })
  }
}
