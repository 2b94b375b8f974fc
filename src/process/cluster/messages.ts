/** Messages between the primary and its workers. The caller defines the payload. */
import type { Collected } from '../../observe/metrics/metric-types.js'
import type { Readiness } from '../ops/readiness.js'

/**
 * Messages of the primary; `ping` is answered by `pong`. With `isReplaced` other workers listen on the same
 * address, so the draining one accepts no more connections. An `order` is sent to all workers, and to later
 * ones.
 */
export type ToWorker =
  | { type: 'ping' }
  | { type: 'config'; payload: unknown }
  | { type: 'collect' }
  | { type: 'recent'; id: number }
  | { type: 'drain'; isReplaced: boolean }
  | { type: 'reply'; id: number; answer: unknown }
  | { type: 'try'; id: number; payload: unknown }
  | { type: 'order'; order: unknown }
  | { type: 'reopenLog' }

/**
 * Messages of a worker; `hello` first, `state` whenever its readiness changes; `ask` is answered by `reply`,
 * `try` by `tried`.
 */
export type ToPrimary =
  | { type: 'hello' }
  | { type: 'pong' }
  | { type: 'state'; state: Readiness }
  | { type: 'failed'; message: string }
  | { type: 'metrics'; metrics: Collected[] }
  | { type: 'ask'; id: number; question: unknown }
  | { type: 'tried'; id: number; fault: string | null }
  | { type: 'recent'; id: number; requests: unknown[] }

const TO_WORKER = new Set<unknown>([
  'ping',
  'config',
  'collect',
  'recent',
  'drain',
  'reply',
  'try',
  'order',
  'reopenLog',
] satisfies ToWorker['type'][])

/** Whether it is one of these messages; Node and libraries use the same channel. */
export function isToWorker(value: unknown): value is ToWorker {
  return TO_WORKER.has(typeOf(value))
}

/** Whether it is one of these messages, with the fields of its type. */
export function isToPrimary(value: unknown): value is ToPrimary {
  if (typeof value !== 'object' || value === null) return false
  switch (typeOf(value)) {
    case 'hello':
    case 'pong':
      return true
    case 'failed':
      return 'message' in value && typeof value.message === 'string'
    case 'metrics':
      return 'metrics' in value && isCollected(value.metrics)
    case 'recent':
      return 'requests' in value && Array.isArray(value.requests) && 'id' in value
    case 'ask':
      return 'id' in value && typeof value.id === 'number' && 'question' in value
    case 'tried':
      return 'id' in value && typeof value.id === 'number' && 'fault' in value
    case 'state':
      return 'state' in value && isReadiness(value.state)
    default:
      return false
  }
}

function typeOf(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'type' in value ? value.type : undefined
}

function isReadiness(value: unknown): value is Readiness {
  if (typeof value !== 'object' || value === null) return false
  return 'ready' in value && 'degraded' in value && Array.isArray(value.degraded) && 'checks' in value
}

function isCollected(value: unknown): value is Collected[] {
  return (
    Array.isArray(value) &&
    value.every((metric: unknown) => typeof metric === 'object' && metric !== null && 'values' in metric)
  )
}
