/**
 * Refuses requests while the process is overloaded, those of low priority first. Health and metrics have
 * their own listener and are never refused.
 */
import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { getHeapStatistics } from 'node:v8'
import { PRIORITY, type Labels } from '../accounts/labels.js'
import type { OverloadConfig } from '../config/config.js'
import { GatewayError } from '../errors.js'
import type { Logger } from '../observe/log.js'
import type { Metrics } from '../observe/metrics/metrics.js'

/** The inputs of the decisions; tests pass their own readings and time. */
interface OverloadOptions {
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
const SAMPLE_MS = 100
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
    const [required, resource] = config.enabled ? levelFor(readings, config) : [0 as const, 'delay' as const]
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

export type Level = 0 | 1 | 2 | 3

/** The resources that are measured: a closed set, for metrics. */
type Resource = 'delay' | 'heap' | 'open_files' | 'in_flight'

/** One measurement of the process. */
export interface Readings {
  /** Delay of the event loop, averaged by `AverageDelay`. */
  readonly delayMs: number
  /** Used share of the heap limit, 0 to 1. */
  readonly heapShare: number
  /** Used share of the limit of open files, 0 to 1; null if it cannot be measured on this system. */
  readonly openFilesShare: number | null
  /** Number of requests in flight. */
  readonly inFlight: number
}

/** Requests in flight at each level, as shares of `max_inflight`. */
const IN_FLIGHT_SHARES = [0.8, 1, 1.1] as const

/** The level for the readings, and the resource that causes it. */
export function levelFor(readings: Readings, config: OverloadConfig): [Level, Resource] {
  const { delayMs, heapShare, openFilesShare, inFlight } = readings
  let worst: [Level, Resource] = [stepOf(delayMs, config.delayMs), 'delay']
  const others: [Level, Resource][] = [
    [stepOf(heapShare, config.heapShare), 'heap'],
    [stepOf(openFilesShare ?? 0, config.openFilesShare), 'open_files'],
    [inFlightLevel(inFlight, config.maxInflight), 'in_flight'],
  ]
  for (const candidate of others) if (candidate[0] > worst[0]) worst = candidate
  return worst
}

/** The level for this number of requests in flight. */
function inFlightLevel(inFlight: number, maxInflight: number): Level {
  return stepOf(inFlight / maxInflight, IN_FLIGHT_SHARES)
}

function stepOf(value: number, steps: readonly number[]): Level {
  const [first = Infinity, second = Infinity, third = Infinity] = steps
  if (value >= third) return 3
  if (value >= second) return 2
  return value >= first ? 1 : 0
}

/** Time constant of the moving average. */
const AVERAGE_MS = 500
/** Maximum time that one reading counts for, so that one long turn does not outweigh all others. */
const MAX_WEIGHT_MS = 200

/**
 * The delay of the event loop as a moving average, weighted by time: under load long turns alternate with
 * short ones, so that single readings vary too much.
 *
 * Calculates the overload level of a process, in steps with hysteresis. Pure: readings and the time are
 * arguments.
 *
 * Level 0: not overloaded. Level 1: connections close after their reply, and keys of low priority are
 * refused. Level 2: only keys of high priority are served. Level 3: all requests are refused, and keys are
 * not looked up.
 */
export class AverageDelay {
  private averageMs = 0
  private lastMs: number | null = null

  /** Adds a reading and returns the average. `nowMs` must not decrease. */
  add(delayMs: number, nowMs: number): number {
    const sinceMs = Math.min(MAX_WEIGHT_MS, nowMs - (this.lastMs ?? nowMs - MAX_WEIGHT_MS))
    this.lastMs = nowMs
    this.averageMs += (delayMs - this.averageMs) * (1 - Math.exp(-sinceMs / AVERAGE_MS))
    return this.averageMs
  }
}

/** When readings last started to require a step, and when they last required it. */
interface Step {
  sinceMs: number | null
  lastMs: number
  isRaised: boolean
}

/**
 * The level in force. It rises to a step that every reading has required for `riseMs`, so that one long turn
 * of the event loop has no effect, and falls below a step that no reading has required for `holdMs`.
 */
export class Levels {
  private readonly steps: readonly Step[] = [newStep(), newStep(), newStep()]

  /** Adds the level of a reading and returns the level in force. `nowMs` must not decrease. */
  update(required: Level, { riseMs, holdMs }: OverloadConfig, nowMs: number): Level {
    let level = 0
    for (const [index, step] of this.steps.entries()) {
      if (required > index) {
        step.sinceMs ??= nowMs
        step.lastMs = nowMs
        if (nowMs - step.sinceMs >= riseMs) step.isRaised = true
      } else {
        step.sinceMs = null
        if (nowMs - step.lastMs >= holdMs) step.isRaised = false
      }
      if (step.isRaised) level = index + 1
    }
    return level as Level
  }
}

function newStep(): Step {
  return { sinceMs: null, lastMs: Number.NEGATIVE_INFINITY, isRaised: false }
}

/** The services and settings of the process that the control uses. */
interface MonitorOptions {
  readonly settings: () => OverloadConfig
  readonly inFlight: () => number
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly metrics: Pick<Metrics, 'overloadLevel' | 'shed'>
}

/** Holds timers until `close`; they do not keep the process running. */
export class OverloadMonitor {
  readonly overload: Overload
  private readonly gauges = new ProcessReadings()
  private readonly timer: NodeJS.Timeout

  constructor({ settings, inFlight, log, metrics }: MonitorOptions) {
    this.overload = new Overload({
      settings,
      inFlight,
      log,
      read: (requests) => this.gauges.read(requests),
      now: () => this.gauges.turns.runningMs,
      random: Math.random,
      onLevel: (level) => metrics.overloadLevel(level),
      onShed: (resource) => metrics.shed(resource),
    })
    this.timer = setInterval(() => this.overload.sample(), SAMPLE_MS).unref()
  }

  close(): void {
    clearInterval(this.timer)
    this.gauges.close()
  }
}

/** Interval of the timer that observes the turns of the event loop. */
const TURN_MS = 10

/**
 * The turns of the event loop, in the time that this process was able to run. A turn also takes long when the
 * system does not schedule the process, because it is stopped or other processes use every core: refusing
 * requests would not help then. So a late turn counts for the share of the time that the process ran.
 *
 * The CPU time is read with each reading and after a late turn. To read it in every turn costs 1.5 % of all
 * CPU time under virtualisation.
 *
 * Holds a timer until `close`.
 */
export class Turns {
  private readonly timer = setInterval(() => this.observe(), TURN_MS).unref()
  private lastMs = performance.now()
  /** When the CPU time was read last, and what it was. */
  private cpuAtMs = this.lastMs
  private cpuMs = cpuTimeMs()
  private longestMs = 0
  private absentMs = 0

  /** Monotonic ms without those in which the process was not scheduled. */
  get runningMs(): number {
    this.observe()
    return this.lastMs - this.absentMs
  }

  /** By how much the longest turn since the last call delayed the next one. */
  takeDelayMs(): number {
    this.observe()
    this.takeRunningShare()
    const delayMs = this.longestMs
    this.longestMs = 0
    return delayMs
  }

  close(): void {
    clearInterval(this.timer)
  }

  private observe(): void {
    const nowMs = performance.now()
    const lateMs = nowMs - this.lastMs - TURN_MS
    this.lastMs = nowMs
    // The timer itself is late by a few ms.
    if (lateMs <= TURN_MS) return
    const ownMs = lateMs * this.takeRunningShare()
    this.longestMs = Math.max(this.longestMs, ownMs)
    this.absentMs += lateMs - ownMs
  }

  /** CPU time as a share of the time since the last call, at most 1. */
  private takeRunningShare(): number {
    const sinceMs = this.lastMs - this.cpuAtMs
    const beforeMs = this.cpuMs
    this.cpuAtMs = this.lastMs
    this.cpuMs = cpuTimeMs()
    return sinceMs > 0 ? Math.min(1, (this.cpuMs - beforeMs) / sinceMs) : 1
  }
}

/** CPU time of this process, its threads included. */
function cpuTimeMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

/** Interval for counting open files, which costs more than the other readings. */
const FILES_EVERY_MS = 1_000
const FILES = '/proc/self/fd'

/** Holds a timer until `close`. */
class ProcessReadings {
  readonly turns = new Turns()
  private readonly maxFiles = fileLimit()
  private openFiles = 0
  private countedMs = Number.NEGATIVE_INFINITY

  /** Returns the readings since the last call. */
  read(inFlight: number): Readings {
    const delayMs = this.turns.takeDelayMs()
    this.countFiles()
    const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics()
    return {
      delayMs,
      heapShare: used / limit,
      openFilesShare: this.maxFiles === null ? null : this.openFiles / this.maxFiles,
      inFlight,
    }
  }

  close(): void {
    this.turns.close()
  }

  private countFiles(): void {
    const nowMs = performance.now()
    if (this.maxFiles === null || nowMs - this.countedMs < FILES_EVERY_MS) return
    this.countedMs = nowMs
    readdir(FILES).then(
      (files) => (this.openFiles = files.length),
      // Listing the folder needs a file descriptor itself, and none was left.
      (error: unknown) => {
        const isFull = error instanceof Error && 'code' in error && error.code === 'EMFILE'
        if (isFull) this.openFiles = this.maxFiles ?? 0
      },
    )
  }
}

/** The soft limit of open files; null if the system does not report it. */
function fileLimit(): number | null {
  try {
    const maxFiles = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
    return maxFiles === undefined ? null : Number(maxFiles)
  } catch {
    return null
  }
}
