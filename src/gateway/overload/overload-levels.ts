/**
 * How overloaded a process is, in steps with hysteresis. Pure: readings and the time are arguments.
 *
 * 0: not at all. 1: connections close after their reply, and keys of low priority are refused. 2: only keys of high
 * priority are served. 3: no request is served, and keys are not looked up.
 */
import type { OverloadConfig } from '../../config/config.js'

/** The steps. */
export type Level = 0 | 1 | 2 | 3

/** What a level is measured by: a closed set, for metrics. */
export const RESOURCES = ['delay', 'heap', 'open_files', 'in_flight'] as const
/** One of `RESOURCES`. */
export type Resource = (typeof RESOURCES)[number]

/** What was measured. Null: cannot be measured here. */
export interface Readings {
  /** How late the event loop was; `AverageDelay` of what was measured. */
  readonly delayMs: number
  /** Of the heap limit, 0 to 1. */
  readonly heapShare: number
  /** Of the limit of open files, 0 to 1. */
  readonly openFilesShare: number | null
  /** Requests under way. */
  readonly inFlight: number
}

/** Requests under way at each step, as shares of `max_inflight`. */
const IN_FLIGHT_SHARES = [0.8, 1, 1.1] as const

/** The level that the readings call for, and the resource that is worst. */
export function levelFor(readings: Readings, config: OverloadConfig): [Level, Resource] {
  const { delayMs, heapShare, openFilesShare, inFlight } = readings
  let worst: [Level, Resource] = [stepOf(delayMs, config.delayMs), 'delay']
  const others: [Level, Resource][] = [
    [stepOf(heapShare, config.heapShare), 'heap'],
    [stepOf(openFilesShare ?? 0, config.openFilesShare), 'open_files'],
    [inFlightLevel(inFlight, config.maxInflight), 'in_flight'],
  ]
  for (const each of others) if (each[0] > worst[0]) worst = each
  return worst
}

/** The level of this many requests under way: exact, without waiting for the next reading. */
export function inFlightLevel(inFlight: number, maxInflight: number): Level {
  return stepOf(inFlight / maxInflight, IN_FLIGHT_SHARES)
}

function stepOf(value: number, steps: readonly number[]): Level {
  const [first = Infinity, second = Infinity, third = Infinity] = steps
  if (value >= third) return 3
  if (value >= second) return 2
  return value >= first ? 1 : 0
}

/** The time over which delays are averaged. */
const AVERAGE_MS = 500
/** One reading counts for this long at most, so that one long turn does not outweigh all others. */
const MAX_WEIGHT_MS = 200

/**
 * The delay of the event loop as a moving average, weighted by time: under load long turns alternate with short ones, and
 * single readings tell little.
 */
export class AverageDelay {
  private averageMs = 0
  private lastMs: number | null = null

  /** Takes a reading; answers with the average. `nowMs` never goes back. */
  take(delayMs: number, nowMs: number): number {
    const sinceMs = Math.min(MAX_WEIGHT_MS, nowMs - (this.lastMs ?? nowMs - MAX_WEIGHT_MS))
    this.lastMs = nowMs
    this.averageMs += (delayMs - this.averageMs) * (1 - Math.exp(-sinceMs / AVERAGE_MS))
    return this.averageMs
  }
}

/** Since when readings have called for a step, and when they last did. */
interface Step {
  sinceMs: number | null
  lastMs: number
  isRaised: boolean
}

/**
 * The level in force. It rises to a step that every reading has called for during `riseMs`, so that one long turn of the
 * event loop changes nothing, and falls below a step that no reading has called for during `holdMs`.
 */
export class Levels {
  private readonly steps: readonly Step[] = [newStep(), newStep(), newStep()]

  /** Takes a reading; answers with the level in force. `nowMs` never goes back. */
  take(wanted: Level, { riseMs, holdMs }: OverloadConfig, nowMs: number): Level {
    let level = 0
    for (const [index, step] of this.steps.entries()) {
      if (wanted > index) {
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
