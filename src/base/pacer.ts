/** Slices of long loops that await: the lines of files, results and uploads. */
import { bodyTurns } from './turn-queue.js'

/** Long work on bodies passes the turn to other work after each slice of this time. */
const SLICE_MS = 4

/** Passes the turn to other work after each slice of time. */
export class Pacer {
  private untilMs = performance.now() + SLICE_MS

  async pace(): Promise<void> {
    if (performance.now() < this.untilMs) return
    await bodyTurns.next()
    this.untilMs = performance.now() + SLICE_MS
  }
}
