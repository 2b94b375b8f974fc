/**
 * A slot for one worker: its current process, and how the previous ones ended. A process that exits is
 * replaced in the same slot.
 */
import type { WorkerProcess } from './worker-process.js'

/** A slot; `primary.ts` changes it. */
export interface Slot {
  readonly number: number
  process: WorkerProcess | null
  /** Consecutive exits with less than 30 s between them. */
  failures: number
  /** Why the previous process ended; null once its successor is ready. */
  lastError: string | null
  retry: NodeJS.Timeout | null
}

/** An empty slot; numbers start at 1. */
export function newSlot(number: number): Slot {
  return { number, process: null, failures: 0, lastError: null, retry: null }
}

/** Why the slot's worker cannot accept requests; null if it can. */
export function unreadyReason({ process, lastError }: Slot): string | null {
  const why = lastError === null ? '' : ` after: ${lastError}`
  if (process === null) return `restarting${why}`
  return process.state === null ? `starting${why}` : process.trouble
}
