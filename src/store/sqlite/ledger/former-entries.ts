/**
 * The entries of a store of an earlier version, which are in `former_entries`, each with all of its values.
 * They are moved to `entry_rows` a batch at a time while requests are served; each entry is in one of the
 * two tables at any moment, and the view `ledger_entries` has both until the former table is empty.
 */
import { readFileSync } from 'node:fs'
import { programFile } from '../../../config/package-file.js'
import type { LedgerEntry } from '../../../ledger/entry.js'
import { numberIn, prepared, type Connection, type Row } from '../driver.js'
import { entryIn, EntryWriter } from './entry-row.js'

/** Entries moved in one transaction, which holds the write lock for about 15 ms. */
const BATCH = 200
/** The views of a store with former entries. */
const VIEWS = ['ledger_entries', 'moved_entries', 'unmoved_entries', 'entry_ids']

/** Creates the views of a store without former entries. Only inside a transaction. */
export function createEntryViews(db: Connection): void {
  db.exec(readFileSync(programFile('store/sqlite/entry-views.sql'), 'utf8'))
}

/** The tables that have rows of entries by `seq`. */
export function entryTables(db: Connection): readonly ('entry_rows' | 'former_entries')[] {
  const isThere = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'former_entries'"
  const former = prepared(db, isThere).get()
  return former === undefined ? ['entry_rows'] : ['entry_rows', 'former_entries']
}

/** A connection, and what runs a function in a transaction of it. */
interface FormerStore {
  readonly db: Connection
  readonly write: (job: () => number | null) => number | null
}

/** The views that have the entries of `ledger_entries`: that one, or one for each table. */
export function entryViews(
  db: Connection,
): readonly ('ledger_entries' | 'moved_entries' | 'unmoved_entries')[] {
  return entryTables(db).length === 1 ? ['ledger_entries'] : ['moved_entries', 'unmoved_entries']
}

/**
 * Moves the next entries after a place; the place of the last one, or null if there is none left to move. An
 * entry that cannot be read stays.
 */
export function moveFormer({ db, write }: FormerStore, afterSeq: number, nowMs: number): number | null {
  if (!entryTables(db).includes('former_entries')) return null
  return write(() => {
    // Another process may have moved the last ones.
    if (!entryTables(db).includes('former_entries')) return null
    const rows = db
      .prepare('SELECT * FROM former_entries WHERE seq > ? ORDER BY seq LIMIT ?')
      .all(afterSeq, BATCH)
    const writer = new EntryWriter(db, () => nowMs)
    const remove = db.prepare('DELETE FROM former_entries WHERE seq = ?')
    for (const row of rows) {
      const entry = readable(row)
      if (entry === null) continue
      const seq = numberIn(row, 'seq')
      remove.run(seq)
      writer.insert(entry, seq)
    }
    const last = rows.at(-1)
    if (last !== undefined) return numberIn(last, 'seq')
    if (db.prepare('SELECT 1 FROM former_entries LIMIT 1').get() === undefined) {
      for (const view of VIEWS) db.exec(`DROP VIEW ${view}`)
      db.exec('DROP TABLE former_entries')
      createEntryViews(db)
    }
    return null
  })
}

function readable(row: Row): LedgerEntry | null {
  try {
    return entryIn(row)
  } catch {
    return null
  }
}
