/** Combines many reports of a change into one call shortly after the last of them. */

/** Quiet time after a change before the files are read: editors write in several steps. */
const DEBOUNCE_MS = 200
/** Maximum delay of the call while reports continue. */
const MAX_DEBOUNCE_MS = 600
/** Calls `act` when no report has arrived for a moment. The timer does not keep the process running. */
export class Debounce {
  private readonly act: () => void
  private timer: NodeJS.Timeout | null = null
  private firstAtMs = 0
  private closed = false

  constructor(act: () => void) {
    this.act = act
  }

  /** Reports that something may have changed. */
  touch(): void {
    if (this.closed) return
    const nowMs = Date.now()
    if (this.timer === null) this.firstAtMs = nowMs
    else clearTimeout(this.timer)
    const leftMs = this.firstAtMs + MAX_DEBOUNCE_MS - nowMs
    const due = (): void => {
      this.timer = null
      this.act()
    }
    this.timer = setTimeout(due, Math.max(0, Math.min(DEBOUNCE_MS, leftMs)))
    this.timer.unref()
  }

  close(): void {
    this.closed = true
    if (this.timer !== null) clearTimeout(this.timer)
  }
}
