/**
 * Ledger entries that have been sent to the ledger and are not confirmed yet. An entry that the ledger does
 * not confirm within 500 ms is abandoned, so that its client does not wait longer.
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
  /** Its position in the list; `NOT_LISTED` once it is removed. */
  listIndex: number
}

const NOT_LISTED = -1

/** Holds a timer until `close`. */
export class PendingSettlements {
  /**
   * Unordered. Settled entries are removed at once, because keeping them would cost garbage collection time.
   */
  private readonly pending: PendingSettlement[] = []
  private readonly timer: NodeJS.Timeout
  private readonly onAbandoned: (entry: SpooledEntry) => void

  /** `onAbandoned` is called for an entry that the ledger refused or did not confirm in time. */
  constructor(onAbandoned: (entry: SpooledEntry) => void) {
    this.onAbandoned = onAbandoned
    this.timer = setInterval(() => this.abandonOld(), SWEEP_MS).unref()
  }

  /**
   * Resolves when `settle` has resolved, or the entry is abandoned. The time limit counts from `sinceMs`
   * (monotonic).
   */
  add(entry: SpooledEntry, sinceMs: number, settle: () => Promise<unknown>): Promise<void> {
    return new Promise((resolve) => {
      const settlement = { entry, sinceMs, resolve, listIndex: this.pending.length }
      this.pending.push(settlement)
      settle().then(
        () => {
          if (this.remove(settlement)) resolve()
        },
        () => this.abandon(settlement),
      )
    })
  }

  /** Waits until all entries are settled or abandoned, and stops the timer. */
  async close(): Promise<void> {
    while (this.pending.length > 0) {
      await new Promise((resolve) => setTimeout(resolve, SWEEP_MS / 4))
    }
    clearInterval(this.timer)
  }

  private abandon(settlement: PendingSettlement): void {
    if (!this.remove(settlement)) return
    this.onAbandoned(settlement.entry)
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

  private abandonOld(): void {
    const oldestMs = performance.now() - SETTLE_MS
    // From the end: an entry that moves into a free position has been checked already.
    for (let index = this.pending.length - 1; index >= 0; index -= 1) {
      const settlement = this.pending[index]
      if (settlement !== undefined && settlement.sinceMs <= oldestMs) this.abandon(settlement)
    }
  }
}
