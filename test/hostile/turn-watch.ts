/**
 * Measures the longest turn of the event loop in processor time of this thread, without other work on the
 * machine and other threads of this process.
 */

/** Watches from its creation to `end`. */
export class TurnWatch {
  private slowestMs = 0
  private isOver = false
  private cpu = process.cpuUsage()
  private beganMs = performance.now()

  constructor() {
    this.next()
  }

  /** The longest turn in ms. */
  end(): number {
    this.isOver = true
    return this.slowestMs
  }

  private next(): void {
    setImmediate(() => {
      const { user, system } = process.cpuUsage(this.cpu)
      const ms = Math.min(performance.now() - this.beganMs, (user + system) / 1000)
      this.slowestMs = Math.max(this.slowestMs, ms)
      this.cpu = process.cpuUsage()
      this.beganMs = performance.now()
      if (!this.isOver) this.next()
    })
  }
}
