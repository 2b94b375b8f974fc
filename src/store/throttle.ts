/**
 * How often something was tried, counted over every process of the store: GCRA, a bucket that fills evenly.
 * Whatever the engine. Knows not what is tried; a subject's name is a digest.
 */

/** How often is often enough. */
export interface ThrottleRate {
  /** So many at once, … */
  readonly burst: number
  /** … and one more each so often. */
  readonly everyMs: number
}

/** What is counted, and how often it may be. */
export interface ThrottledSubject extends ThrottleRate {
  /** As in `Store`: without spaces, at most 400 characters. */
  readonly name: string
}

/** Counts. Fails as the store does; what is counted need not survive a crash of the machine. */
export interface ThrottleStore {
  /**
   * Counts one attempt at each subject where all have room, in one atomic step; else at none. For each, in
   * order: 0, or the ms after which it has room.
   */
  take(subjects: readonly ThrottledSubject[], nowMs: number): Promise<number[]>
  /** As if the subject had never been tried. */
  forget(name: string): Promise<void>
  /** Removes what has come to rest; how many. Engines that do so by themselves answer 0. */
  sweep(nowMs: number): Promise<number>
}

/** How long to wait for room in a bucket that is full again at a time (0: it never was tried). */
export function throttleWaitMs(
  { burst, everyMs }: ThrottleRate,
  fullAtMs: number,
  nowMs: number,
): number {
  return Math.max(0, fullAtMs + everyMs - nowMs - burst * everyMs)
}

/** When the bucket is full again after one more attempt. */
export function throttleFullAtMs(
  { everyMs }: ThrottleRate,
  fullAtMs: number,
  nowMs: number,
): number {
  return Math.max(nowMs, fullAtMs) + everyMs
}
