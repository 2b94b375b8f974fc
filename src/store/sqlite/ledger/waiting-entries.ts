/** Entries that wait for the archive: those after the last confirmed one. */
import { arrayOf } from '../../../base/json.js'
import type { LedgerEntry } from '../../../ledger/entry.js'
import type { FedEntries, WaitingEntries } from '../../archive-feed.js'
import { parseJson } from '../../records/parse-record.js'
import { numberIn, prepared, textIn, type Connection } from '../driver.js'
import { ENTRY_VALUES, entryOfValues, idValues, SELECT_REQUEST } from './entry-row.js'
import type { Condition } from './read-entries.js'

/** The name in `meta` of the number of the last entry that the archive has. */
export const CONFIRMED = 'archive_confirmed'
/** That number; 0 without an archive. */
export const CONFIRMED_ENTRY = `coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE name = '${CONFIRMED}'), 0)`

/** Names in `meta` of corrected entries that wait: `corrected ID`, with the number of the entry. */
const CORRECTED = 'corrected '
/** Conditions for these names. */
const IS_CORRECTED = `name > '${CORRECTED}' AND name < '${CORRECTED}~'`

/** Entries as texts: as rows and objects they take several times as long to read and to copy. */
interface WrittenEntries {
  /** JSON arrays, each with the values of an entry. */
  readonly values: readonly string[]
  /** The ids of all entries that wait and replace one that the archive may have. */
  readonly corrected: readonly string[]
}

/** The entries after a number, up to another, as `WrittenEntries` has them. */
export function numberedEntries(db: Connection, from: number, to: number): string[] {
  return written(db, { sql: 'seq > ? AND seq <= ?', values: [from, to] })
}

/** See `ArchiveFeed.unconfirmed`. */
export function unconfirmedEntries(db: Connection, beforeMs: number): WrittenEntries {
  const values = written(db, { sql: `seq > ${CONFIRMED_ENTRY} AND at_ms < ?`, values: [beforeMs] })
  return { values, corrected: correctedIds(db, 0, Number.MAX_SAFE_INTEGER) }
}

/** The ids of entries after a number, up to another, that replace one which the archive may have. */
export function correctedIds(db: Pick<Connection, 'prepare'>, from: number, to: number): string[] {
  const marks = db
    .prepare(
      `SELECT name FROM meta WHERE ${IS_CORRECTED} AND CAST(value AS INTEGER) > ? AND CAST(value AS INTEGER) <= ?`,
    )
    .all(from, to)
  return marks.map((mark) => textIn(mark, 'name').slice(CORRECTED.length))
}

function written(db: Connection, { sql, values }: Condition): string[] {
  const rows = prepared(db, `SELECT ${ENTRY_VALUES} AS entry FROM ledger_entries WHERE ${sql}`).all(...values)
  return rows.map((row) => textIn(row, 'entry'))
}

/** The entries in their texts. Throws an Error that names one that is damaged. */
export function entriesInTexts(values: readonly string[]): LedgerEntry[] {
  return values.map((text) => entryOfValues(arrayOf(parseJson(text))))
}

/** The entries in their text. Throws an Error that names one that is damaged. */
export function fedEntries({ values, corrected }: WrittenEntries): FedEntries {
  const entries = entriesInTexts(values)
  if (corrected.length === 0) return { entries, corrected: new Set() }
  const own = new Set(entries.map(({ requestId }) => requestId))
  return { entries, corrected: new Set(corrected.filter((id) => own.has(id))) }
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
