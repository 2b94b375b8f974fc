/**
 * Sums of usage, as SQL. Runs in a thread of its own (background-worker.ts).
 */
import type { SumQuery, UsageSum } from '../../ledger.js'
import type { Connection, Value } from '../driver.js'
import { ALL_KEYS, BUCKET_MS, COUNTER_COLUMNS, MOST, sumIn } from './sum-columns.js'

/** A condition of a query and its value. */
export type Where = readonly [sql: string, value: Value]

/** The hour that the last row included in days is of. */
export const MARK_MS = '(SELECT start_ms FROM days_mark)'

/**
 * The buckets of a table from one time to another, found by one index step each; the primary key begins with
 * the time, so that a year of buckets is not read for one account's.
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

/** Rows of hours from ?1 to ?2 that meet the conditions. */
function hourRows(conditions: string): string {
  return `WITH RECURSIVE ${bucketsOf('hours', '?1', '?2')}
    SELECT usage_hours.* FROM hours CROSS JOIN usage_hours ON start_ms = at AND ${conditions}`
}

/**
 * Sums of the days from ?1 to ?2 that meet the conditions: what is in `usage_days`, and the hours that are not
 * included there yet. There may be several rows of one day, key and model.
 */
export function dayRows(conditions: string): string {
  return `WITH RECURSIVE ${bucketsOf('days', '?1', '?2')}
    SELECT start_ms, ${DAY_COLUMNS} FROM days CROSS JOIN usage_days ON start_ms = at AND ${conditions}
    UNION ALL
    SELECT * FROM (${pendingRows(conditions)})`
}

/** The hours of the days from ?1 to ?2 that `usage_days` does not include yet, with the start of their day. */
export function pendingRows(conditions: string): string {
  const lastHour = `?2 + ${BUCKET_MS.day - 1}`
  return `WITH RECURSIVE ${bucketsOf('hours', `max(?1, ${MARK_MS})`, lastHour)}
    SELECT day_ms AS start_ms, ${DAY_COLUMNS} FROM hours CROSS JOIN usage_pending
    ON start_ms = at AND ${conditions}`
}

const DAY_COLUMNS = `account_id, key_id, model, last_at_ms, ${COUNTER_COLUMNS.join(', ')}`

/** Rows of one key, and not those of all keys of an account. */
export const ONE_KEY = `key_id <> '${ALL_KEYS}'`

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
  // Hours have one row of each key and model; days may have several.
  const [counters, grouping] =
    by === 'hour'
      ? [COUNTER_COLUMNS, 'ORDER BY 1']
      : [COUNTER_COLUMNS.map(added), 'GROUP BY 1, 2, 3, 4 ORDER BY 1']
  return db
    .prepare(
      `SELECT start_ms, account_id, ${shown}, model, ${counters.join(', ')} FROM (${rows}) ${grouping}`,
    )
    .all(from, to, ...values(more))
    .map(sumIn)
}

/** The sum of a counter. */
export function added(column: string): string {
  return `min(${MOST}, total(${column})) AS ${column}`
}

/** The values to bind. */
export function values(of: readonly Where[]): Value[] {
  return of.map(([, value]) => value)
}

/** Where the bucket begins that a time is in. */
export function bucketOf(atMs: number, lengthMs: number): number {
  return Math.floor(Math.max(0, atMs) / lengthMs) * lengthMs
}
