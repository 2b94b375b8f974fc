/**
 * Pages of entries in an order other than that of time. No index has these orders, because each would cost
 * every request: the entries that match are read and SQLite keeps the first ones. They are read from the
 * smallest index, from that of time, which has the values of all orders (a million in an eighth of a second),
 * or in the order of the file (in twice that time). Keys and accounts are read in sequence, in the order of
 * their names. The queries run in the background thread.
 */
import {
  cursorOfPlace,
  NEWEST_FIRST,
  placeOfCursor,
  valueOfOwner,
  type EntryOrder,
  type EntryPlace,
  type OwnColumn,
} from '../../entry-order.js'
import { valuesOf, type EntryPage, type EntryQuery } from '../../usage-queries.js'
import type { LedgerEntry } from '../../../ledger/entry.js'
import { idOf } from './entry-row.js'
import { numberIn, prepared, textIn, textOrNull, type Connection, type Row } from '../driver.js'
import {
  both,
  BY_TIME,
  entriesOf,
  FAILED,
  filterOf,
  isFailure,
  ownerOf,
  ownSource,
  pageOf,
  rangeOf,
  type Condition,
  type Source,
} from './read-entries.js'

/** Entries that are read from an index, each at its own place in the file. */
const FEW = 100_000
/** The same, if the file has more than `MOST`. */
const SOME = 500_000
/** Entries that are read from the index of time alone, or in the order of the file. */
const MOST = 2_000_000
/** Time after which a page of keys or accounts is returned short. */
const WALK_MS = 150

/** The value of each column, null for unknown; as `valueOfEntry`. */
const VALUES: Readonly<Record<OwnColumn, string>> = {
  status: 'status',
  model: "iif(model = 'other', coalesce(model_asked, model), model)",
  upstream: 'upstream',
  tokens: `iif(input_tokens IS NULL AND output_tokens IS NULL, NULL,
    coalesce(input_tokens, 0) + coalesce(output_tokens, 0))`,
  costNanoUsd: 'cost_nano_usd',
  firstTokenMs: 'first_content_ms',
  durationMs: 'duration_ms',
}

const FEW_VALUES: readonly OwnColumn[] = ['status', 'model', 'upstream']
const NEWEST = 'ORDER BY entry.at_ms DESC, entry.id DESC LIMIT 20000'

export function sortedPageOf(db: Connection, query: EntryQuery, order: EntryOrder): EntryPage {
  const { column, isDescending } = order
  if (column === 'atMs') return pageOf(db, query)
  const place = query.after === null ? null : placeOfCursor(query.after)
  if (query.after !== null && place === null) return { entries: [], next: null }
  if (column === 'account' || column === 'key') {
    return pageByOwner(db, query, { column, isDescending, place })
  }
  const source = smallestSource(db, query)
  if (source === null) return { entries: [], next: null, mostSorted: SOME }
  const value = VALUES[column]
  const conditions = both([
    source.condition,
    ...rangeOf(query, source.at),
    ...filterOf(query),
    ...(place === null ? [] : [isAfter(value, place, isDescending)]),
  ])
  const first = (from: Condition, rows: string): readonly Row[] =>
    prepared(
      db,
      `SELECT seq, at_ms, request_id, value FROM (
         SELECT entry.seq AS seq, ${source.at} AS at_ms, entry.id AS id, entry.request_id AS request_id,
         ${value} AS value FROM ${source.from} WHERE ${from.sql} ${rows})
       ORDER BY value ${isDescending ? 'DESC' : 'ASC'} NULLS LAST, at_ms DESC, id DESC LIMIT ?`,
    ).all(...from.values, query.limit + 1)
  // Thousands of entries have the same value: most are excluded by the last of the page among the newest.
  const newest = source === BY_TIME && FEW_VALUES.includes(column) ? first(conditions, NEWEST) : []
  const least = newest.length > query.limit ? placeIn(newest.at(-1) ?? {}) : null
  const rows =
    least === null || least.value === null
      ? first(conditions, '')
      : first(both([conditions, isBefore(value, least, isDescending)]), '')
  const isLast = rows.length <= query.limit
  const page = isLast ? rows : rows.slice(0, -1)
  const last = isLast ? undefined : page.at(-1)
  return {
    entries: entriesOf(db, page),
    next: last === undefined ? null : cursorOfPlace(placeIn(last)),
  }
}

function placeIn(row: Row): EntryPlace {
  const value = row['value'] ?? null
  return {
    value: typeof value === 'string' || value === null ? value : numberIn(row, 'value'),
    atMs: numberIn(row, 'at_ms'),
    requestId: textIn(row, 'request_id'),
  }
}

function isAfter(
  value: string,
  { value: last, atMs, requestId }: EntryPlace,
  isDescending: boolean,
): Condition {
  const isOlder = '(entry.at_ms, entry.id) < (?, ?)'
  const id = idOf(requestId, atMs)
  if (last === null) return { sql: `${value} IS NULL AND ${isOlder}`, values: [atMs, id] }
  const sql = `${value} ${isDescending ? '<' : '>'} ? OR ${value} IS NULL OR (${value} = ? AND ${isOlder})`
  return { sql, values: [last, last, atMs, id] }
}

/** The places up to a place whose value is known, itself included. */
function isBefore(
  value: string,
  { value: last, atMs, requestId }: EntryPlace,
  isDescending: boolean,
): Condition {
  const sql = `${value} ${isDescending ? '>' : '<'} ? OR (${value} = ?
    AND (entry.at_ms, entry.id) >= (?, ?))`
  return { sql, values: [last, last, atMs, idOf(requestId, atMs)] }
}

/** What is read for a query; null if all are too many. */
function smallestSource(db: Connection, query: EntryQuery): Source | null {
  const owner = ownerOf(query)
  const sources = [
    ...(owner === null ? [] : [ownSource(owner)]),
    ...(isFailure(query) ? [FAILED] : []),
    BY_TIME,
  ]
  for (const source of sources) if (countOf(db, query, source, FEW) <= FEW) return source
  const isInIndex = Object.entries(query).every(
    ([name, value]) => IN_INDEX.has(name) || value === undefined || value === null,
  )
  // Two queries: SQLite reads the whole table for both ends in one.
  const row = prepared(
    db,
    `SELECT (SELECT max(seq) FROM entry_ids) - (SELECT min(seq) FROM entry_ids) AS size`,
  ).get()
  const isSmall = Number(row?.['size'] ?? 0) <= MOST
  if (isInIndex && (isSmall || countOf(db, query, BY_TIME, MOST) <= MOST)) return BY_TIME
  // The sign keeps SQLite from the index.
  if (isSmall) return { ...BY_TIME, at: '+entry.at_ms' }
  return sources.find((source) => countOf(db, query, source, SOME) <= SOME) ?? null
}

/** The members of a query whose columns are in the index of time. */
const IN_INDEX: ReadonlySet<string> = new Set([
  ...['fromMs', 'toMs', 'status', 'model', 'modelAsked', 'upstream'],
  ...['after', 'limit', 'order'],
])

/** The entries of a source in the range of the query; at most one more than `most` are counted. */
function countOf(db: Connection, query: EntryQuery, source: Source, most: number): number {
  const { condition, at } = source
  // The values of entries are not needed to count.
  const from = source.from.replace(/ CROSS JOIN .*/, '').replace('ledger_entries', 'entry_ids')
  const { sql, values } = both([condition, ...rangeOf(query, at)])
  const row = prepared(db, `SELECT count(*) AS n FROM (SELECT 1 FROM ${from} WHERE ${sql} LIMIT ?)`).get(
    ...values,
    most + 1,
  )
  return numberIn(row ?? {}, 'n')
}

interface OwnerOrder {
  readonly column: 'account' | 'key'
  readonly isDescending: boolean
  readonly place: EntryPlace | null
}

interface Owner {
  readonly id: string
  readonly value: string
}

/** The entries of one key or account after another, each newest first. */
function pageByOwner(
  db: Connection,
  query: EntryQuery,
  { column, isDescending, place }: OwnerOrder,
): EntryPage {
  const sign = isDescending ? -1 : 1
  const owners = ownersOf(db, query, column)
  owners.sort((a, b) => (a.value < b.value ? -sign : sign))
  const { condition, at } = ownSource('')
  const inRange = both([condition, ...rangeOf(query, at)])
  const [, ...range] = inRange.values
  const any = prepared(db, `SELECT 1 FROM entry_places AS place WHERE ${inRange.sql} LIMIT 1`)
  const entries: LedgerEntry[] = []
  const began = performance.now()
  for (const { id, value } of owners) {
    const isBegun = place?.value === value
    if (place !== null && !isBegun) {
      const isBefore = value < String(place.value)
      if (isBefore !== isDescending) continue
    }
    if (any.get(id, ...range) === undefined) continue
    const before: EntryPlace = { value, atMs: Number.MAX_SAFE_INTEGER, requestId: '~' }
    const start = isBegun ? place : before
    const left = query.limit - entries.length
    if (left === 0 || performance.now() - began > WALK_MS) {
      return { entries, next: cursorOfPlace(start) }
    }
    const own = column === 'key' ? { keyId: id } : { accountId: id }
    const after = `${start.atMs}_${start.requestId}`
    const page = pageOf(db, { ...query, ...own, order: NEWEST_FIRST, limit: left, after }, id)
    entries.push(...page.entries)
    if (page.next !== null) {
      const [, atMs, requestId = ''] = /^(\d+)_(.*)$/s.exec(page.next) ?? []
      return { entries, next: cursorOfPlace({ value, atMs: Number(atMs), requestId }) }
    }
  }
  return { entries, next: null }
}

/** The keys or accounts that may have entries for the query, with their names. */
function ownersOf(db: Connection, query: EntryQuery, column: 'account' | 'key'): Owner[] {
  const names = new Map<string, { name: string | null; accountId: string }>()
  const all =
    column === 'account'
      ? 'SELECT id, id AS account_id, name FROM accounts'
      : "SELECT id, account_id, record ->> 'name' AS name FROM keys"
  for (const row of prepared(db, all).all()) {
    const accountId = textIn(row, 'account_id')
    names.set(textIn(row, 'id'), { name: textOrNull(row, 'name'), accountId })
  }
  const wanted = column === 'key' ? query.keyId : (query.accountId ?? accountsOfKeys(db, query) ?? undefined)
  const ids = wanted === undefined ? usedOwners(db, column) : valuesOf(wanted)
  return ids.flatMap((id): Owner[] => {
    const known = names.get(id)
    const isMeant =
      known === undefined
        ? isOwner(db, id, column)
        : query.accountId === null || known.accountId === query.accountId
    return isMeant ? [{ id, value: valueOfOwner(known?.name ?? null, id) }] : []
  })
}

/** The accounts of the keys that the query selects; null if it does not, or if one has no record. */
function accountsOfKeys(db: Connection, { keyId }: EntryQuery): string[] | null {
  if (keyId === undefined) return null
  const ids = [...new Set(valuesOf(keyId))]
  const rows = prepared(
    db,
    'SELECT id, account_id FROM keys WHERE id IN (SELECT value FROM json_each(?))',
  ).all(JSON.stringify(ids))
  if (rows.length < ids.length) return null
  return [...new Set(rows.map((row) => textIn(row, 'account_id')))]
}

/** The keys or accounts that have entries, and those without a record: one step in the index for each. */
function usedOwners(db: Connection, column: 'account' | 'key'): string[] {
  return prepared(
    db,
    `WITH RECURSIVE owners (id) AS (
       SELECT min(owner) FROM entry_places
       UNION ALL SELECT (SELECT min(owner) FROM entry_places WHERE owner > id) FROM owners WHERE id IS NOT NULL
     ) SELECT id FROM owners WHERE id IS NOT NULL
       AND id NOT IN (SELECT id FROM ${column === 'key' ? 'accounts' : 'keys'})`,
  )
    .all()
    .map((row) => textIn(row, 'id'))
}

/** Whether an id without a record is that of a key (or account): of a purged one, or of the playground. */
function isOwner(db: Connection, id: string, column: 'account' | 'key'): boolean {
  const row = prepared(
    db,
    `SELECT account_id AS account, key_id AS key FROM ledger_entries WHERE seq =
       (SELECT seq FROM entry_places WHERE owner = ? LIMIT 1)`,
  ).get(id)
  return row?.[column] === id
}
