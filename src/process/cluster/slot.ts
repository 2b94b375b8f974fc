/**
 * The primary's record of one worker: the process that runs now, how its predecessors ended, and what it
 * last reported. Sends nothing.
 */
import type { Worker } from 'node:cluster'
import type { Collected } from '../../observe/metrics/metric.js'
import type { Readiness } from '../ops-listener.js'

/** One place for a worker. A process that ends is replaced in the same slot. */
export interface Slot {
  readonly number: number
  worker: Worker | null
  startedAtMs: number
  /** Ends in a row without 30 s of life between them. */
  failures: number
  /** Why the previous process ended; null once its successor is ready. */
  lastError: string | null
  /** Why the present process fails or is about to be killed. */
  failure: string | null
  /** True when the watchdog killed the present process. */
  isSilent: boolean
  state: Readiness | null
  reportedAtMs: number
  /** Pings since the last message from the worker. */
  unanswered: number
  retry: NodeJS.Timeout | null
  /** The last metrics it sent; kept so that sums never fall when a worker is slow. */
  counted: Collected[]
  answer: (() => void) | null
}

/** A state older than this means that the worker's event loop is blocked. */
const SILENT_MS = 5000

/** An empty slot; numbers start at 1. */
export function newSlot(number: number): Slot {
  return {
    number,
    worker: null,
    startedAtMs: 0,
    failures: 0,
    lastError: null,
    failure: null,
    isSilent: false,
    state: null,
    reportedAtMs: 0,
    unanswered: 0,
    retry: null,
    counted: [],
    answer: null,
  }
}

/** Why the slot's worker cannot take requests; null when it can. */
export function troubleOf(slot: Slot): string | null {
  const why = slot.lastError === null ? '' : ` after: ${slot.lastError}`
  if (slot.worker === null) return `restarting${why}`
  if (slot.state === null) return `starting${why}`
  if (Date.now() - slot.reportedAtMs > SILENT_MS) return 'silent'
  return slot.state.ready ? null : failing(slot) || 'not ready'
}

/** The checks of a worker that are not `ok`, as one line; empty when all are. */
export function failing({ state }: Slot): string {
  const checks = Object.entries(state?.checks ?? {}).filter(([, check]) => check !== 'ok')
  return checks.map(([name, check]) => `${name}: ${check}`).join('; ')
}
