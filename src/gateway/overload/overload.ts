/**
 * Refuses requests while the process is overloaded, those of low priority first. Health and metrics have
 * their own listener and are never refused.
 */
import { PRIORITY, type Labels } from '../../accounts/labels.js'
import type { OverloadConfig } from '../../config/config.js'
import { GatewayError } from '../../errors.js'
import type { Logger } from '../../observe/log/log.js'
import {
  AverageDelay,
  inFlightLevel,
  levelFor,
  Levels,
  type Level,
  type Readings,
  type Resource,
} from './overload-levels.js'

/** The inputs of the decisions; tests pass their own readings and time. */
export interface OverloadOptions {
  /** Read on every use, so that a reload takes effect at once. */
  readonly settings: () => OverloadConfig
  readonly inFlight: () => number
  readonly read: (inFlight: number) => Readings
  readonly now: () => number
  /** 0 to 1. */
  readonly random: () => number
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly onLevel: (level: Level) => void
  readonly onShed: (resource: Resource) => void
}

/** Interval at which `sample` must be called, in ms. */
export const SAMPLE_MS = 100
const MIN_RETRY_SECONDS = 1
const MAX_RETRY_SECONDS = 5

const NAMES: Readonly<Record<Resource, string>> = {
  delay: 'event loop delay',
  heap: 'heap',
  open_files: 'open files',
  in_flight: 'requests in flight',
}

/** The overload control of one process. */
export class Overload {
  private readonly options: OverloadOptions
  private readonly levels = new Levels()
  private readonly delay = new AverageDelay()
  private level: Level = 0
  /** The resource that raised the level. */
  private resource: Resource = 'delay'

  constructor(options: OverloadOptions) {
    this.options = options
  }

  /** True while connections must close after their reply. */
  get closesConnections(): boolean {
    return this.level > 0
  }

  /** `ok`, or the level and its cause, for `/readyz`. */
  get state(): string {
    return this.level === 0 ? 'ok' : `level ${this.level} of 3: ${NAMES[this.resource]}`
  }

  /** Takes a reading. Call every `SAMPLE_MS`. */
  sample(): void {
    const { settings, read, inFlight, now } = this.options
    const config = settings()
    const nowMs = now()
    const measured = read(inFlight())
    const readings = { ...measured, delayMs: this.delay.add(measured.delayMs, nowMs) }
    const [required, resource] = config.enabled
      ? levelFor(readings, config)
      : [0 as const, 'delay' as const]
    const previous = this.level
    this.level = this.levels.update(required, config, nowMs)
    if (required > 0 && required >= this.level) this.resource = resource
    if (this.level !== previous) this.report(previous)
  }

  /** Throws `overloaded` at level 3. Call before the key is looked up. */
  assertOpen(): void {
    const [level, resource] = this.current()
    if (level === 3) throw this.refusal(resource)
  }

  /**
   * Throws `overloaded` if requests of a key with these labels are refused. Such a request gets no ledger
   * entry, because writing it would add to the load.
   */
  assertServed(labels: Labels): void {
    const [level, resource] = this.current()
    if (level === 0) return
    const priority = Object.hasOwn(labels, PRIORITY) ? labels[PRIORITY] : undefined
    const isServed = level === 1 ? priority !== 'low' : level === 2 && priority === 'high'
    if (!isServed) throw this.refusal(resource)
  }

  /** Includes the current number of requests in flight, because many may arrive between two readings. */
  private current(): [Level, Resource] {
    const { settings, inFlight } = this.options
    const { enabled, maxInflight } = settings()
    if (!enabled) return [0, 'delay']
    const now = inFlightLevel(inFlight() - 1, maxInflight)
    // Level 1 is not urgent and is left to the readings.
    return now > 1 && now > this.level ? [now, 'in_flight'] : [this.level, this.resource]
  }

  private refusal(resource: Resource): GatewayError {
    const { onShed, random } = this.options
    onShed(resource)
    const span = MAX_RETRY_SECONDS - MIN_RETRY_SECONDS + 1
    const retryAfterSeconds = MIN_RETRY_SECONDS + Math.min(span - 1, Math.floor(random() * span))
    return new GatewayError('overloaded', 'The gateway is overloaded; try again later.', {
      retryAfterSeconds,
    })
  }

  private report(previous: Level): void {
    const { log, onLevel } = this.options
    onLevel(this.level)
    const reason = this.level === 0 ? undefined : this.state
    if (this.level > previous) log.warn('overloaded', { reason })
    else if (this.level === 0) log.info('no longer overloaded')
    else log.info('less overloaded', { reason })
  }
}
