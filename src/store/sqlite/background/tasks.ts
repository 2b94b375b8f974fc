/**
 * The tasks of the background thread: the roll-up of new entries, queries for usage, copies and checkpoints.
 * Each runs in transactions of its own.
 */
import type {
  AccountUse,
  AccountUseQuery,
  CellQuery,
  EntryQuery,
  GroupUse,
  GroupUseQuery,
  KeyUseQuery,
  SumQuery,
} from '../../usage-queries.js'
import type { AccountReads } from '../../account-changes.js'
import type { AuditSearch } from '../../audit-trail.js'
import type { AccountQuery, KeyQuery } from '../../account-and-key-lists.js'
import { NEWEST_FIRST } from '../../entry-order.js'
import type { Connection } from '../driver.js'
import { DirectoryTables } from '../keys/account-and-key-lists.js'
import { auditPage } from '../keys/audit-rows.js'
import { accountTexts, writeLarge, type LargeChange } from '../keys/large-change.js'
import { moveFormer } from '../ledger/former-entries.js'
import { accountUseOf, prunedUseOf, putAccountUse } from '../ledger/account-use.js'
import { cellsOf, GroupUses, lastUseOf, sumsOf } from '../ledger/read-sums.js'
import { pruneUsage, putSums, RollUp, type Pruned, type SumsToPut } from '../ledger/roll-up.js'
import { budgetsOf, exported, isByOwner, type ExportPlace } from '../ledger/read-entries.js'
import { sortedPageOf } from '../ledger/sorted-entries.js'
import { correctEntry, type Correction } from '../ledger/correct-entry.js'
import { numberedEntries, unarchivedEntries, unconfirmedEntries } from '../ledger/waiting-entries.js'
import type { WriteAheadLog } from './write-ahead-log.js'

/** The tasks by name. Arguments and results are copied between the threads. */
export type Tasks = ReturnType<typeof tasksOf>

/** The tasks over a connection. Each throws the error of SQLite. */
export function tasksOf(db: Connection, log: WriteAheadLog) {
  let made: { readonly rollUp: RollUp; readonly groupUses: GroupUses } | null = null
  // Not at the start: a backup also copies a store of an earlier version, which lacks tables of these
  // statements.
  const usage = () =>
    (made ??= { rollUp: new RollUp(db, () => log.betweenWrites()), groupUses: new GroupUses(db) })
  const tables = new DirectoryTables(db)
  const caughtUp = () => {
    usage().rollUp.catchUp()
    return usage()
  }
  return {
    /** Copies one snapshot to a file and does not block writers. */
    copyTo: (file: string) => void db.prepare('VACUUM INTO ?').run(file),
    rollUp: (daysBeforeMs: number) => caughtUp().rollUp.addToDays(daysBeforeMs),
    putSums: (sums: SumsToPut) => putSums(usage().rollUp, sums),
    prune: (what: Pruned, beforeMs: number, nowMs: number) =>
      pruneUsage(usage().rollUp, what, beforeMs, nowMs),
    moveFormer: (afterSeq: number, nowMs: number) => {
      const { rollUp } = usage()
      return moveFormer({ db, write: (job) => rollUp.write(job) }, afterSeq, nowMs)
    },
    numbered: (from: number, to: number) => numberedEntries(db, from, to),
    unarchived: () => unarchivedEntries(db),
    unconfirmed: (beforeMs: number) => unconfirmedEntries(db, beforeMs),
    correct: (correction: Correction, nowMs: number) => correctEntry(usage().rollUp, correction, nowMs),
    entries: (query: EntryQuery) => {
      const { order = NEWEST_FIRST } = query
      const { column } = order
      const needsIndex = isByOwner(query) || column === 'key' || column === 'account'
      if (needsIndex) catchUpIfPossible(usage().rollUp)
      return sortedPageOf(db, query, order)
    },
    sums: (query: SumQuery) => {
      caughtUp()
      return sumsOf(db, query)
    },
    cells: (query: CellQuery) => {
      // The index of an account's entries lacks those that are not added up yet.
      if (query.accountId !== null) caughtUp()
      return cellsOf(db, query)
    },
    accountUse: (query: AccountUseQuery) =>
      JSON.stringify(accountUseOf(db, query, caughtUp().groupUses).map(writtenUse)),
    prunedUse: () => prunedUseOf(db),
    putAccountUse: (uses: readonly AccountUse[]) => putAccountUse(usage().rollUp, uses),
    keyUse: (query: KeyUseQuery) => caughtUp().groupUses.ofKeys(query),
    // As one text: objects take several times as long to copy.
    groupUse: (query: GroupUseQuery) => JSON.stringify(caughtUp().groupUses.of(query).map(writtenUse)),
    lastUse: (accountId: string, keyIds: readonly string[] | null) => {
      caughtUp()
      return lastUseOf(db, accountId, keyIds)
    },
    listKeys: (query: KeyQuery) => tables.keys(query, caughtUp().groupUses),
    // As one text: objects take several times as long to copy.
    keyNames: (accountId: string | null) => JSON.stringify(tables.keyNames(accountId)),
    listAccounts: (query: AccountQuery) => tables.accounts(query, caughtUp().groupUses),
    auditPage: (query: AuditSearch) => auditPage(db, query),
    readAccount: (accountId: string, reads: AccountReads) => accountTexts(db, accountId, reads),
    changeAccount: (change: LargeChange) => writeLarge(db, change),
    exported: (after: ExportPlace) => exported(db, after),
    budgets: (after: readonly [accountId: string, subject: string]) => budgetsOf(db, after),
  }
}

function writtenUse(use: GroupUse | AccountUse): object {
  const { costNanoUsd } = use
  return typeof costNanoUsd === 'number' ? use : { ...use, costNanoUsd: String(costNanoUsd) }
}

/**
 * Adds new entries to the index. On a full disk that fails, and the page lacks the entries that are not added
 * yet.
 */
function catchUpIfPossible(rollUp: RollUp): void {
  try {
    rollUp.catchUp()
  } catch {
    // The next query tries again.
  }
}
