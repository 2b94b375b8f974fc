/** Entries that wait for the archive: those after the last confirmed one. */
import type { FedEntries, WaitingEntries } from '../../archive-feed.js'
import { numberIn, textIn, type Connection, type Row } from '../driver.js'
import { entryIn, idValues, SELECT_REQUEST } from './entry-row.js'

/** The name in `meta` of the number of the last entry that the archive has. */
export const CONFIRMED = 'archive_confirmed'
/** That number; 0 without an archive. */
export const CONFIRMED_ENTRY = `coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE name = '${CONFIRMED}'), 0)`

/** Names in `meta` of corrected entries that wait: `corrected ID`, with the number of the entry. */
const CORRECTED = 'corrected '
/** Conditions for these names. */
const IS_CORRECTED = `name > '${CORRECTED}' AND name < '${CORRECTED}~'`

/** The entries after a number, up to another, in that order. */
export function numberedEntries(db: Connection, from: number, to: number): FedEntries {
  const rows: readonly Row[] = db
    .prepare('SELECT * FROM ledger_entries WHERE seq > ? AND seq <= ? ORDER BY seq')
    .all(from, to)
  return fed(db, rows)
}

/** See `ArchiveFeed.unconfirmed`. */
export function unconfirmedEntries(db: Connection, beforeMs: number): FedEntries {
  const rows: readonly Row[] = db
    .prepare(`SELECT * FROM ledger_entries WHERE seq > ${CONFIRMED_ENTRY} AND at_ms < ? ORDER BY seq`)
    .all(beforeMs)
  return fed(db, rows)
}

function fed(db: Connection, rows: readonly Row[]): FedEntries {
  const entries = rows.map(entryIn)
  const marks = db.prepare(`SELECT name FROM meta WHERE ${IS_CORRECTED}`).all()
  const marked = new Set(marks.map((row) => textIn(row, 'name').slice(CORRECTED.length)))
  const corrected = entries.flatMap(({ requestId }) => (marked.has(requestId) ? [requestId] : []))
  return { entries, corrected: new Set(corrected) }
}

/** Notes that an entry replaces one that the archive may have, until the archive has confirmed it. */
export function markCorrected(db: Connection, requestId: string): void {
  db.prepare(`DELETE FROM meta WHERE ${IS_CORRECTED} AND CAST(value AS INTEGER) <= ${CONFIRMED_ENTRY}`).run()
  db.prepare(
    `INSERT OR REPLACE INTO meta (name, value) SELECT ?4, seq FROM (${SELECT_REQUEST}) WHERE
       EXISTS (SELECT 1 FROM meta WHERE name = 'archive_progress')`,
  ).run(...idValues(requestId), CORRECTED + requestId)
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
