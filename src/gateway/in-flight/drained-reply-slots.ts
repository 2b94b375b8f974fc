/**
 * Counts the replies that are read after their clients have left, up to a maximum per process and per key.
 */

/** The maximum numbers of replies without a client. */
export interface DrainedReplyLimits {
  readonly maxStreams: number
  readonly maxStreamsPerKey: number
}

/** Slots for replies without a client. */
export class DrainedReplySlots {
  private taken = 0
  private readonly byKey = new Map<string, number>()

  /** Takes a slot; false if all slots, or all slots of the key, are taken. */
  enter(key: string, { maxStreams, maxStreamsPerKey }: DrainedReplyLimits): boolean {
    const ofKey = this.byKey.get(key) ?? 0
    if (this.taken >= maxStreams || ofKey >= maxStreamsPerKey) return false
    this.taken += 1
    this.byKey.set(key, ofKey + 1)
    return true
  }

  /** Frees a slot of the key. */
  leave(key: string): void {
    this.taken -= 1
    const ofKey = this.byKey.get(key) ?? 0
    if (ofKey > 1) this.byKey.set(key, ofKey - 1)
    else this.byKey.delete(key)
  }
}
