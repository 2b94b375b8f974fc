/**
 * What the thread of `background.ts` does, by name: the roll-up of new entries, tasks about usage, and checkpoints.
 * Each runs in transactions of its own, on the thread's connection.
 */
import { numberIn, type Connection } from '../driver.js'
import type { KeyUseQuery, EntryQuery, SumQuery, UsageSum } from '../../ledger.js'
import { KeyUses, lastUseOf } from '../ledger/key-use.js'
import { sumsOf } from '../ledger/read-sums.js'
import { RollUp, type Pruned } from '../ledger/roll-up.js'
import type { Bucket } from '../ledger/sum-columns.js'
import { budgetsOf, exported, isByOwner, pageOf, type ExportPlace } from '../ledger/read-entries.js'

/** Frames of the log (4 KiB each) above which writers wait once, so that it starts from its beginning: 64 MiB. */
const LONG_LOG = 16_384

/** The tasks, each with its arguments and its answer. */
export type Tasks = ReturnType<typeof tasksOf>

/** The tasks over a connection. */
export function tasksOf(db: Connection) {
  const rollUp = new RollUp(db)
  const keyUses = new KeyUses(db)
  const counted = () => {
    rollUp.catchUp()
    return db
  }
  return {
    checkpoint: () => checkpoint(db),
    count: (daysBeforeMs: number) => {
      rollUp.catchUp()
      rollUp.addToDays(daysBeforeMs)
    },
    put: (by: Bucket, sums: readonly UsageSum[], lastUse: ReadonlyMap<string, number>) =>
      rollUp.put(by, sums, lastUse),
    prune: (what: Pruned, beforeMs: number) => rollUp.prune(what, beforeMs),
    rows: (query: EntryQuery) => {
      if (isByOwner(query)) catchUpIfPossible(rollUp)
      return pageOf(db, query)
    },
    sums: (query: SumQuery) => sumsOf(counted(), query),
    keyUse: (query: KeyUseQuery) => {
      rollUp.catchUp()
      return keyUses.of(query)
    },
    lastUse: (accountId: string, keyIds: readonly string[] | null) =>
      lastUseOf(counted(), accountId, keyIds),
    exported: (after: ExportPlace) => exported(db, after),
    budgets: (after: readonly [account: string, subject: string]) => budgetsOf(db, after),
    close: () => db.close(),
  }
}

/** On a full disk, pages of entries are answered without those that are not counted yet. */
function catchUpIfPossible(rollUp: RollUp): void {
  try {
    rollUp.catchUp()
  } catch {
    // The next query tries again.
  }
}

/**
 * Copies the log into the file. While requests go on, the log is never copied to its end and would grow: once it is
 * long, the rest is copied while writers wait, which is as long as a sync of a few pages takes.
 */
function checkpoint(db: Connection): void {
  const row = db.prepare('PRAGMA wal_checkpoint(PASSIVE)').get()
  if (row === undefined || numberIn(row, 'log') < LONG_LOG) return
  db.prepare('PRAGMA wal_checkpoint(RESTART)').get()
}
