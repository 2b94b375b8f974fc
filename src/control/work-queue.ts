/**
 * A queue that starts one task per turn of the event loop, so that other requests of the process are served
 * in between. A full queue refuses tasks.
 */

/**
 * Maximum length of the queue: a page sends about twenty requests at once, and ten people may open one
 * together.
 */
const MAX_WAITING = 256

/** A queue of tasks, run in order. */
export class WorkQueue {
  private readonly waiting: (() => void)[] = []

  /** Queues the task. Returns false and drops it if the queue is full. */
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
