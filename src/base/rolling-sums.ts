/**
 * Sums over the last seconds or minutes, in slices of a tenth of the window. Pure: the time is an argument.
 */

const SLICES = 10

/** Several sums over one window; each is identified by its index, from 0. */
export class RollingSums {
  private readonly sliceMs: number
  private readonly fields: number
  private readonly slices: Float64Array
  /** The number of the newest slice, counted from time 0. */
  private newest = 0

  constructor(windowMs: number, fields: number) {
    this.sliceMs = windowMs / SLICES
    this.fields = fields
    this.slices = new Float64Array(SLICES * fields)
  }

  /** Adds to one of the sums. */
  add(field: number, amount: number, nowMs: number): void {
    this.advance(nowMs)
    const index = (this.newest % SLICES) * this.fields + field
    this.slices[index] = (this.slices[index] ?? 0) + amount
  }

  /** One of the sums over the window that ends now. */
  sum(field: number, nowMs: number): number {
    this.advance(nowMs)
    let total = 0
    for (let index = field; index < this.slices.length; index += this.fields) total += this.slices[index] ?? 0
    return total
  }

  /** Resets all sums to 0. */
  clear(): void {
    this.slices.fill(0)
  }

  private advance(nowMs: number): void {
    const slice = Math.floor(nowMs / this.sliceMs)
    if (slice <= this.newest) return
    const passed = Math.min(SLICES, slice - this.newest)
    for (let index = slice - passed + 1; index <= slice; index++) {
      const start = (index % SLICES) * this.fields
      this.slices.fill(0, start, start + this.fields)
    }
    this.newest = slice
  }
}

/** `now` is monotonic, in ms; `random` is from 0 to below 1. */
export interface Clock {
  readonly now: () => number
  readonly random: () => number
}

/** The clock and the random numbers of the process. */
export const SYSTEM_CLOCK: Clock = { now: () => performance.now(), random: () => Math.random() }
