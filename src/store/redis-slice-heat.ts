/**
 * Which subjects are asked for all the time, so that only their limits are looked at more closely: of ten thousand
 * that are asked for now and then, one look-up each is all. Pure; who calls says what time it is.
 */

/** Requests of a second that make a limit worth a slice. */
export const HOT = 8
/** How long requests are counted together. */
export const WINDOW_MS = 1_000
/** Subjects that are counted in a window; 10,000 are about 1 MB. */
const MOST_COUNTED = 10_000

/** The heat of one process's subjects. */
export class Heat {
  private windowMs = Number.NEGATIVE_INFINITY
  private counts = new Map<string, number>()
  private countsBefore = new Map<string, number>()

  /** One more request; whether it is one of many. */
  add(subject: string, nowMs: number): boolean {
    this.roll(nowMs)
    const count = (this.counts.get(subject) ?? 0) + 1
    if (count > 1 || this.counts.size < MOST_COUNTED) this.counts.set(subject, count)
    return count >= HOT || this.wasHot(subject)
  }

  isHot(subject: string, nowMs: number): boolean {
    this.roll(nowMs)
    return (this.counts.get(subject) ?? 0) >= HOT || this.wasHot(subject)
  }

  private wasHot(subject: string): boolean {
    return (this.countsBefore.get(subject) ?? 0) >= HOT
  }

  private roll(nowMs: number): void {
    const sinceMs = nowMs - this.windowMs
    if (sinceMs < WINDOW_MS) return
    this.countsBefore = sinceMs < 2 * WINDOW_MS ? this.counts : new Map<string, number>()
    this.counts = new Map()
    this.windowMs = nowMs
  }
}
