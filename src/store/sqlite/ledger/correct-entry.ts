/**
 * Replaces the entry of a request that was taken for lost by that of its settlement, in one transaction of
 * the background thread. The new row has a number of its own, so that it waits for the archive and is
 * counted as every later entry is.
 */
import type { LedgerEntry } from '../../../ledger/entry.js'
import { correctionOf } from '../../records/correct-entry.js'
import { numberIn } from '../driver.js'
import { DROP_EMPTY_USE, DROP_USE } from './account-use.js'
import { entryIn, EntryWriter, idValues, SELECT_REQUEST } from './entry-row.js'
import { entryRemover, type RollUp } from './roll-up.js'
import { markCorrected } from './waiting-entries.js'

/** An entry to correct. */
export interface Correction {
  readonly entry: LedgerEntry
  /** The former entry, if it has left the store for the archive. */
  readonly archived: LedgerEntry | null
}

/** The former entry; null if there is none that the new one replaces. */
export function correctEntry(
  rollUp: RollUp,
  { entry, archived }: Correction,
  nowMs: number,
): LedgerEntry | null {
  const { db } = rollUp
  rollUp.catchUp()
  const select = db.prepare(`SELECT * FROM ledger_entries WHERE seq = (${SELECT_REQUEST})`)
  return rollUp.write(() => {
    const writer = new EntryWriter(db, () => nowMs)
    let row = select.get(...idValues(entry.requestId))
    const former = row === undefined ? archived : entryIn(row)
    const next = former === null ? null : correctionOf(former, entry)
    if (former === null || next === null) return null
    const hasLeft = row === undefined
    if (hasLeft) {
      // The sums still have it: it comes back until it is taken off.
      writer.insert(former, null)
      row = select.get(...idValues(entry.requestId))
    }
    if (row === undefined) return null
    const seq = numberIn(row, 'seq')
    if (hasLeft) {
      db.prepare(DROP_USE).run(seq)
      db.prepare(DROP_EMPTY_USE).run()
    }
    rollUp.uncount(seq)
    entryRemover(db)(row)
    writer.insert(next, null)
    markCorrected(db, entry.requestId)
    return former
  })
}
