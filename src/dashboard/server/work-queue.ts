/**
 * Work that gives way: one piece of it in each turn of the event loop, so that whatever else the process
 * serves comes in between, and a refusal where too much waits. Knows no request.
 */

/** Pieces that wait at most: a page asks for twenty things at once, and ten people may come together. */
const MAX_WAITING = 256

/** WorkQueue for work, in order. */
export class WorkQueue {
  private readonly waiting: (() => void)[] = []

  /** Runs the work when its turn has come; false, and it is never run, where too much waits. */
  take(work: () => void): boolean {
    if (this.waiting.length >= MAX_WAITING) return false
    this.waiting.push(work)
    if (this.waiting.length === 1) this.soon()
    return true
  }

  private soon(): void {
    setImmediate(() => {
      const [work] = this.waiting
      try {
        work?.()
      } finally {
        this.waiting.shift()
        if (this.waiting.length > 0) this.soon()
      }
    })
  }
}
