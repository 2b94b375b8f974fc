/**
 * Counts the replies that are read after their clients have left, up to a maximum per process.
 */

/** Slots for replies without a client. */
export class DrainedReplySlots {
  private taken = 0

  /** Takes a slot; false if `maxSlots` are taken. */
  enter(maxSlots: number): boolean {
    if (this.taken >= maxSlots) return false
    this.taken += 1
    return true
  }

  /** Frees a slot. */
  leave(): void {
    this.taken -= 1
  }
}
