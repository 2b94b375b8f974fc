/** How long a slot stays empty after its worker exited: longer with every consecutive failure. */

/** A worker that ran for this long was healthy: the next back-off starts from the base. */
const HEALTHY_MS = 30_000
const DEFAULT_LIMITS: RespawnLimits = { baseMs: 250, capMs: 30_000 }

/** The delay after the first failure, and the longest one. */
export interface RespawnLimits {
  readonly baseMs: number
  readonly capMs: number
}

/** The consecutive failures of a slot whose worker has just exited after `livedMs`. */
export function failuresAfter(failures: number, livedMs: number): number {
  return livedMs >= HEALTHY_MS ? 1 : failures + 1
}

/**
 * The delay in ms before the worker is started again, after this number of consecutive failures (1 or more).
 * Full jitter on the upper half, so that workers that crashed together do not restart together.
 */
export function respawnDelayMs(failures: number, limits = DEFAULT_LIMITS): number {
  const { baseMs, capMs } = limits
  const ceiling = Math.min(capMs, baseMs * 2 ** Math.min(failures - 1, 20))
  return Math.round(ceiling * (0.5 + Math.random() / 2))
}
