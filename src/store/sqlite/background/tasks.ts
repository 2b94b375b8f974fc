/**
 * The tasks of the background thread: the roll-up of new entries, queries for usage, and checkpoints. Each runs in
 * transactions of its own.
 */
import type { EntryQuery, KeyUseQuery, SumQuery } from '../../ledger.js'
import type { Connection } from '../driver.js'
import { KeyUses, lastUseOf } from '../ledger/key-use.js'
import { pruneUsage, type Pruned } from '../ledger/prune-usage.js'
import { putSums, type SumsToPut } from '../ledger/put-sums.js'
import { budgetsOf, exported, isByOwner, pageOf, type ExportPlace } from '../ledger/read-entries.js'
import { sumsOf } from '../ledger/read-sums.js'
import { RollUp } from '../ledger/roll-up.js'
import { checkpoint } from './checkpoint.js'

/** The tasks by name. Arguments and results are copied between the threads. */
export type Tasks = ReturnType<typeof tasksOf>

/** The tasks over a connection. Each throws the error of SQLite. */
export function tasksOf(db: Connection) {
  const rollUp = new RollUp(db)
  const keyUses = new KeyUses(db)
  return {
    checkpoint: () => checkpoint(db),
    rollUp: (daysBeforeMs: number) => {
      rollUp.catchUp()
      rollUp.addToDays(daysBeforeMs)
    },
    putSums: (sums: SumsToPut) => putSums(rollUp, sums),
    prune: (what: Pruned, beforeMs: number) => pruneUsage(rollUp, what, beforeMs),
    entries: (query: EntryQuery) => {
      if (isByOwner(query)) catchUpIfPossible(rollUp)
      return pageOf(db, query)
    },
    sums: (query: SumQuery) => {
      rollUp.catchUp()
      return sumsOf(db, query)
    },
    keyUse: (query: KeyUseQuery) => {
      rollUp.catchUp()
      return keyUses.of(query)
    },
    lastUse: (accountId: string, keyIds: readonly string[] | null) => {
      rollUp.catchUp()
      return lastUseOf(db, accountId, keyIds)
    },
    exported: (after: ExportPlace) => exported(db, after),
    budgets: (after: readonly [accountId: string, subject: string]) => budgetsOf(db, after),
    close: () => db.close(),
  }
}

/** Adds new entries to the index. On a full disk that fails, and the page lacks the entries that are not added yet. */
function catchUpIfPossible(rollUp: RollUp): void {
  try {
    rollUp.catchUp()
  } catch {
    // The next query tries again.
  }
}
