/** A clock that the test sets. */
import type { Clock } from '../../../src/base/rolling-sums.js'

/** The time changes only with `atMs`; randomness is a fixed number. */
export class TestClock implements Clock {
  atMs = 1_000_000
  randomness = 0
  readonly now = (): number => this.atMs
  readonly random = (): number => this.randomness

  /** Advances the time. */
  pass(ms: number): void {
    this.atMs += ms
  }
}
