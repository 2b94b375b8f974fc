/**
 * What keys used, as SQL. Runs in a thread of its own (background-worker.ts).
 */
import { numberIn, textIn, type Connection, type Row, type Value } from '../driver.js'
import type { KeyUse, KeyUseQuery } from '../../ledger.js'
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
  type Where,
} from './read-sums.js'
import { BUCKET_MS, MOST } from './sum-columns.js'

/** Spans whose days are kept in memory; each has as many entries as keys. */
const MOST_SPANS = 8
const SUMS = ['requests', 'cost_nano_usd', 'unpriced'].map(added).join(', ')

/** Days from one to another (their starts, both included), of one account and model or of all. */
type Span = Pick<KeyUseQuery, 'accountId' | 'model' | 'fromMs' | 'toMs'>

/**
 * What each key used. Days that are over are added up once and kept in memory: ten thousand keys have hundreds of
 * thousands of rows. `days_changed` changes if such a day does.
 */
export class KeyUses {
  private readonly db: Connection
  private readonly kept = new Map<string, readonly KeyUse[]>()
  private version: unknown = null

  constructor(db: Connection) {
    this.db = db
  }

  /** What each key used on the days of a span. */
  of(query: KeyUseQuery): KeyUse[] {
    const { accountId, keyIds, model, most } = query
    const fromMs = bucketOf(query.fromMs, BUCKET_MS.day)
    const toMs = bucketOf(query.toMs, BUCKET_MS.day)
    const span = { accountId, fromMs, toMs, ...(model === undefined ? {} : { model }) }
    if (accountId !== null && keyIds !== undefined) {
      return this.each(span, keyIds)
    }
    const uses = this.together(span)
    if (keyIds !== undefined) return uses.filter(({ keyId }) => keyIds.includes(keyId))
    return most === undefined ? uses : uses.sort(byCost).slice(0, most)
  }

  private together(span: Span): KeyUse[] {
    const mark = this.db.prepare(`SELECT ${MARK_MS} AS at_ms`).get()
    const runningMs = mark === undefined ? 0 : bucketOf(numberIn(mark, 'at_ms'), BUCKET_MS.day)
    if (span.fromMs >= runningMs) return this.read(span)
    const settled = this.settled({ ...span, toMs: Math.min(span.toMs, runningMs - BUCKET_MS.day) })
    if (span.toMs < runningMs) return [...settled]
    const uses = new Map(settled.map((use) => [nameOf(use), use]))
    for (const use of this.read({ ...span, fromMs: runningMs })) {
      const before = uses.get(nameOf(use))
      uses.set(nameOf(use), before === undefined ? use : sumOf(before, use))
    }
    return [...uses.values()]
  }

  /** Days that are over, from memory if they have not changed since. */
  private settled(span: Span): readonly KeyUse[] {
    const version =
      this.db.prepare("SELECT value FROM meta WHERE name = 'days_changed'").get()?.['value'] ?? ''
    if (version !== this.version) this.kept.clear()
    this.version = version
    const name = JSON.stringify([span.accountId, span.model, span.fromMs, span.toMs])
    const uses = this.kept.get(name) ?? this.read(span)
    this.kept.delete(name)
    this.kept.set(name, uses)
    const [oldest] = this.kept.keys()
    if (this.kept.size > MOST_SPANS && oldest !== undefined) this.kept.delete(oldest)
    return uses
  }

  private read(span: Span): KeyUse[] {
    const { sql, parameters } = this.isWide(span) ? selectWideUse(span) : selectUse(span, [])
    return this.db
      .prepare(sql)
      .all(...parameters)
      .map(useIn)
  }

  /** Whether the span has at least a third of the days: then reading the narrow index of all days is quicker. */
  private isWide({ fromMs, toMs }: Span): boolean {
    const days = this.db.prepare(
      `WITH RECURSIVE ${bucketsOf('days', '?1', '?2')} SELECT count(at) AS days FROM days`,
    )
    const count = (from: number, to: number) => numberIn(days.get(from, to) ?? {}, 'days')
    return 3 * count(fromMs, toMs) >= count(0, MOST)
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

/** The uses of a span; `more` are conditions whose values follow the parameters. */
function selectUse(span: Span, more: readonly string[]): Select {
  const { conditions, parameters } = conditionsOf(span, more)
  return {
    sql: `SELECT account_id, key_id, ${SUMS} FROM (${dayRows(conditions)}) GROUP BY account_id, key_id`,
    parameters,
  }
}

/**
 * The same, read from an index that has all columns and is in the order of keys: SQLite adds up without sorting
 * hundreds of thousands of rows. Each part is added up by itself, since a union is not in order.
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
  const where: Where[] = []
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
    costNanoUsd: Math.min(MOST, one.costNanoUsd + other.costNanoUsd),
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
