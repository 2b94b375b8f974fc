/** Time and randomness of the attempts, so that tests can set both. */

/** `now` is monotonic, in ms; `random` is from 0 to below 1. */
export interface Clock {
  readonly now: () => number
  readonly random: () => number
}

/** The clock and the random numbers of the process. */
export const SYSTEM_CLOCK: Clock = { now: () => performance.now(), random: () => Math.random() }
