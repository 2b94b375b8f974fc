/**
 * Refuses requests while the process is overloaded, the least important first. Health and metrics have a listener of
 * their own and are never refused.
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

/** What the decisions are made with; tests hand in readings and the time. */
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

/** How often `sample` is due. */
export const SAMPLE_MS = 100
const MIN_RETRY_SECONDS = 1
const MAX_RETRY_SECONDS = 5

const NAMES: Readonly<Record<Resource, string>> = {
  delay: 'event loop delay',
  heap: 'heap',
  open_files: 'open files',
  in_flight: 'requests under way',
}

/** The overload control of one process. */
export class Overload {
  private readonly options: OverloadOptions
  private readonly levels = new Levels()
  private readonly delay = new AverageDelay()
  private level: Level = 0
  /** What raised the level. */
  private resource: Resource = 'delay'

  constructor(options: OverloadOptions) {
    this.options = options
  }

  /** True while connections are to close after their reply. */
  get closesConnections(): boolean {
    return this.level > 0
  }

  /** `ok`, or the level and its cause, for `/readyz`. */
  get state(): string {
    return this.level === 0 ? 'ok' : `level ${this.level} of 3: ${NAMES[this.resource]}`
  }

  /** Takes a reading; due every `SAMPLE_MS`. */
  sample(): void {
    const { settings, read, inFlight, now } = this.options
    const config = settings()
    const nowMs = now()
    const measured = read(inFlight())
    const readings = { ...measured, delayMs: this.delay.take(measured.delayMs, nowMs) }
    const [wanted, resource] = config.enabled
      ? levelFor(readings, config)
      : [0 as const, 'delay' as const]
    const before = this.level
    this.level = this.levels.take(wanted, config, nowMs)
    if (wanted > 0 && wanted >= this.level) this.resource = resource
    if (this.level !== before) this.report(before)
  }

  /** Call before a key is looked up. Throws `overloaded` at level 3. */
  assertOpen(): void {
    const [level, resource] = this.current()
    if (level === 3) throw this.refusal(resource)
  }

  /**
   * With the labels of the key. Throws `overloaded` if it is not served. Such a request leaves no ledger entry: writing
   * it would add to the load.
   */
  assertServed(labels: Labels): void {
    const [level, resource] = this.current()
    if (level === 0) return
    const priority = Object.hasOwn(labels, PRIORITY) ? labels[PRIORITY] : undefined
    const isServed = level === 1 ? priority !== 'low' : level === 2 && priority === 'high'
    if (!isServed) throw this.refusal(resource)
  }

  /** Requests under way are counted at once: many may come between two readings. */
  private current(): [Level, Resource] {
    const { settings, inFlight } = this.options
    const { enabled, maxInflight } = settings()
    if (!enabled) return [0, 'delay']
    const now = inFlightLevel(inFlight() - 1, maxInflight)
    // The first step has time: it is left to the readings.
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

  private report(before: Level): void {
    const { log, onLevel } = this.options
    onLevel(this.level)
    const reason = this.level === 0 ? undefined : this.state
    if (this.level > before) log.warn('overloaded', { reason })
    else if (this.level === 0) log.info('no longer overloaded')
    else log.info('less overloaded', { reason })
  }
}
