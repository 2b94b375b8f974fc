/**
 * Questions about usage, as SQL: pages of entries, sums, what keys used, the export. They run in a thread of
 * their own (background-worker.ts), so that no question, however wide, holds up the event loop.
 */
import type { UsageRow } from '../../../ledger/row.js'
import type { BudgetSpent, KeyUse, KeyUseQuery, RowPage, RowQuery } from '../../ledger.js'
import type { SumQuery, UsageSum } from '../../ledger.js'
import { numberIn, textIn, type Connection, type Row, type Value } from '../../../sqlite-driver.js'
import { entryIn } from './entry.js'
import { ALL_KEYS, BUCKET_MS, COUNTER_COLUMNS, MOST, sumIn } from './sums.js'

/** Entries looked at for one page; if no more match, the page is short and says where it stopped. */
const MOST_LOOKED_AT = 20_000
/** Entries of one batch of the export. */
const EXPORT_BATCH = 500
/** Limits of one batch of budgets. */
const BUDGET_BATCH = 500
/** The time and `seq` of the last entry that was looked at. */
const CURSOR = /^(\d{1,16})_(\d{1,16})$/

/** Where a batch of the export begins: behind this entry. */
export type ExportPlace = readonly [atMs: number, seq: number]

/** A batch of the export, and where the next one begins; null behind the last. */
export interface ExportBatch {
  readonly rows: readonly UsageRow[]
  readonly next: ExportPlace | null
}

/** A batch of budgets, and where the next one begins; null behind the last. */
export interface BudgetBatch {
  readonly spent: readonly BudgetSpent[]
  readonly next: readonly [account: string, subject: string] | null
}

/** A condition of a query and its value. */
type Where = readonly [sql: string, value: Value]

/** Whether the page is found by `entry_places`, which has the entries that are counted. */
export function isByOwner(query: RowQuery): boolean {
  return query.keyId !== undefined || (query.accountId !== null && !isFailure(query))
}

/** One page of entries, newest first. */
export function pageOf(db: Connection, query: RowQuery): RowPage {
  const cursor = query.after === null ? null : CURSOR.exec(query.after)
  if (query.after !== null && cursor === null) return { rows: [], next: null }
  const filter = filterOf(query)
  const range: Where[] = []
  if (query.fromMs !== undefined) range.push(['at.at_ms >= ?', query.fromMs])
  if (query.toMs !== undefined) range.push(['at.at_ms < ?', query.toMs])
  const isFirst = cursor === null ? '' : 'AND (at.at_ms, at.seq) < (?, ?)'
  const before = cursor === null ? [] : [Number(cursor[1]), Number(cursor[2])]
  const { from, condition, owner } = placesOf(query)
  const found = db
    .prepare(
      `SELECT at.at_ms, at.seq, ${filter.map(([sql]) => sql).join(' AND ') || '1'} AS hit FROM ${from}
       WHERE ${[condition, ...range.map(([sql]) => sql)].join(' AND ')} ${isFirst}
       ORDER BY at.at_ms DESC, at.seq DESC LIMIT ${MOST_LOOKED_AT}`,
    )
    .iterate(...values(filter), ...owner, ...values(range), ...before)
  return pageIn(db, found, query.limit)
}

/** The entries that a page is found in, by the index that leaves the fewest to look at. */
function placesOf(query: RowQuery): { from: string; condition: string; owner: Value[] } {
  if (isByOwner(query)) {
    return {
      from: 'entry_places AS at CROSS JOIN ledger_entries AS entry ON entry.seq = at.seq',
      condition: 'at.owner = ?',
      owner: [query.keyId ?? query.accountId],
    }
  }
  const from = 'ledger_entries AS at INDEXED BY'
  return isFailure(query)
    ? { from: `${from} entries_failed`, condition: "outcome <> 'ok'", owner: [] }
    : { from: `${from} entries_by_time`, condition: 'true', owner: [] }
}

/** Reads on until the page is full, and one further, so that the last page is known as such. */
function pageIn(db: Connection, found: Iterable<Row>, limit: number): RowPage {
  const entry = db.prepare('SELECT * FROM ledger_entries WHERE seq = ?')
  const hits: number[] = []
  let lookedAt = 0
  let last = ''
  for (const row of found) {
    const seq = numberIn(row, 'seq')
    lookedAt += 1
    if (row['hit'] === 1) {
      if (hits.length === limit) return { rows: entriesOf(hits), next: last }
      hits.push(seq)
    }
    last = `${numberIn(row, 'at_ms')}_${seq}`
  }
  return { rows: entriesOf(hits), next: lookedAt < MOST_LOOKED_AT ? null : last }

  function entriesOf(seqs: readonly number[]): UsageRow[] {
    return seqs.flatMap((seq) => {
      // One that was pruned in between is left out.
      const whole = entry.get(seq)
      return whole === undefined ? [] : [entryIn(whole)]
    })
  }
}

function filterOf(query: RowQuery): Where[] {
  const { model, modelAsked, upstream, status, failed, keyId, accountId } = query
  const filter: Where[] = []
  if (model !== undefined) filter.push(['model = ?', model])
  if (modelAsked !== undefined) filter.push(['model_asked IS ?', modelAsked])
  if (upstream !== undefined) filter.push(['upstream IS ?', upstream])
  if (status !== undefined) filter.push(['status = ?', status])
  if (failed !== undefined) filter.push([`(outcome <> 'ok') = ?`, failed ? 1 : 0])
  if (keyId !== undefined) filter.push(['key_id = ?', keyId])
  if (accountId !== null) filter.push(['account_id = ?', accountId])
  return filter
}

/** Every status but 200 is that of a failure. */
function isFailure({ failed, status }: RowQuery): boolean {
  return failed === true || (status !== undefined && status !== 200)
}

/** Entries from a place on, oldest first. */
export function exported(db: Connection, after: ExportPlace): ExportBatch {
  const rows = db
    .prepare(
      `SELECT * FROM ledger_entries INDEXED BY entries_by_time
       WHERE (at_ms, seq) > (?, ?) ORDER BY at_ms, seq LIMIT ${EXPORT_BATCH}`,
    )
    .all(...after)
  const last = rows.length < EXPORT_BATCH ? undefined : rows.at(-1)
  return {
    rows: rows.map(entryIn),
    next: last === undefined ? null : [numberIn(last, 'at_ms'), numberIn(last, 'seq')],
  }
}

/** The hour that the last row included in days is of. */
const MARK_MS = '(SELECT start_ms FROM days_mark)'

/**
 * The buckets of a table from one time to another, found by one index step each; the primary key begins with
 * the time, so that a year of buckets is not read for one account's.
 */
function bucketsOf(name: 'hours' | 'days', from: string, to: string): string {
  const table = `usage_${name}`
  return `${name} (at) AS (
      SELECT min(start_ms) FROM ${table} WHERE start_ms BETWEEN ${from} AND ${to}
      UNION ALL
      SELECT (SELECT min(start_ms) FROM ${table} WHERE start_ms > at AND start_ms <= ${to})
      FROM ${name} WHERE at IS NOT NULL
    )`
}

/** Rows of hours from ?1 to ?2 that meet the conditions. */
function hourRows(conditions: string): string {
  return `WITH RECURSIVE ${bucketsOf('hours', '?1', '?2')}
    SELECT usage_hours.* FROM hours CROSS JOIN usage_hours ON start_ms = at AND ${conditions}`
}

/**
 * Sums of the days from ?1 to ?2 that meet the conditions: what is in `usage_days`, and the hours that are not
 * included there yet. There may be several rows of one day, key and model.
 */
function dayRows(conditions: string): string {
  const columns = `account_id, key_id, model, last_at_ms, ${COUNTER_COLUMNS.join(', ')}`
  const lastHour = `?2 + ${BUCKET_MS.day - 1}`
  return `WITH RECURSIVE ${bucketsOf('days', '?1', '?2')},
    ${bucketsOf('hours', `max(?1, ${MARK_MS})`, lastHour)}
    SELECT start_ms, ${columns} FROM days CROSS JOIN usage_days ON start_ms = at AND ${conditions}
    UNION ALL
    SELECT day_ms, ${columns} FROM hours CROSS JOIN usage_pending ON start_ms = at AND ${conditions}`
}

/** Rows of one key, and not those of all keys of an account. */
const ONE_KEY = `key_id <> '${ALL_KEYS}'`

/** Sums, in order of time. */
export function sumsOf(db: Connection, query: SumQuery): UsageSum[] {
  const { by, keyId, model, per = 'key' } = query
  const from = bucketOf(query.fromMs, BUCKET_MS[by])
  const to = bucketOf(query.toMs, BUCKET_MS[by])
  const isByModel = per === 'model' && keyId === undefined
  const owner = isByModel ? (query.accountId ?? '') : query.accountId
  const key = isByModel ? (owner === '' ? '' : ALL_KEYS) : keyId
  const more: Where[] = []
  if (model !== undefined) more.push(['model = ', model])
  if (owner !== null) more.push(['account_id = ', owner])
  if (key !== undefined) more.push(['key_id = ', key])
  const conditions = more.map(([sql], at) => `${sql}?${at + 3}`)
  if (owner === null) conditions.push("account_id <> ''")
  if (key === undefined) conditions.push(ONE_KEY)
  const shown = per === 'model' ? "'' AS key_id" : 'key_id'
  const rows = (by === 'hour' ? hourRows : dayRows)(conditions.join(' AND '))
  return db
    .prepare(
      `SELECT start_ms, account_id, ${shown}, model, ${COUNTER_COLUMNS.map(added).join(', ')}
       FROM (${rows}) GROUP BY 1, 2, 3, 4 ORDER BY 1`,
    )
    .all(from, to, ...values(more))
    .map(sumIn)
}

/** What each key used on the days of a span. */
export function keyUseOf(db: Connection, query: KeyUseQuery): KeyUse[] {
  const { accountId, keyIds, model } = query
  const span = [bucketOf(query.fromMs, BUCKET_MS.day), bucketOf(query.toMs, BUCKET_MS.day)]
  const sums = ['requests', 'cost_nano_usd', 'unpriced'].map(added).join(', ')
  const more: Where[] = []
  if (model !== undefined) more.push(['model = ', model])
  if (accountId !== null) more.push(['account_id = ', accountId])
  const conditions = [...more.map(([sql], at) => `${sql}?${at + 3}`), ONE_KEY]
  if (accountId === null) conditions.push("account_id <> ''")
  const usesOf = (condition: readonly string[]) =>
    db.prepare(
      `SELECT account_id, key_id, ${sums} FROM (${dayRows(condition.join(' AND '))})
       GROUP BY account_id, key_id`,
    )
  if (accountId !== null && keyIds !== undefined) {
    const one = usesOf([...conditions, `key_id = ?${more.length + 3}`])
    return keyIds.flatMap((keyId) => one.all(...span, ...values(more), keyId).map(useIn))
  }
  const uses = usesOf(conditions)
    .all(...span, ...values(more))
    .map(useIn)
  return keyIds === undefined ? uses : uses.filter(({ keyId }) => keyIds.includes(keyId))
}

/** When each key of the account, or each of these keys, was last used. */
export function lastUseOf(
  db: Connection,
  accountId: string,
  keyIds: readonly string[] | null,
): [keyId: string, atMs: number][] {
  const pending = bucketsOf('hours', MARK_MS, String(MOST))
  const last = db.prepare(
    `WITH RECURSIVE ${pending} SELECT max(at_ms) AS at_ms FROM (
       SELECT max(last_at_ms) AS at_ms FROM usage_days
       WHERE account_id = ?1 AND key_id = ?2 AND start_ms = (
         SELECT max(start_ms) FROM usage_days WHERE account_id = ?1 AND key_id = ?2)
       UNION ALL
       SELECT max(last_at_ms) FROM hours CROSS JOIN usage_pending
       ON start_ms = at AND account_id = ?1 AND key_id = ?2)`,
  )
  const keys =
    keyIds ??
    db
      .prepare(
        `WITH RECURSIVE ${pending} SELECT key_id FROM usage_days WHERE account_id = ?1 AND ${ONE_KEY}
         UNION SELECT key_id FROM hours
         CROSS JOIN usage_pending ON start_ms = at AND account_id = ?1 AND ${ONE_KEY}`,
      )
      .all(accountId)
      .map((row) => textIn(row, 'key_id'))
  return keys.flatMap((keyId): [string, number][] => {
    const atMs = last.get(accountId, keyId)?.['at_ms']
    return typeof atMs === 'number' ? [[keyId, atMs]] : []
  })
}

/** What is spent of budgets, what is reserved included. */
export function budgetsOf(
  db: Connection,
  after: readonly [account: string, subject: string],
): BudgetBatch {
  const rows = db
    .prepare(
      `SELECT account_id, subject, day, day_spent, month, month_spent FROM limits
       WHERE (account_id, subject) > (?, ?) ORDER BY account_id, subject LIMIT ${BUDGET_BATCH}`,
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
  return [of('usd_day', 'day'), of('usd_month', 'month')].filter(({ nanoUsd }) => nanoUsd > 0)
}

function useIn(row: Row): KeyUse {
  return {
    accountId: textIn(row, 'account_id'),
    keyId: textIn(row, 'key_id'),
    requests: numberIn(row, 'requests'),
    costNanoUsd: numberIn(row, 'cost_nano_usd'),
    unpriced: numberIn(row, 'unpriced'),
  }
}

function added(column: string): string {
  return `min(${MOST}, total(${column})) AS ${column}`
}

function values(of: readonly Where[]): Value[] {
  return of.map(([, value]) => value)
}

/** Where the bucket begins that a time is in. */
function bucketOf(atMs: number, lengthMs: number): number {
  return Math.floor(Math.max(0, atMs) / lengthMs) * lengthMs
}
