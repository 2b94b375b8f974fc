/**
 * Which subjects are asked for all the time, so that only their limits are looked at more closely: of ten thousand
 * that are asked for now and then, one look-up each is all. Pure; who calls says what time it is.
 */

/** Requests of a second that make a limit worth a slice. */
export const HOT = 8
/** How long requests are counted together. */
export const WINDOW_MS = 1_000
/** Subjects that are counted; 10,000 are about 1 MB. */
const MOST_COUNTED = 10_000

/** What was asked for of a subject in a window, and in the one before. */
interface Counted {
  window: number
  count: number
  before: number
}

/** The heat of one process's subjects. */
export class Heat {
  private beganMs = Number.NEGATIVE_INFINITY
  private window = 0
  private subjects = new Map<string, Counted>()

  /** One more request; whether it is one of many. */
  add(subject: string, nowMs: number): boolean {
    this.roll(nowMs)
    let counted = this.subjects.get(subject)
    if (counted === undefined) {
      if (this.subjects.size >= MOST_COUNTED) return false
      counted = { window: this.window, count: 0, before: 0 }
      this.subjects.set(subject, counted)
    } else if (counted.window !== this.window) {
      counted.before = counted.window === this.window - 1 ? counted.count : 0
      counted.window = this.window
      counted.count = 0
    }
    counted.count += 1
    return this.isMany(counted)
  }

  isHot(subject: string, nowMs: number): boolean {
    this.roll(nowMs)
    const counted = this.subjects.get(subject)
    return counted !== undefined && this.isMany(counted)
  }

  private isMany({ window, count, before }: Counted): boolean {
    if (window === this.window) return count >= HOT || before >= HOT
    return window === this.window - 1 && count >= HOT
  }

  private roll(nowMs: number): void {
    const sinceMs = nowMs - this.beganMs
    if (sinceMs < WINDOW_MS) return
    this.window += sinceMs < 2 * WINDOW_MS ? 1 : 2
    this.beganMs = nowMs
    if (this.subjects.size < MOST_COUNTED) return
    // Room for others: what is hot is counted on.
    const hot = Array.from(this.subjects).filter(([, counted]) => this.isMany(counted))
    this.subjects = new Map(hot)
  }
}
