/**
 * Queries for the use of keys. They run in the background thread.
 */
import { numberIn, textIn, type Connection, type Row, type Value } from '../driver.js'
import type { KeyUse, KeyUseQuery } from '../../usage-queries.js'
import { byCost } from '../../records/group-sums.js'
import {
  added,
  bucketOf,
  bucketsOf,
  dayRows,
  MARK_MS,
  ONE_KEY,
  pendingRows,
  values,
  type Condition,
} from './read-sums.js'
import { BUCKET_MS, MAX_COUNTER } from './sum-columns.js'

/** Spans cached in memory; each has as many entries as there are keys. */
const MOST_SPANS = 8
const SUMS = ['requests', 'cost_nano_usd', 'unpriced'].map(added).join(', ')

/** Days from one to another (their starts, both included), of one account and model or of all. */
type Span = Pick<KeyUseQuery, 'accountId' | 'model' | 'fromMs' | 'toMs'>

/**
 * The use of each key. Sums of past days are cached, because ten thousand keys have hundreds of thousands of
 * rows; `days_changed` tells whether a past day has changed since.
 */
export class KeyUses {
  private readonly db: Connection
  private readonly cached = new Map<string, readonly KeyUse[]>()
  private version: unknown = null

  constructor(db: Connection) {
    this.db = db
  }

  /** The use of each key on the days of a span. */
  of(query: KeyUseQuery): KeyUse[] {
    const { accountId, keyIds, model, most } = query
    const fromMs = bucketOf(query.fromMs, BUCKET_MS.day)
    const toMs = bucketOf(query.toMs, BUCKET_MS.day)
    const span = { accountId, fromMs, toMs, ...(model === undefined ? {} : { model }) }
    if (accountId !== null && keyIds !== undefined) {
      return this.each(span, keyIds)
    }
    const uses = this.ofAll(span)
    if (keyIds !== undefined) return uses.filter(({ keyId }) => keyIds.includes(keyId))
    return most === undefined ? uses : uses.sort(byCost).slice(0, most)
  }

  private ofAll(span: Span): KeyUse[] {
    const mark = this.db.prepare(`SELECT ${MARK_MS} AS at_ms`).get()
    const runningMs = mark === undefined ? 0 : bucketOf(numberIn(mark, 'at_ms'), BUCKET_MS.day)
    if (span.fromMs >= runningMs) return this.read(span)
    const past = this.ofPastDays({ ...span, toMs: Math.min(span.toMs, runningMs - BUCKET_MS.day) })
    if (span.toMs < runningMs) return [...past]
    const uses = new Map(past.map((use) => [nameOf(use), use]))
    for (const use of this.read({ ...span, fromMs: runningMs })) {
      const before = uses.get(nameOf(use))
      uses.set(nameOf(use), before === undefined ? use : sumOf(before, use))
    }
    return [...uses.values()]
  }

  /** The use on past days, from the cache if no past day has changed. */
  private ofPastDays(span: Span): readonly KeyUse[] {
    const version =
      this.db.prepare("SELECT value FROM meta WHERE name = 'days_changed'").get()?.['value'] ?? ''
    if (version !== this.version) this.cached.clear()
    this.version = version
    const name = JSON.stringify([span.accountId, span.model, span.fromMs, span.toMs])
    const uses = this.cached.get(name) ?? this.read(span)
    this.cached.delete(name)
    this.cached.set(name, uses)
    const [oldest] = this.cached.keys()
    if (this.cached.size > MOST_SPANS && oldest !== undefined) this.cached.delete(oldest)
    return uses
  }

  private read(span: Span): KeyUse[] {
    const { sql, parameters } = this.isWide(span) ? selectWideUse(span) : selectUse(span, [])
    return this.db
      .prepare(sql)
      .all(...parameters)
      .map(useIn)
  }

  /**
   * Whether the span has at least a third of the days: then it is faster to read the covering index of all
   * days.
   */
  private isWide({ fromMs, toMs }: Span): boolean {
    const days = this.db.prepare(
      `WITH RECURSIVE ${bucketsOf('days', '?1', '?2')} SELECT count(at) AS days FROM days`,
    )
    const count = (from: number, to: number) => numberIn(days.get(from, to) ?? {}, 'days')
    return 3 * count(fromMs, toMs) >= count(0, MAX_COUNTER)
  }

  private each(span: Span, keyIds: readonly string[]): KeyUse[] {
    const { sql, parameters } = selectUse(span, ['key_id = '])
    const ofKey = this.db.prepare(sql)
    return keyIds.flatMap((keyId) => ofKey.all(...parameters, keyId).map(useIn))
  }
}

/** A query and the values to bind. */
interface Select {
  readonly sql: string
  readonly parameters: readonly Value[]
}

/** Selects the use in a span; `more` are conditions whose values follow the parameters. */
function selectUse(span: Span, more: readonly string[]): Select {
  const { conditions, parameters } = conditionsOf(span, more)
  return {
    sql: `SELECT account_id, key_id, ${SUMS} FROM (${dayRows(conditions)}) GROUP BY account_id, key_id`,
    parameters,
  }
}

/**
 * Selects the same from the covering index, which is in the order of keys: SQLite need not sort hundreds of
 * thousands of rows. Days and pending hours are added up separately, because a union is not in order.
 */
function selectWideUse(span: Span): Select {
  const { conditions, parameters } = conditionsOf(span, [])
  const from = `usage_days INDEXED BY usage_days_by_key WHERE start_ms BETWEEN ?1 AND ?2 AND ${conditions}`
  return {
    sql: `SELECT account_id, key_id, ${SUMS} FROM (
        SELECT account_id, key_id, ${SUMS} FROM ${from} GROUP BY account_id, key_id
        UNION ALL
        SELECT account_id, key_id, requests, cost_nano_usd, unpriced FROM (${pendingRows(conditions)})
      ) GROUP BY account_id, key_id`,
    parameters,
  }
}

function conditionsOf({ accountId, model, fromMs, toMs }: Span, more: readonly string[]) {
  const where: Condition[] = []
  if (model !== undefined) where.push(['model = ', model])
  if (accountId !== null) where.push(['account_id = ', accountId])
  const compared = [...where.map(([sql]) => sql), ...more]
  const conditions = [...compared.map((sql, at) => `${sql}?${at + 3}`), ONE_KEY]
  if (accountId === null) conditions.push("account_id <> ''")
  return { conditions: conditions.join(' AND '), parameters: [fromMs, toMs, ...values(where)] }
}

function nameOf({ accountId, keyId }: KeyUse): string {
  return `${accountId} ${keyId}`
}

function sumOf(one: KeyUse, other: KeyUse): KeyUse {
  return {
    ...one,
    requests: one.requests + other.requests,
    costNanoUsd: Math.min(MAX_COUNTER, one.costNanoUsd + other.costNanoUsd),
    unpriced: one.unpriced + other.unpriced,
  }
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

/** The time of the last use of each key of the account, or of each of these keys. */
export function lastUseOf(
  db: Connection,
  accountId: string,
  keyIds: readonly string[] | null,
): [keyId: string, atMs: number][] {
  const pending = bucketsOf('hours', MARK_MS, String(MAX_COUNTER))
  const last = db.prepare(
    `WITH RECURSIVE ${pending} SELECT max(at_ms) AS at_ms FROM (
       SELECT max(last_at_ms) AS at_ms FROM usage_days WHERE
       account_id = ?1 AND key_id = ?2 AND start_ms = (
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
