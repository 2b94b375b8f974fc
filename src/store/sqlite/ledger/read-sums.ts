/**
 * Queries for sums of usage. They run in the background thread.
 */
import type { SumQuery } from '../../usage-queries.js'
import { textIn, type Connection, type Value } from '../driver.js'
import { ALL_KEYS, BUCKET_MS, COUNTER_COLUMNS, sumText, totalOf } from './sum-columns.js'

/** A condition of a query and its value. */
export type Condition = readonly [sql: string, value: Value]

/** The start of the last hour that days include. */
export const MARK_MS = '(SELECT start_ms FROM days_mark)'

/**
 * A common table expression: the buckets of a table from one time to another. Each takes one step in the
 * primary key, which begins with the time, so that a query for one account does not read the rows of all
 * accounts.
 */
export function bucketsOf(name: 'hours' | 'days', from: string, to: string): string {
  const table = `usage_${name}`
  return `${name} (at) AS (
      SELECT min(start_ms) FROM ${table} WHERE start_ms BETWEEN ${from} AND ${to}
      UNION ALL
      SELECT (SELECT min(start_ms) FROM ${table} WHERE start_ms > at AND start_ms <= ${to})
      FROM ${name} WHERE at IS NOT NULL
    )`
}

/** Selects rows of hours from ?1 to ?2 that match the conditions. */
function hourRows(conditions: string): string {
  return `WITH RECURSIVE ${bucketsOf('hours', '?1', '?2')}
    SELECT usage_hours.* FROM hours CROSS JOIN usage_hours ON start_ms = at AND ${conditions}`
}

/**
 * Selects sums of the days from ?1 to ?2 that match the conditions: rows of `usage_days`, and the hours that
 * they do not include yet. There may be several rows of one day, key and model.
 */
export function dayRows(conditions: string): string {
  return `WITH RECURSIVE ${bucketsOf('days', '?1', '?2')}
    SELECT start_ms, ${DAY_COLUMNS} FROM days CROSS JOIN usage_days ON start_ms = at AND ${conditions}
    UNION ALL
    SELECT * FROM (${pendingRows(conditions)})`
}

/**
 * Selects the hours of the days from ?1 to ?2 that `usage_days` does not include yet, with the start of their
 * day.
 */
export function pendingRows(conditions: string): string {
  const lastHour = `?2 + ${BUCKET_MS.day - 1}`
  return `WITH RECURSIVE ${bucketsOf('hours', `max(?1, ${MARK_MS})`, lastHour)}
    SELECT day_ms AS start_ms, ${DAY_COLUMNS} FROM hours CROSS JOIN usage_pending
    ON start_ms = at AND ${conditions}`
}

const DAY_COLUMNS = `account_id, key_id, model, last_at_ms, ${COUNTER_COLUMNS.join(', ')}`

/** The condition for rows of one key; other rows have the sums of all keys of an account. */
export const ONE_KEY = `key_id <> '${ALL_KEYS}'`

/** Sums, in order of time, as texts for `readSum`: texts are copied between threads faster than objects. */
export function sumsOf(db: Connection, query: SumQuery): string[] {
  const { by, keyId, model, per = 'key' } = query
  const from = bucketOf(query.fromMs, BUCKET_MS[by])
  const to = bucketOf(query.toMs, BUCKET_MS[by])
  const isByModel = per === 'model' && keyId === undefined
  const owner = isByModel ? (query.accountId ?? '') : query.accountId
  const key = isByModel ? (owner === '' ? '' : ALL_KEYS) : keyId
  const more: Condition[] = []
  if (model !== undefined) more.push(['model = ', model])
  if (owner !== null) more.push(['account_id = ', owner])
  if (key !== undefined) more.push(['key_id = ', key])
  const conditions = more.map(([sql], at) => `${sql}?${at + 3}`)
  if (owner === null) conditions.push("account_id <> ''")
  if (key === undefined) conditions.push(ONE_KEY)
  const shown = per === 'model' ? "'' AS key_id" : 'key_id'
  const rows = (by === 'hour' ? hourRows : dayRows)(conditions.join(' AND '))
  // Hours have one row of each key and model; days may have several.
  const [counters, grouping] =
    by === 'hour'
      ? [COUNTER_COLUMNS, '']
      : [COUNTER_COLUMNS.map(totalOf), 'GROUP BY start_ms, account_id, key_id, model']
  return db
    .prepare(
      `SELECT ${sumText(counters)} AS sum FROM (SELECT start_ms, account_id, ${shown}, model, ${COUNTER_COLUMNS.join(', ')}
       FROM (${rows})) ${grouping} ORDER BY start_ms`,
    )
    .all(from, to, ...values(more))
    .map((row) => textIn(row, 'sum'))
}

/** The sum of a counter. */
export function added(column: string): string {
  return `${totalOf(column)} AS ${column}`
}

/** The values to bind. */
export function values(of: readonly Condition[]): Value[] {
  return of.map(([, value]) => value)
}

/** The start of the bucket that contains a time. */
export function bucketOf(atMs: number, lengthMs: number): number {
  return Math.floor(Math.max(0, atMs) / lengthMs) * lengthMs
}
