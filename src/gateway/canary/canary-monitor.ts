/**
 * Aborts failing canaries: adds up the attempts that all processes of this gateway report, and takes a target
 * out of use if too many of them failed. Runs in the process that reads the configuration.
 */
import { labelOf, shareOf } from '../routing/router.js'
import { generationFields, type AbortConfig, type Snapshot } from '../../config/config.js'
import { isProviderFailure } from '../../errors.js'
import type { Logger } from '../../observe/log.js'
import type { Metrics } from '../../observe/metrics/metrics.js'
import type { Notify } from '../../observe/notification.js'
import type { AttemptResult } from '../attempts/attempt-result.js'
import { RollingSums } from '../../base/rolling-sums.js'
import type { CanaryState } from '../routing/router.js'

/** All targets that receive no requests while this generation is in force. */
export interface CanaryOrder {
  readonly generation: number
  readonly aborted: readonly CanaryId[]
}

/**
 * Whether a message of another process is an order. The check is shallow because the sender runs the same
 * program.
 */
export function isCanaryOrder(value: unknown): value is CanaryOrder {
  return typeof value === 'object' && value !== null && 'aborted' in value && 'generation' in value
}

/** The services that the monitor uses. */
interface MonitorOptions {
  readonly log: Pick<Logger, 'warn'>
  readonly metrics: Pick<Metrics, 'comparison'>
  /** Notifies of an aborted canary; absent: no notifications. */
  readonly notify?: Notify | undefined
  /** Monotonic, in ms. */
  readonly now: () => number
}

/** Creates a monitor that uses the clock of this process. */
export function newCanaryMonitor(log: Logger, metrics: Metrics, notify?: Notify): CanaryMonitor {
  return new CanaryMonitor({ log, metrics, notify, now: () => performance.now() })
}

const ATTEMPTS = 0
const FAILURES = 1

interface WatchedTarget {
  readonly shown: Omit<CanaryState, 'attempts' | 'failures' | 'abortedAtMs'>
  readonly abort: AbortConfig
  readonly sums: RollingSums
  aborted: { readonly atMs: number; readonly attempts: number; readonly failures: number } | null
}

/** The canary monitor of a gateway. */
export class CanaryMonitor {
  private readonly options: MonitorOptions
  private generation = 0
  private named: Partial<ReturnType<typeof generationFields>> = {}
  private watched = new Map<CanaryId, WatchedTarget>()

  constructor(options: MonitorOptions) {
    this.options = options
  }

  /** Starts a new generation: resets all counts and restores all configured weights. */
  adopt(snapshot: Pick<Snapshot, 'generation' | 'config' | 'fileHash'>): void {
    const { generation, config } = snapshot
    this.generation = generation
    this.named = generationFields(snapshot)
    this.watched = new Map()
    config.routes.forEach(({ match, targets }, route) => {
      const label = labelOf(match)
      targets.forEach((each, target) => {
        const { upstream, model, weight, abort } = each
        if (abort === null) return
        const { errorRate, minRequests, windowMs } = abort
        const percent = shareOf(each, targets, 100)
        const limits = { errorRate, minRequests, windowSeconds: windowMs / 1000 }
        const id = `${route}.${target}`
        const shown = { id, route: label, upstream, model, weight, percent, ...limits }
        const sums = new RollingSums(windowMs, 2)
        this.watched.set(id, { shown, abort, sums, aborted: null })
      })
    })
    this.publish()
  }

  /**
   * Adds the counts of one process; a report of another generation is ignored. Returns the order to send to
   * all processes if a target must be aborted, else null.
   */
  report({ generation, counts }: CanaryReport): CanaryOrder | null {
    if (generation !== this.generation) return null
    const nowMs = this.options.now()
    let hasChanged = false
    for (const [id, { attempts, failures }] of Object.entries(counts)) {
      const watched = this.watched.get(id)
      if (watched === undefined || watched.aborted !== null) continue
      watched.sums.add(ATTEMPTS, attempts, nowMs)
      watched.sums.add(FAILURES, failures, nowMs)
      hasChanged = this.abortIfFailing(watched, nowMs) || hasChanged
    }
    if (!hasChanged) return null
    this.publish()
    const aborted = [...this.watched].filter(([, watched]) => watched.aborted !== null)
    return { generation, aborted: aborted.map(([id]) => id) }
  }

  /** `ok`, or the aborted targets, for `/readyz`. */
  get text(): string {
    const texts = [...this.watched.values()].flatMap(({ shown, aborted }) => {
      if (aborted === null) return []
      return [`${shown.route} to ${nameOf(shown)} aborted: ${failuresText(aborted)}`]
    })
    return texts.length === 0 ? 'ok' : texts.join('; ')
  }

  /** The state of every target with `abort`, in the order of the configuration. */
  states(): CanaryState[] {
    const nowMs = this.options.now()
    return [...this.watched.values()].map(({ shown, sums, aborted }) => ({
      ...shown,
      attempts: aborted?.attempts ?? sums.sum(ATTEMPTS, nowMs),
      failures: aborted?.failures ?? sums.sum(FAILURES, nowMs),
      abortedAtMs: aborted?.atMs ?? null,
    }))
  }

  /** Aborts the target if too many of its attempts failed; returns whether it did. */
  private abortIfFailing(watched: WatchedTarget, nowMs: number): boolean {
    const { shown, abort, sums } = watched
    const attempts = sums.sum(ATTEMPTS, nowMs)
    const failures = sums.sum(FAILURES, nowMs)
    if (attempts < abort.minRequests || failures / attempts < abort.errorRate) return false
    watched.aborted = { atMs: Date.now(), attempts, failures }
    const { route, upstream, model } = shown
    const limit = `abort.error_rate is ${abort.errorRate}`
    this.options.log.warn('canary aborted: its weight is 0 until the configuration changes', {
      ...this.named,
      route,
      upstream,
      model: model ?? undefined,
      reason: `${failuresText(watched.aborted)}; ${limit}`,
    })
    this.options.metrics.comparison.canaryAborted(route, upstream)
    const data = { route, upstream, model, attempts, failures, ...this.named }
    this.options.notify?.({ type: 'canary.aborted', atMs: Date.now(), data })
    return true
  }

  private publish(): void {
    const levels = [...this.watched.values()].map(({ shown: { route, upstream }, aborted }) => {
      return { route, upstream, isAborted: aborted !== null }
    })
    this.options.metrics.comparison.canaries(levels)
  }
}

function nameOf({ upstream, model }: Pick<CanaryState, 'upstream' | 'model'>): string {
  return model === null ? upstream : `${upstream}/${model}`
}

function failuresText({ attempts, failures }: Pick<CanaryState, 'attempts' | 'failures'>): string {
  return `${failures} of ${attempts} requests failed`
}

/** Identifies a target with `abort`: the index of its route, a dot, and its index in `targets`. */
type CanaryId = string

/** Attempts on one target. */
interface CanaryCount {
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
interface EndedAttempt {
  /** The status of the upstream's reply; null if there was none. */
  readonly status: AttemptResult['status']
  readonly outcome: NonNullable<AttemptResult['outcome']>
}

/**
 * Counts the attempts on canary targets (targets with `abort`) in one process and reports them to the canary
 * monitor.
 */
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
