/**
 * The time by which reservations expire. After the clock has jumped forward, it is held back until every
 * process has renewed the reservations of its running requests: a jump proves nothing about a process.
 */

/** Smaller steps are within the time by which renewals are early. */
const JUMP_MS = 1_000
/**
 * How long the time is held back: a process notices the jump within 12 s, and renews every 20 s, the second
 * time after it noticed.
 */
const HELD_MS = 60_000

/** The clock of leases of one store. */
export class LeaseClock {
  private readonly monotonicMs: () => number
  /** The difference between the clock and monotonic time at the last reading. */
  private offsetMs: number | null = null
  private jumpedMs = 0
  private heldUntilMs = Number.NEGATIVE_INFINITY

  constructor(monotonicMs: () => number) {
    this.monotonicMs = monotonicMs
  }

  /** The ms by which the time is held back. */
  get heldBackMs(): number {
    return this.monotonicMs() < this.heldUntilMs ? this.jumpedMs : 0
  }

  /** Takes a reading of the clock; the time by which leases expire. */
  read(nowMs: number): number {
    const monotonicMs = this.monotonicMs()
    const offsetMs = nowMs - monotonicMs
    const stepMs = this.offsetMs === null ? 0 : offsetMs - this.offsetMs
    this.offsetMs = offsetMs
    if (stepMs > JUMP_MS) {
      this.jumpedMs = this.heldBackMs + stepMs
      this.heldUntilMs = monotonicMs + HELD_MS
    }
    return nowMs - this.heldBackMs
  }
}
