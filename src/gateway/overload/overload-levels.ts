/**
 * Calculates the overload level of a process, in steps with hysteresis. Pure: readings and the time are
 * arguments.
 *
 * Level 0: not overloaded. Level 1: connections close after their reply, and keys of low priority are
 * refused. Level 2: only keys of high priority are served. Level 3: all requests are refused, and keys are
 * not looked up.
 */
import type { OverloadConfig } from '../../config/config.js'

/** The overload level. */
export type Level = 0 | 1 | 2 | 3

/** The resources that are measured: a closed set, for metrics. */
export const RESOURCES = ['delay', 'heap', 'open_files', 'in_flight'] as const
/** One of `RESOURCES`. */
export type Resource = (typeof RESOURCES)[number]

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
export function inFlightLevel(inFlight: number, maxInflight: number): Level {
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
