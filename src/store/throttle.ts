/**
 * Limits how often something may be tried, over every process of the store: GCRA, a bucket that refills
 * evenly.
 */

/** The rate of allowed attempts. */
export interface ThrottleRate {
  /** Attempts at once. */
  readonly burst: number
  /** Time until one more attempt is allowed. */
  readonly everyMs: number
}

/** A counter and its rate. */
export interface ThrottledSubject extends ThrottleRate {
  /** Without spaces, at most 400 characters; a digest of what is counted. */
  readonly name: string
}

/** The counters. Methods fail as those of `Store` do; counts need not survive a crash of the machine. */
export interface ThrottleStore {
  /**
   * Counts one attempt of each subject if all allow it, in one atomic step; else of none. Returns for each,
   * in order, 0 or the ms until it allows an attempt.
   */
  take(subjects: readonly ThrottledSubject[], nowMs: number): Promise<number[]>
  /** Resets the counter of a subject. */
  forget(name: string): Promise<void>
  /** Removes counters whose bucket is full; returns their number. Redis does so by itself and returns 0. */
  sweep(nowMs: number): Promise<number>
}

/** Time until a bucket that is full at `fullAtMs` (0: unused) allows an attempt. */
export function throttleWaitMs({ burst, everyMs }: ThrottleRate, fullAtMs: number, nowMs: number): number {
  return Math.max(0, fullAtMs + everyMs - nowMs - burst * everyMs)
}

/** When the bucket is full after one more attempt. */
export function throttleFullAtMs({ everyMs }: ThrottleRate, fullAtMs: number, nowMs: number): number {
  return Math.max(nowMs, fullAtMs) + everyMs
}
