/**
 * Ledger entries that have been sent to the ledger and are not confirmed yet. An entry that the ledger does not confirm
 * within 500 ms is given up, so that its client waits no longer.
 */
import type { SpooledEntry } from './spool-line.js'

/** The longest time that a client waits for its entry, in ms. */
const SETTLE_MS = 500
const SWEEP_MS = 100

/** One entry on its way to the ledger. */
interface PendingSettlement {
  readonly entry: SpooledEntry
  readonly sinceMs: number
  readonly resolve: () => void
  /** Its position in the list; `NOT_LISTED` after its end. */
  listIndex: number
}

const NOT_LISTED = -1

/** Holds a timer until `close`. */
export class PendingSettlements {
  /** Unordered, and without settled entries: the garbage collector pays for every entry that stays longer. */
  private readonly pending: PendingSettlement[] = []
  private readonly timer: NodeJS.Timeout
  private readonly onGivenUp: (entry: SpooledEntry) => void

  /** `onGivenUp` is called for an entry that the ledger refused or did not confirm in time. */
  constructor(onGivenUp: (entry: SpooledEntry) => void) {
    this.onGivenUp = onGivenUp
    this.timer = setInterval(() => this.giveUpOld(), SWEEP_MS).unref()
  }

  /** Resolves when `settle` has resolved, or the entry is given up. Time counts from `sinceMs` (monotonic). */
  add(entry: SpooledEntry, sinceMs: number, settle: () => Promise<unknown>): Promise<void> {
    return new Promise((resolve) => {
      const settlement = { entry, sinceMs, resolve, listIndex: this.pending.length }
      this.pending.push(settlement)
      settle().then(
        () => {
          if (this.remove(settlement)) resolve()
        },
        () => this.giveUp(settlement),
      )
    })
  }

  /** Waits for all entries to be settled or given up, and stops the timer. */
  async close(): Promise<void> {
    while (this.pending.length > 0) {
      await new Promise((resolve) => setTimeout(resolve, SWEEP_MS / 4))
    }
    clearInterval(this.timer)
  }

  private giveUp(settlement: PendingSettlement): void {
    if (!this.remove(settlement)) return
    this.onGivenUp(settlement.entry)
    settlement.resolve()
  }

  private remove(settlement: PendingSettlement): boolean {
    const { listIndex } = settlement
    if (listIndex === NOT_LISTED) return false
    const last = this.pending.pop()
    if (last !== undefined && last !== settlement) {
      this.pending[listIndex] = last
      last.listIndex = listIndex
    }
    settlement.listIndex = NOT_LISTED
    return true
  }

  private giveUpOld(): void {
    const oldestMs = performance.now() - SETTLE_MS
    // From the end: an entry that moves into a free position has been checked already.
    for (let at = this.pending.length - 1; at >= 0; at -= 1) {
      const settlement = this.pending[at]
      if (settlement !== undefined && settlement.sinceMs <= oldestMs) this.giveUp(settlement)
    }
  }
}
