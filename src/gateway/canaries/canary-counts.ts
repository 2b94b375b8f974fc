/** Counts the attempts on targets with `abort` in one process, for the monitor that decides. */
import { isProvidersFault } from '../../errors.js'
import type { AttemptResult } from '../attempts/attempt-result.js'

/** A target with `abort`: the index of its route and its index in `targets`, with a dot between. */
export type CanaryId = string

/** Attempts on one target. */
export interface CanaryCount {
  readonly attempts: number
  /** Those that the provider failed. */
  readonly failures: number
}

/** What one process has counted since its last report. */
export interface CanaryReport {
  /** The configuration that the requests had. */
  readonly generation: number
  readonly counts: Readonly<Record<CanaryId, CanaryCount>>
}

/** Whether what another process sent is one; it is the same program, so this is shallow. */
export function isCanaryReport(value: unknown): value is CanaryReport {
  return typeof value === 'object' && value !== null && 'counts' in value && 'generation' in value
}

/** How often a process reports, in ms: an abort is late by about as much. */
const REPORT_MS = 50

/** One per process. */
export class CanaryCounter {
  private readonly send: (report: CanaryReport) => void
  private counts = new Map<CanaryId, { attempts: number; failures: number }>()
  private generation = 0
  private timer: NodeJS.Timeout | null = null

  constructor(send: (report: CanaryReport) => void) {
    this.send = send
  }

  /**
   * An attempt has ended with `outcome`. Failures count as circuit breakers count them; what the provider refused as the
   * client's mistake is no failure, and an attempt that the client or the gateway ended does not count.
   */
  ended(
    generation: number,
    id: CanaryId,
    status: AttemptResult['status'],
    outcome: NonNullable<AttemptResult['outcome']>,
  ): void {
    const isFailure = outcome !== 'ok' && outcome !== 'cancelled' && isProvidersFault(outcome)
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

  /** Sends what has been counted now. */
  report(): void {
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
    if (this.counts.size === 0) return
    const counts = Object.fromEntries(this.counts)
    this.counts = new Map()
    this.send({ generation: this.generation, counts })
  }
}
