/**
 * Queries for pages of entries, their export, and budgets. They run in the background thread, so that a slow
 * query does not block the event loop.
 */
import { outcomesOf } from '../../../errors.js'
import type { LedgerEntry } from '../../../ledger/entry.js'
import type { BudgetSpent } from '../../ledger.js'
import { valuesOf, type EntryPage, type EntryQuery, type OneOf } from '../../usage-queries.js'
import { numberIn, prepared, textIn, type Connection, type Row, type Value } from '../driver.js'
import { markOf, othersIn } from '../limits/window-counters.js'
import { entryIn, idOf } from './entry-row.js'
import { entryViews } from './former-entries.js'

/**
 * Maximum number of entries read for one page: if few of them match, the page is short, and its cursor
 * continues.
 */
const MAX_SCANNED = 5_000
const EXPORT_BATCH = 500
/** Limits of one batch of budgets. */
const BUDGET_BATCH = 500
/** A cursor: the time and the request of the last entry that was read. */
const CURSOR = /^(\d{1,16})_(.{1,400})$/s

/** The entry after which a batch of the export begins. */
export type ExportPlace = readonly [atMs: number, requestId: string]

/** A batch of the export, and the entry after which the next one begins; null if there is none. */
interface ExportBatch {
  readonly rows: readonly LedgerEntry[]
  readonly next: ExportPlace | null
}

/** A batch of budgets, and the limit after which the next one begins; null if there is none. */
interface BudgetBatch {
  readonly spent: readonly BudgetSpent[]
  readonly next: readonly [account: string, subject: string] | null
}

/** A condition of a query and its values. */
export interface Condition {
  readonly sql: string
  readonly values: readonly Value[]
}

/** Whether the query reads `entry_places`, which lacks entries that the roll-up has not added yet. */
export function isByOwner(query: EntryQuery): boolean {
  return ownerOf(query) !== null && (typeof query.keyId === 'string' || !isFailure(query))
}

/** The key or account whose entries a query selects. */
export function ownerOf({ keyId, accountId }: EntryQuery): string | null {
  return typeof keyId === 'string' ? keyId : accountId
}

/**
 * One page of entries in the order of time, newest first unless the order is ascending. `owner`: the page is
 * read from the index of this key or account.
 */
export function pageOf(
  db: Connection,
  query: EntryQuery,
  owner = isByOwner(query) ? ownerOf(query) : null,
): EntryPage {
  const cursor = query.after === null ? null : CURSOR.exec(query.after)
  if (query.after !== null && cursor === null) return { entries: [], next: null }
  const matches = both(filterOf(query))
  const { from, at, condition } = sourceOf(query, owner)
  const [direction, beyond] = query.order?.isDescending === false ? ['ASC', '>'] : ['DESC', '<']
  // Entries of one millisecond are in the order of their ids, as in Redis; the indexes have only the time.
  const isAfter: Condition[] =
    cursor === null
      ? []
      : [
          {
            sql: `${at} ${beyond}= ? AND (${at}, entry.id) ${beyond} (?, ?)`,
            values: [Number(cursor[1]), Number(cursor[1]), idOf(cursor[2] ?? '', Number(cursor[1]))],
          },
        ]
  const range = both([condition, ...rangeOf(query, at), ...isAfter])
  const views = entryViews(db)
  const scanned = (columns: string) =>
    firstOf(
      views.map(
        (view) => `SELECT ${at} AS at_ms, entry.id AS id, entry.request_id AS request_id, ${columns}
          FROM ${from.replace('ledger_entries', view)} WHERE ${range.sql}`,
      ),
      `at_ms ${direction}, id ${direction} LIMIT ${MAX_SCANNED}`,
    )
  const values = views.flatMap(() => [...matches.values, ...range.values])
  // One more row shows whether there is another page. SQLite stops the scan when it has found these rows.
  const found = prepared(
    db,
    `SELECT at_ms, request_id, seq FROM (${scanned(`entry.seq AS seq, ${matches.sql} AS is_match`)})
     WHERE is_match LIMIT ?`,
  ).all(...values, query.limit + 1)
  if (found.length > query.limit) {
    return { entries: entriesOf(db, found.slice(0, -1)), next: cursorOf(found.at(-2)) }
  }
  const last = prepared(db, `SELECT * FROM (${scanned('1')}) LIMIT 1 OFFSET ${MAX_SCANNED - 1}`).get(
    ...views.flatMap(() => range.values),
  )
  return { entries: entriesOf(db, found), next: cursorOf(last) }
}

/**
 * The first rows of one view, or of two, in the order of their columns `at_ms` and `id`: each has its own
 * index, and SQLite would sort all rows of a union.
 */
function firstOf(selects: readonly string[], order: string): string {
  const first = selects.map((select) => `${select} ORDER BY ${order}`)
  const [only = ''] = first
  if (first.length === 1) return only
  return `SELECT * FROM (${first.map((each) => `SELECT * FROM (${each})`).join(' UNION ALL ')}) ORDER BY ${order}`
}

/** The tables and the index that a page is read from: the index with the fewest entries that do not match. */
export interface Source {
  readonly from: string
  /** The column with the time of an entry. */
  readonly at: string
  readonly condition: Condition
}

function sourceOf(query: EntryQuery, owner: string | null): Source {
  if (owner !== null) return ownSource(owner)
  return isFailure(query) ? FAILED : BY_TIME
}

/** The entries of a key or an account. */
export function ownSource(owner: string): Source {
  return {
    from: 'entry_places AS place CROSS JOIN ledger_entries AS entry ON entry.seq = place.seq',
    at: 'place.at_ms',
    condition: { sql: 'place.owner = ?', values: [owner] },
  }
}

/** All entries, in order of time. */
export const BY_TIME: Source = {
  from: 'ledger_entries AS entry',
  at: 'entry.at_ms',
  condition: { sql: 'true', values: [] },
}
/** Those that failed. */
export const FAILED: Source = {
  from: 'ledger_entries AS entry',
  at: 'entry.at_ms',
  condition: { sql: 'entry.is_failed = 1', values: [] },
}

/** The conditions together. */
export function both(conditions: readonly Condition[]): Condition {
  return {
    sql: conditions.map(({ sql }) => `(${sql})`).join(' AND ') || 'true',
    values: conditions.flatMap(({ values }) => values),
  }
}

/** The conditions for the time. */
export function rangeOf({ fromMs, toMs }: EntryQuery, at: string): Condition[] {
  return [
    ...(fromMs === undefined ? [] : [{ sql: `${at} >= ?`, values: [fromMs] }]),
    ...(toMs === undefined ? [] : [{ sql: `${at} < ?`, values: [toMs] }]),
  ]
}

/** The entries of rows with `seq`, in their order. */
export function entriesOf(db: Connection, rows: readonly Row[]): LedgerEntry[] {
  const entry = prepared(db, 'SELECT * FROM ledger_entries WHERE seq = ?')
  return rows.flatMap((row) => {
    // The entry may have been pruned since.
    const whole = entry.get(numberIn(row, 'seq'))
    return whole === undefined ? [] : [entryIn(whole)]
  })
}

function cursorOf(row: Row | undefined): string | null {
  return row === undefined ? null : `${numberIn(row, 'at_ms')}_${textIn(row, 'request_id')}`
}

export function filterOf(query: EntryQuery): Condition[] {
  const { failed, accountId, cause, label, dimension, within, clientRequestId } = query
  return [
    ...is('model', query.model),
    ...is('model_asked', query.modelAsked),
    ...is('upstream', query.upstream),
    ...is('status', query.status),
    ...(failed === undefined ? [] : [{ sql: 'is_failed = ?', values: [failed ? 1 : 0] }]),
    ...is('outcome', query.outcome),
    ...is('outcome', cause === undefined ? undefined : valuesOf(cause).flatMap(outcomesOf)),
    ...is('ingress', query.ingress),
    ...(label === undefined ? [] : [hasPair('labels', valuesOf(label))]),
    ...(dimension === undefined ? [] : [hasPair('dimensions', valuesOf(dimension))]),
    ...is('program', query.program),
    ...is('"user"', query.user),
    ...is('client_request_id', clientRequestId),
    ...is('batch', query.batch),
    ...is('key_id', query.keyId),
    ...is('account_id', accountId ?? undefined),
    ...(within === undefined
      ? []
      : [
          {
            // The last name of a path is that of the entry's own account, which has another id.
            sql: "account_id = ? OR (entry.at_ms >= ? AND instr('/' || coalesce(account_path, ''), '/' || ? || '/') > 0)",
            values: [within.accountId, within.sinceMs ?? 0, within.name],
          },
        ]),
  ]
}

/** The condition for a column to have the value, or one of them; null is none. */
function is(column: string, wanted: OneOf<string | number> | undefined): Condition[] {
  if (wanted === undefined) return []
  if (typeof wanted !== 'object') return [{ sql: `${column} IS ?`, values: [wanted] }]
  const sql = `${column} IN (SELECT value FROM json_each(?))`
  return [{ sql, values: [JSON.stringify(wanted)] }]
}

/** The condition for a column of pairs `name=value`, separated by spaces, to have one of them. */
function hasPair(column: 'labels' | 'dimensions', pairs: readonly string[]): Condition {
  const one = `instr(' ' || coalesce(${column}, '') || ' ', ' ' || ? || ' ') > 0`
  return { sql: pairs.map(() => one).join(' OR ') || 'false', values: pairs }
}

/** Whether the query is for failures only; every status other than 200 is that of a failure. */
export function isFailure({ failed, status, outcome, cause }: EntryQuery): boolean {
  if (failed === true || cause !== undefined) return true
  return (
    (status !== undefined && !valuesOf(status).includes(200)) ||
    (outcome !== undefined && !valuesOf(outcome).includes('ok'))
  )
}

/** The next entries of the export, oldest first. */
export function exported(db: Connection, after: ExportPlace): ExportBatch {
  const selects = entryViews(db).map((view) => {
    return `SELECT * FROM ${view} WHERE at_ms >= ?1 AND (at_ms, id) > (?1, ?2)`
  })
  const rows = db
    .prepare(firstOf(selects, `at_ms, id LIMIT ${EXPORT_BATCH}`))
    .all(after[0], idOf(after[1], after[0]))
  const last = rows.length < EXPORT_BATCH ? undefined : rows.at(-1)
  return {
    rows: rows.map(entryIn),
    next: last === undefined ? null : [numberIn(last, 'at_ms'), textIn(last, 'request_id')],
  }
}

/** The amounts spent of budgets, including those reserved. */
export function budgetsOf(db: Connection, after: readonly [account: string, subject: string]): BudgetBatch {
  const rows = db
    .prepare(
      `SELECT account_id, subject, day, day_spent, week, week_spent, month, month_spent, others
       FROM limits WHERE
       (account_id, subject) > (?, ?) ORDER BY account_id, subject LIMIT ${BUDGET_BATCH}`,
    )
    .all(...after)
  const last = rows.length < BUDGET_BATCH ? undefined : rows.at(-1)
  return {
    spent: rows.flatMap(spentIn),
    next: last === undefined ? null : [textIn(last, 'account_id'), textIn(last, 'subject')],
  }
}

function spentIn(row: Row): BudgetSpent[] {
  const account = textIn(row, 'account_id')
  const owner = { accountId: account === '' ? null : account, subject: textIn(row, 'subject') }
  const { budgets: others, begun } = othersIn(row)
  const of = (kind: BudgetSpent['kind'], column: string): BudgetSpent => {
    const period = numberIn(row, column)
    const mark = markOf(period, begun.get(kind))
    return { ...owner, kind, period, amount: numberIn(row, `${column}_spent`), mark }
  }
  const budgets = [of('usd_day', 'day'), of('usd_week', 'week'), of('usd_month', 'month')]
  for (const [kind, budget] of others ?? []) {
    const { period, spent: amount } = budget
    budgets.push({ ...owner, kind, period, amount, mark: markOf(period, budget.begun) })
  }
  return budgets.filter(({ amount }) => amount > 0)
}
