/**
 * The wait before a retry: the upstream's `Retry-After`, else exponential back-off with full jitter. Pure.
 */

const FIRST_MS = 250
/** `Retry-After` is exceeded by up to this share, so that not all clients return at the same time. */
const JITTER = 0.1

/** The values that a wait depends on. */
export interface BackOff {
  /** 1 for the first retry on a target. */
  readonly retry: number
  /** Null: the upstream sent no `Retry-After`. */
  readonly retryAfterMs: number | null
  readonly maxWaitMs: number
  /** From 0 to below 1. */
  readonly random: number
}

/** The wait in ms; null if `Retry-After` exceeds `maxWaitMs`, so that the next target should be tried. */
export function backOffMs({ retry, retryAfterMs, maxWaitMs, random }: BackOff): number | null {
  if (retryAfterMs !== null) {
    if (retryAfterMs > maxWaitMs) return null
    return Math.min(maxWaitMs, retryAfterMs * (1 + JITTER * random))
  }
  const longestMs = Math.min(maxWaitMs, FIRST_MS * 2 ** (retry - 1))
  return longestMs * random
}
