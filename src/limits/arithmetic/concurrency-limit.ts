/** The limit of requests that run at the same time. */
import type { LimitLevel } from './limit-level.js'

/** `retryAfterMs` if a running request must end first, at an unknown time. */
export const RUNNING_RETRY_MS = 1_000

/** The level of a concurrency limit with `taken` slots in use. */
export function slotState(taken: number, limit: number): LimitLevel {
  const retryAfterMs = taken < limit ? 0 : limit > 0 ? RUNNING_RETRY_MS : -1
  return { limit, remaining: Math.max(0, limit - taken), resetMs: 0, retryAfterMs }
}
