/**
 * How many answers are read on after their clients have left: a count with a cap, one per process.
 * Knows no stream.
 */

/** Places for answers that nobody waits for. */
export class DrainSlots {
  private taken = 0

  /** Takes a place; false where `most` are taken. */
  enter(most: number): boolean {
    if (this.taken >= most) return false
    this.taken += 1
    return true
  }

  /** Gives one back. */
  leave(): void {
    this.taken -= 1
  }
}
