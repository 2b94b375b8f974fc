/**
 * Queries for pages of entries, their export, and budgets. They run in the background thread, so that a slow
 * query does not block the event loop.
 */
import { outcomesOf } from '../../../errors.js'
import type { LedgerEntry } from '../../../ledger/entry.js'
import type { BudgetSpent } from '../../ledger.js'
import type { EntryPage, EntryQuery } from '../../usage-queries.js'
import { numberIn, textIn, type Connection, type Row, type Value } from '../driver.js'
import { entryIn } from './entry-row.js'

/**
 * Maximum number of entries read for one page: if few of them match, the page is short, and its cursor
 * continues.
 */
const MAX_SCANNED = 5_000
/** Entries of one batch of the export. */
const EXPORT_BATCH = 500
/** Limits of one batch of budgets. */
const BUDGET_BATCH = 500
/** A cursor: the time and the request of the last entry that was read. */
const CURSOR = /^(\d{1,16})_(.{1,400})$/s

/** The entry after which a batch of the export begins. */
export type ExportPlace = readonly [atMs: number, requestId: string]

/** A batch of the export, and the entry after which the next one begins; null if there is none. */
export interface ExportBatch {
  readonly rows: readonly LedgerEntry[]
  readonly next: ExportPlace | null
}

/** A batch of budgets, and the limit after which the next one begins; null if there is none. */
export interface BudgetBatch {
  readonly spent: readonly BudgetSpent[]
  readonly next: readonly [account: string, subject: string] | null
}

/** A condition of a query and its value. */
type Condition = readonly [sql: string, value: Value]

/** Whether the query reads `entry_places`, which lacks entries that the roll-up has not added yet. */
export function isByOwner(query: EntryQuery): boolean {
  return query.keyId !== undefined || (query.accountId !== null && !isFailure(query))
}

/** One page of entries, newest first. */
export function pageOf(db: Connection, query: EntryQuery): EntryPage {
  const cursor = query.after === null ? null : CURSOR.exec(query.after)
  if (query.after !== null && cursor === null) return { entries: [], next: null }
  const filter = filterOf(query)
  const { from, at, condition, owner } = sourceOf(query)
  const range: Condition[] = []
  if (query.fromMs !== undefined) range.push([`${at} >= ?`, query.fromMs])
  if (query.toMs !== undefined) range.push([`${at} < ?`, query.toMs])
  // Entries of one millisecond are in the order of their ids, as in Redis; the indexes have only the time.
  const isAfter = cursor === null ? '' : `AND ${at} <= ? AND (${at}, entry.request_id) < (?, ?)`
  const cursorValues =
    cursor === null ? [] : [Number(cursor[1]), Number(cursor[1]), cursor[2] ?? '']
  const matches = filter.map(([sql]) => sql).join(' AND ') || '1'
  const scanned = (columns: string) =>
    `SELECT ${at} AS at_ms, entry.request_id, ${columns} FROM ${from} WHERE
     ${[condition, ...range.map(([sql]) => sql)].join(' AND ')} ${isAfter}
     ORDER BY ${at} DESC, entry.request_id DESC LIMIT ${MAX_SCANNED}`
  const scannedValues = [...owner, ...values(range), ...cursorValues]
  // One more row shows whether there is another page. SQLite stops the scan when it has found these rows.
  const found = db
    .prepare(
      `SELECT at_ms, request_id, seq FROM (${scanned(`entry.seq, ${matches} AS is_match`)})
       WHERE is_match LIMIT ${query.limit + 1}`,
    )
    .all(...values(filter), ...scannedValues)
  if (found.length > query.limit) {
    return { entries: entriesOf(db, found.slice(0, -1)), next: cursorOf(found.at(-2)) }
  }
  const last = db
    .prepare(`SELECT * FROM (${scanned('1')}) LIMIT 1 OFFSET ${MAX_SCANNED - 1}`)
    .get(...scannedValues)
  return { entries: entriesOf(db, found), next: cursorOf(last) }
}

/** The tables and the index that a page is read from: the index with the fewest entries that do not match. */
interface Source {
  readonly from: string
  /** The column with the time of an entry. */
  readonly at: string
  readonly condition: string
  readonly owner: readonly Value[]
}

function sourceOf(query: EntryQuery): Source {
  if (isByOwner(query)) {
    return {
      from: 'entry_places AS place CROSS JOIN ledger_entries AS entry ON entry.seq = place.seq',
      at: 'place.at_ms',
      condition: 'place.owner = ?',
      owner: [query.keyId ?? query.accountId],
    }
  }
  const [index, condition] = isFailure(query)
    ? ['entries_failed', "outcome <> 'ok'"]
    : ['entries_by_time', 'true']
  const from = `ledger_entries AS entry INDEXED BY ${index}`
  return { from, at: 'entry.at_ms', condition, owner: [] }
}

function entriesOf(db: Connection, rows: readonly Row[]): LedgerEntry[] {
  const entry = db.prepare('SELECT * FROM ledger_entries WHERE seq = ?')
  return rows.flatMap((row) => {
    // The entry may have been pruned since.
    const whole = entry.get(numberIn(row, 'seq'))
    return whole === undefined ? [] : [entryIn(whole)]
  })
}

function cursorOf(row: Row | undefined): string | null {
  return row === undefined ? null : `${numberIn(row, 'at_ms')}_${textIn(row, 'request_id')}`
}

function filterOf(query: EntryQuery): Condition[] {
  const { model, modelAsked, upstream, status, failed, keyId, accountId } = query
  const { outcome, cause, ingress, label, clientRequestId, models } = query
  const filter: Condition[] = []
  if (model !== undefined) filter.push(['model = ?', model])
  if (models !== undefined) {
    filter.push(['model IN (SELECT value FROM json_each(?))', JSON.stringify(models)])
  }
  if (modelAsked !== undefined) filter.push(['model_asked IS ?', modelAsked])
  if (upstream !== undefined) filter.push(['upstream IS ?', upstream])
  if (status !== undefined) filter.push(['status = ?', status])
  if (failed !== undefined) filter.push([`(outcome <> 'ok') = ?`, failed ? 1 : 0])
  if (outcome !== undefined) filter.push(['outcome = ?', outcome])
  if (cause !== undefined) {
    filter.push(['outcome IN (SELECT value FROM json_each(?))', JSON.stringify(outcomesOf(cause))])
  }
  if (ingress !== undefined) filter.push(['ingress IS ?', ingress])
  if (label !== undefined) {
    filter.push(["instr(' ' || coalesce(labels, '') || ' ', ' ' || ? || ' ') > 0", label])
  }
  if (clientRequestId !== undefined) filter.push(['client_request_id IS ?', clientRequestId])
  if (keyId !== undefined) filter.push(['key_id = ?', keyId])
  if (accountId !== null) filter.push(['account_id = ?', accountId])
  return filter
}

/** Whether the query is for failures only; every status other than 200 is that of a failure. */
function isFailure({ failed, status, outcome, cause }: EntryQuery): boolean {
  if (failed === true || cause !== undefined) return true
  return (status !== undefined && status !== 200) || (outcome !== undefined && outcome !== 'ok')
}

/** The next entries of the export, oldest first. */
export function exported(db: Connection, after: ExportPlace): ExportBatch {
  const rows = db
    .prepare(
      `SELECT * FROM ledger_entries INDEXED BY entries_by_time WHERE
       (at_ms, request_id) > (?, ?) ORDER BY at_ms, request_id LIMIT ${EXPORT_BATCH}`,
    )
    .all(...after)
  const last = rows.length < EXPORT_BATCH ? undefined : rows.at(-1)
  return {
    rows: rows.map(entryIn),
    next: last === undefined ? null : [numberIn(last, 'at_ms'), textIn(last, 'request_id')],
  }
}

/** The amounts spent of budgets, including those reserved. */
export function budgetsOf(
  db: Connection,
  after: readonly [account: string, subject: string],
): BudgetBatch {
  const rows = db
    .prepare(
      `SELECT account_id, subject, day, day_spent, week, week_spent, month, month_spent
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
  const of = (kind: BudgetSpent['kind'], column: string): BudgetSpent => ({
    accountId: account === '' ? null : account,
    kind,
    subject: textIn(row, 'subject'),
    period: numberIn(row, column),
    nanoUsd: numberIn(row, `${column}_spent`),
  })
  const budgets = [of('usd_day', 'day'), of('usd_week', 'week'), of('usd_month', 'month')]
  return budgets.filter(({ nanoUsd }) => nanoUsd > 0)
}

function values(of: readonly Condition[]): Value[] {
  return of.map(([, value]) => value)
}
