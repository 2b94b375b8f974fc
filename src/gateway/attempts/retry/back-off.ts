/** How long to wait before a retry: what the upstream asks for, else an exponential back-off with full jitter. Pure. */

const FIRST_MS = 250
/** A wait that the upstream asked for is exceeded by up to this share, so that not all clients return at once. */
const JITTER = 0.1

/** What a wait depends on. */
export interface BackOff {
  /** 1 for the first retry on a target. */
  readonly retry: number
  /** Null: the upstream did not say. */
  readonly retryAfterMs: number | null
  readonly maxWaitMs: number
  /** From 0 to below 1. */
  readonly random: number
}

/** The wait in ms; null if the upstream asks for more than `maxWaitMs`, so that another target should be tried. */
export function backOffMs({ retry, retryAfterMs, maxWaitMs, random }: BackOff): number | null {
  if (retryAfterMs !== null) {
    if (retryAfterMs > maxWaitMs) return null
    return Math.min(maxWaitMs, retryAfterMs * (1 + JITTER * random))
  }
  const most = Math.min(maxWaitMs, FIRST_MS * 2 ** (retry - 1))
  return most * random
}
