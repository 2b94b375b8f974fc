/** Entries that wait for the archive: those after the last confirmed one. */
import type { LedgerEntry } from '../../../ledger/entry.js'
import type { WaitingEntries } from '../../archive-feed.js'
import { numberIn, type Connection, type Row } from '../driver.js'
import { entryIn } from './entry-row.js'

/** The name in `meta` of the number of the last entry that the archive has. */
export const CONFIRMED = 'archive_confirmed'
/** That number; 0 without an archive. */
export const CONFIRMED_ENTRY = `coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE name = '${CONFIRMED}'), 0)`

/** The entries after a number, up to another, in that order. */
export function numberedEntries(db: Connection, from: number, to: number): LedgerEntry[] {
  const rows: readonly Row[] = db
    .prepare('SELECT * FROM ledger_entries WHERE seq > ? AND seq <= ? ORDER BY seq')
    .all(from, to)
  return rows.map(entryIn)
}

/** See `ArchiveFeed.waiting`. */
export function unarchivedEntries(db: Connection): WaitingEntries {
  const row = db
    .prepare(
      `SELECT count(*) AS rows, coalesce(min(at_ms), -1) AS oldest FROM ledger_entries WHERE seq > ${CONFIRMED_ENTRY}`,
    )
    .get()
  if (row === undefined) return { rows: 0, oldestAtMs: null, bytes: null }
  const oldest = numberIn(row, 'oldest')
  return { rows: numberIn(row, 'rows'), oldestAtMs: oldest < 0 ? null : oldest, bytes: null }
}
