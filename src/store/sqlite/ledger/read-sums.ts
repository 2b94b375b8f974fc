/**
 * Queries for sums of usage. They run in the background thread.
 */
import { nanoUsdOf } from '../../../base/nano-usd.js'
import { unitFigures } from '../../../base/unit-counts.js'
import { addUse, byCost, bucketOf } from '../../records/count-usage.js'
import {
  isByProperty,
  PROPERTY_MARK,
  type CellQuery,
  type GroupUse,
  type GroupUseQuery,
  type KeyUseQuery,
  type SumQuery,
  type ZoneOffset,
} from '../../usage-queries.js'
import { numberIn, prepared, textIn, type Connection, type Row, type Value } from '../driver.js'
import { ONE_KEY } from './property-sums.js'
import { BY_TIME, ownSource } from './read-entries.js'
import {
  ALL_KEYS,
  BUCKET_MS,
  CELL_COLUMNS,
  cellText,
  COST,
  COUNTER_COLUMNS,
  MAX_COUNTER,
  nanoUsdText,
  sumText,
  totalOf,
  UNIT_COLUMNS,
  unitsInRow,
} from './sum-columns.js'

/** A condition of a query and its value. */
type Condition = readonly [sql: string, value: Value]

/** The start of the last hour that days include. */
const MARK_MS = '(SELECT start_ms FROM days_mark)'

/**
 * A common table expression: the buckets of a table from one time to another. Each takes one step in the
 * primary key, which begins with the time, so that a query for one account does not read the rows of all
 * accounts.
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

/** Selects rows of hours from ?1 to ?2 that match the conditions. */
function hourRows(conditions: string, columns = 'usage_hours.*'): string {
  return `WITH RECURSIVE ${bucketsOf('hours', '?1', '?2')}
    SELECT ${columns} FROM hours CROSS JOIN usage_hours ON start_ms = at AND ${conditions}`
}

/**
 * Selects sums of the days from ?1 to ?2 that match the conditions: rows of `usage_days`, and the hours that
 * they do not include yet. There may be several rows of one day, key and model.
 */
function dayRows(conditions: string, columns = DAY_COLUMNS): string {
  return `WITH RECURSIVE ${bucketsOf('days', '?1', '?2')}
    SELECT start_ms, ${columns} FROM days CROSS JOIN usage_days ON start_ms = at AND ${conditions}
    UNION ALL
    SELECT * FROM (${pendingRows(conditions, columns)})`
}

/**
 * Selects the hours of the days from ?1 to ?2 that `usage_days` does not include yet, with the start of their
 * day.
 */
function pendingRows(conditions: string, columns = DAY_COLUMNS): string {
  const lastHour = `?2 + ${BUCKET_MS.day - 1}`
  return `WITH RECURSIVE ${bucketsOf('hours', `max(?1, ${MARK_MS})`, lastHour)}
    SELECT day_ms AS start_ms, ${columns} FROM hours CROSS JOIN usage_pending
    ON start_ms = at AND ${conditions}`
}

const DAY_COLUMNS = `account_id, key_id, model, last_at_ms, ${COUNTER_COLUMNS.join(', ')}`

/** Sums, in order of time, as texts for `readSum`: texts are copied between threads faster than objects. */
export function sumsOf(db: Connection, query: SumQuery): string[] {
  const { keyId, model, per = 'key', property, accounts, offsets } = query
  const by = offsets === undefined ? query.by : 'hour'
  const from = bucketOf(query.fromMs, BUCKET_MS[by])
  const to = bucketOf(query.toMs, BUCKET_MS[by])
  const isOfProperty = property !== undefined || accounts !== undefined
  const isByModel = per === 'model' && keyId === undefined && !isOfProperty
  const owner = isByModel ? (query.accountId ?? '') : query.accountId
  const key = isByModel ? (owner === '' ? '' : ALL_KEYS) : keyId
  const more: Condition[] = []
  if (model !== undefined) more.push(['model = ', model])
  if (accounts !== undefined) {
    const names = accounts.map((value) => `${PROPERTY_MARK}account=${value}`)
    more.push(['account_id = ', ''], ['key_id IN (SELECT value FROM json_each(', JSON.stringify(names)])
  } else if (property !== undefined) more.push(...propertyRows(property, query.accountId))
  else if (owner !== null) more.push(['account_id = ', owner])
  if (key !== undefined) more.push(['key_id = ', key])
  const conditions = more.map(([sql], at) => `${sql}?${at + 3}${sql.endsWith('(') ? '))' : ''}`)
  if (owner === null && !isOfProperty) conditions.push("account_id <> ''")
  if (key === undefined && !isOfProperty) conditions.push(ONE_KEY)
  const shown = per === 'model' || accounts !== undefined ? "'' AS key_id" : 'key_id'
  const rows = (by === 'hour' ? hourRows : dayRows)(conditions.join(' AND '))
  // Hours have one row of each key and model; days may have several.
  const [counters, grouping] =
    query.by === 'hour' && accounts === undefined
      ? [COUNTER_COLUMNS, '']
      : [COUNTER_COLUMNS.map(totalOf), 'GROUP BY start_ms, account_id, key_id, model']
  return db
    .prepare(
      `SELECT ${sumText(counters)} AS sum FROM (SELECT ${dayIn(offsets)} AS start_ms, account_id, ${shown}, model, ${COUNTER_COLUMNS.join(', ')}
       FROM (${rows})) ${grouping} ORDER BY start_ms`,
    )
    .all(from, to, ...values(more))
    .map((row) => textIn(row, 'sum'))
}

/** Cells as texts for `readCell`. Those of one account are read from the index of its entries. */
export function cellsOf(db: Connection, { accountId, fromMs, toMs, stepMs }: CellQuery): string[] {
  const step = Math.max(1, Math.trunc(stepMs))
  const { from, at, condition: owner } = accountId === null ? BY_TIME : ownSource(accountId)
  const startMs = `${at} / ${step} * ${step}`
  const group = [startMs, 'account_id', 'key_id', 'model', ...CELL_COLUMNS, 'shadow_of IS NOT NULL']
  return prepared(
    db,
    `SELECT ${cellText(startMs)} AS cell FROM ${from} WHERE ${owner.sql} AND ${at} >= ? AND ${at} < ?
     GROUP BY ${group.join(', ')}`,
  )
    .all(...owner.values, fromMs, toMs)
    .map((row) => textIn(row, 'cell'))
}

/** The start of an hour's day as if its local time were UTC; without offsets, the hour itself. */
function dayIn(offsets: readonly ZoneOffset[] | undefined): string {
  if (offsets === undefined) return 'start_ms'
  const cases = offsets.map(({ fromMs, offsetMs }) => {
    return `WHEN start_ms >= ${Math.trunc(fromMs)} THEN start_ms + ${Math.trunc(offsetMs)}`
  })
  return `CASE ${cases.reverse().join(' ')} ELSE start_ms END / ${BUCKET_MS.day} * ${BUCKET_MS.day}`
}

/**
 * The conditions for rows of a property, of one of its values (`upstream=openai`), or of those with a prefix
 * that ends with `=`. Sums by account are in the rows of all accounts.
 */
function propertyRows(property: string, accountId: string | null): Condition[] {
  const ofOne = property === 'account' && accountId !== null
  const start = `${PROPERTY_MARK}${property}${property.includes('=') ? '' : '='}`
  const prefix = ofOne ? `${start}${accountId} ` : start
  const isPrefix = ofOne || start.endsWith('=')
  const owner = property.startsWith('account') ? '' : (accountId ?? '')
  return [
    ['account_id = ', owner],
    ...(isPrefix
      ? ([
          ['key_id >= ', prefix],
          ['key_id < ', after(prefix)],
        ] as const)
      : ([['key_id = ', prefix]] as const)),
  ]
}

/** The first text after all with the prefix. */
function after(prefix: string): string {
  return prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1)
}

/** The sum of a counter. */
function added(column: string): string {
  return `${totalOf(column)} AS ${column}`
}

/** The columns of `useIn`, from rows that have `SUMS`. */
function shownUse(rows: string): string {
  const figures = FIGURES.map((figure) => (figure === COST ? `${nanoUsdText(figure)} AS ${figure}` : figure))
  return `SELECT account_id, key_id, ${figures.join(', ')} FROM (${rows})`
}

/** The values to bind. */
function values(of: readonly Condition[]): Value[] {
  return of.map(([, value]) => value)
}

/** Spans cached in memory; each has as many entries as there are groups. */
const MOST_SPANS = 16
/** Part of all days from which on it is faster to read the covering index of all days. */
const WIDE = 1 / 3
/** Part of a span's days by which a cached span may differ. */
const NEAR = 1 / 4
const FIGURES = [
  ...['requests', 'errors', 'input_tokens', 'output_tokens', 'cost_nano_usd', 'unpriced'],
  ...UNIT_COLUMNS,
]
const SUMS = FIGURES.map(added).join(', ')

const DAYS_MARK = 'SELECT * FROM days_mark'

/** The last use of keys in the hours that their days include. */
interface LastUses {
  readonly version: string
  readonly accountId: string | null
  readonly rows: readonly Row[]
}

/** Days or hours from one to another (their starts, both included), grouped. */
type Span = GroupUseQuery

/** The use on past days or hours. */
interface PastUse {
  readonly what: 'hours' | 'days'
  readonly span: Span
  readonly uses: readonly GroupUse[]
}

/**
 * The use of each key, model or value of a property. Sums of past days are cached, because ten thousand keys
 * have hundreds of thousands of rows; `days_changed` tells whether a past day has changed since.
 *
 * Queries for the use of groups. They run in the background thread.
 */
export class GroupUses {
  private readonly db: Connection
  private readonly cached = new Map<string, PastUse>()
  private version: unknown = null
  private lastInDays: LastUses | null = null

  constructor(db: Connection) {
    this.db = db
  }

  /** The use of each key on the days of a span. */
  ofKeys(query: KeyUseQuery): GroupUse[] {
    const { accountId, keyIds, model, most } = query
    const fromMs = bucketOf(query.fromMs, BUCKET_MS.day)
    const toMs = bucketOf(query.toMs, BUCKET_MS.day)
    const by = 'key' as const
    const span = { accountId, by, fromMs, toMs, ...(model === undefined ? {} : { model }) }
    if (accountId !== null && keyIds !== undefined) {
      return this.each(span, keyIds)
    }
    const uses = this.ofDays(span)
    if (keyIds !== undefined) return uses.filter(({ keyId }) => keyIds.includes(keyId))
    return most === undefined ? uses : uses.sort(byCost).slice(0, most)
  }

  /** The use of each group: of whole days, and of the hours before and after them. */
  of(query: GroupUseQuery): GroupUse[] {
    const { hour, day } = BUCKET_MS
    const fromMs = bucketOf(query.fromMs, hour)
    const toMs = Math.max(fromMs, Math.ceil(query.toMs / hour) * hour)
    const firstDayMs = Math.ceil(fromMs / day) * day
    const afterLastMs = bucketOf(toMs, day)
    if (firstDayMs >= afterLastMs) return [...this.ofHours({ ...query, fromMs, toMs })]
    const whole = this.ofDays({ ...query, fromMs: firstDayMs, toMs: afterLastMs - day })
    const uses = byName(whole)
    for (const use of this.ofHours({ ...query, fromMs, toMs: firstDayMs })) addUse(uses, use)
    for (const use of this.ofHours({ ...query, fromMs: afterLastMs, toMs })) addUse(uses, use)
    return [...uses.values()]
  }

  /**
   * The time of the last use of every key in the store of the account, or of all accounts (null). Those of
   * hours that their days include are cached: they take one step in an index for each key.
   */
  lastUses(accountId: string | null): Map<string, number> {
    const [owned, owner] = accountId === null ? ['', []] : [' WHERE account_id = ?1', [accountId]]
    const version = JSON.stringify([this.daysChanged(), this.db.prepare(DAYS_MARK).get()])
    if (this.lastInDays?.version !== version || this.lastInDays.accountId !== accountId) {
      const ended = prepared(
        this.db,
        `SELECT id AS key_id, (SELECT max(last_at_ms) FROM usage_days WHERE start_ms = (
             SELECT max(start_ms) FROM usage_days INDEXED BY usage_days_by_key WHERE
             account_id = keys.account_id AND key_id = keys.id AND ${ONE_KEY})
           AND account_id = keys.account_id AND key_id = keys.id) AS at_ms FROM keys${owned}`,
      )
      this.lastInDays = { version, accountId, rows: ended.all(...owner) }
    }
    const pending = prepared(
      this.db,
      `SELECT key_id, max(last_at_ms) AS at_ms FROM usage_pending WHERE
       ${accountId === null ? "account_id <> ''" : 'account_id = ?1'} AND ${ONE_KEY} GROUP BY key_id`,
    )
    const uses = new Map<string, number>()
    for (const row of [...this.lastInDays.rows, ...pending.all(...owner)]) {
      const { at_ms: atMs } = row
      if (typeof atMs !== 'number') continue
      const keyId = textIn(row, 'key_id')
      uses.set(keyId, Math.max(uses.get(keyId) ?? 0, atMs))
    }
    return uses
  }

  /** The use in hours; `toMs` is exclusive. */
  private ofHours(query: GroupUseQuery): readonly GroupUse[] {
    const { fromMs, toMs } = query
    if (toMs <= fromMs) return []
    const { conditions, parameters, group } = conditionsOf(query, [])
    const columns = `account_id, key_id, model, ${FIGURES.join(', ')}`
    const sql = shownUse(`SELECT ${group}, ${SUMS} FROM (${hourRows(conditions, columns)}) GROUP BY 1, 2`)
    const [from = 0, , ...values] = parameters
    const read = (): GroupUse[] =>
      this.db
        .prepare(sql)
        .all(from, toMs - BUCKET_MS.hour, ...values)
        .map(useIn)
    return toMs <= this.runningMs() ? this.past('hours', query, read) : read()
  }

  private ofDays(span: Span): GroupUse[] {
    const runningMs = this.runningMs()
    if (span.fromMs >= runningMs) return this.read(span)
    const ended = { ...span, toMs: Math.min(span.toMs, runningMs - BUCKET_MS.day) }
    const past = this.past('days', ended, () => this.fromNear(ended) ?? this.read(ended))
    if (span.toMs < runningMs) return [...past]
    const uses = byName(past)
    for (const use of this.read({ ...span, fromMs: runningMs })) addUse(uses, use)
    return [...uses.values()]
  }

  /** The start of the first day that has not ended, or whose hours are not all added up. */
  private runningMs(): number {
    const mark = this.db.prepare(`SELECT ${MARK_MS} AS at_ms`).get()
    return mark === undefined ? 0 : bucketOf(numberIn(mark, 'at_ms'), BUCKET_MS.day)
  }

  /** A value that changes with the sums of past days. */
  private daysChanged(): unknown {
    return this.db.prepare("SELECT value FROM meta WHERE name = 'days_changed'").get()?.['value'] ?? ''
  }

  /** The use on past days, from the cache if no past day has changed; all of it as of one moment. */
  private past(what: PastUse['what'], span: Span, read: () => GroupUse[]): readonly GroupUse[] {
    this.db.exec('BEGIN')
    try {
      const version = this.daysChanged()
      if (version !== this.version) this.cached.clear()
      this.version = version
      const { accountId, by, model, keyId, fromMs, toMs } = span
      const name = JSON.stringify([what, accountId, by, model ?? '', keyId ?? '', fromMs, toMs])
      const uses = this.cached.get(name)?.uses ?? read()
      this.cached.delete(name)
      this.cached.set(name, { what, span, uses })
      const [oldest] = this.cached.keys()
      if (this.cached.size > MOST_SPANS && oldest !== undefined) this.cached.delete(oldest)
      return uses
    } finally {
      this.db.exec('COMMIT')
    }
  }

  /**
   * The use on past days from a cached span with almost the same days; null if there is none. The 30
   * days before today are those before yesterday with one day more and one less.
   */
  private fromNear(span: Span): GroupUse[] | null {
    const { by, accountId, model, keyId } = span
    const most = NEAR * this.daysIn(span)
    for (const { what, span: near, uses: nearUses } of [...this.cached.values()].reverse()) {
      const isOfSame = near.accountId === accountId && near.model === model && near.keyId === keyId
      if (what === 'hours' || near.by !== by || !isOfSame) continue
      const [more, less] = [daysOutside(span, near), daysOutside(near, span)]
      const changed = [...more, ...less].reduce((sum, each) => sum + this.daysIn(each), 0)
      if (changed > most) continue
      const uses = byName(nearUses)
      for (const days of more) for (const use of this.read(days)) addUse(uses, use)
      for (const days of less) for (const use of this.read(days)) addUse(uses, negative(use))
      return [...uses.values()].filter(({ requests }) => requests > 0)
    }
    return null
  }

  private read(span: Span): GroupUse[] {
    const isOfKeys = span.by === 'key' || span.by === 'key model'
    const isWide = isOfKeys && span.keyId === undefined && this.isWide(span)
    const { sql, parameters } = isWide ? selectWideUse(span) : selectUse(span, [])
    return this.db
      .prepare(sql)
      .all(...parameters)
      .map(useIn)
  }

  private isWide(span: Span): boolean {
    return this.daysIn(span) >= WIDE * this.daysIn({ fromMs: 0, toMs: MAX_COUNTER })
  }

  /** The number of days with sums. */
  private daysIn({ fromMs, toMs }: Pick<Span, 'fromMs' | 'toMs'>): number {
    const days = prepared(
      this.db,
      `WITH RECURSIVE ${bucketsOf('days', '?1', '?2')} SELECT count(at) AS days FROM days`,
    )
    return numberIn(days.get(fromMs, toMs) ?? {}, 'days')
  }

  private each(span: Span, keyIds: readonly string[]): GroupUse[] {
    const { sql, parameters } = selectUse(span, ['key_id = '])
    const ofKey = prepared(this.db, sql)
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
  const { conditions, parameters, group } = conditionsOf(span, more)
  const columns = `account_id, key_id, model, ${FIGURES.join(', ')}`
  return {
    sql: shownUse(`SELECT ${group}, ${SUMS} FROM (${dayRows(conditions, columns)}) GROUP BY 1, 2`),
    parameters,
  }
}

/**
 * Selects the same for keys from the covering index, which is in the order of keys: SQLite need not sort
 * hundreds of thousands of rows. Days and pending hours are added up separately, because a union is not in
 * order.
 */
function selectWideUse(span: Span): Select {
  const { conditions, parameters } = conditionsOf(span, [])
  const from = `usage_days INDEXED BY usage_days_by_key WHERE start_ms BETWEEN ?1 AND ?2 AND ${conditions}`
  const name = span.by === 'key' ? 'key_id' : KEY_AND_MODEL
  const columns = `account_id, ${name}, ${FIGURES.join(', ')}`
  const read = `account_id, key_id, model, ${FIGURES.join(', ')}`
  return {
    sql: shownUse(`SELECT account_id, key_id, ${SUMS} FROM (
        SELECT account_id, ${name}, ${SUMS} FROM ${from} GROUP BY 1, 2
        UNION ALL
        SELECT ${columns} FROM (${pendingRows(conditions, read)})
      ) GROUP BY account_id, key_id`),
    parameters,
  }
}

/** A group of one key and model. */
const KEY_AND_MODEL = 'key_id || char(9) || model AS key_id'

/** The conditions for the rows of a span, and the columns of its groups. */
function conditionsOf({ accountId, by, model, keyId, fromMs, toMs }: Span, more: readonly string[]) {
  const where: Condition[] = []
  if (model !== undefined) where.push(['model = ', model])
  const fixed: string[] = []
  if (isByProperty(by)) where.push(...propertyRows(by, accountId))
  else if (by === 'model' && keyId === undefined) {
    where.push(['account_id = ', accountId ?? ''], ['key_id = ', accountId === null ? '' : ALL_KEYS])
  } else {
    if (accountId !== null) where.push(['account_id = ', accountId])
    else fixed.push("account_id <> ''")
    if (keyId !== undefined) where.push(['key_id = ', keyId])
    const isOneKey = keyId !== undefined || more.includes('key_id = ')
    // With both conditions SQLite would read the range of all keys; the sign keeps it from the index.
    fixed.push(isOneKey ? `+${ONE_KEY}` : ONE_KEY)
  }
  const compared = [...where.map(([sql]) => sql), ...more]
  const conditions = [...compared.map((sql, at) => `${sql}?${at + 3}`), ...fixed]
  const columns = {
    key: 'account_id, key_id',
    model: "'' AS account_id, model AS key_id",
    'key model': `account_id, ${KEY_AND_MODEL}`,
  }
  return {
    conditions: conditions.join(' AND '),
    parameters: [fromMs, toMs, ...values(where)],
    group: isByProperty(by) ? "'' AS account_id, key_id" : columns[by],
  }
}

/** The days of a span before and after those of another one. */
function daysOutside(span: Span, other: Span): Span[] {
  const { day } = BUCKET_MS
  return [
    { ...span, toMs: Math.min(span.toMs, other.fromMs - day) },
    { ...span, fromMs: Math.max(span.fromMs, other.toMs + day) },
  ].filter(({ fromMs, toMs }) => fromMs <= toMs)
}

function negative({ accountId, keyId, ...figures }: GroupUse): GroupUse {
  const { requests, failed, inputTokens, outputTokens, costNanoUsd, unpriced } = figures
  return {
    ...{ accountId, keyId, requests: -requests, failed: -failed, inputTokens: -inputTokens },
    ...{ outputTokens: -outputTokens, costNanoUsd: -costNanoUsd, unpriced: -unpriced },
    ...unitFigures((figure) => -figures[figure]),
  }
}

/** The uses by name, as `addUse` names them. */
function byName(uses: readonly GroupUse[]): Map<string, GroupUse> {
  return new Map(uses.map((use) => [`${use.accountId} ${use.keyId}`, use]))
}

function useIn(row: Row): GroupUse {
  const name = textIn(row, 'key_id')
  return {
    accountId: textIn(row, 'account_id'),
    keyId: name.startsWith(PROPERTY_MARK) ? name.slice(name.indexOf('=') + 1) : name,
    requests: numberIn(row, 'requests'),
    failed: numberIn(row, 'errors'),
    inputTokens: numberIn(row, 'input_tokens'),
    outputTokens: numberIn(row, 'output_tokens'),
    costNanoUsd: nanoUsdOf(textIn(row, COST)),
    unpriced: numberIn(row, 'unpriced'),
    ...unitsInRow(row),
  }
}

/** The time of the last use of each key of the account, or of each of these keys. */
export function lastUseOf(
  db: Connection,
  accountId: string,
  keyIds: readonly string[] | null,
): [keyId: string, atMs: number][] {
  const pending = bucketsOf('hours', MARK_MS, String(MAX_COUNTER))
  const last = prepared(
    db,
    `WITH RECURSIVE ${pending} SELECT max(at_ms) AS at_ms FROM (
       SELECT max(last_at_ms) AS at_ms FROM usage_days WHERE
       account_id = ?1 AND key_id = ?2 AND start_ms = (
         SELECT max(start_ms) FROM usage_days INDEXED BY usage_days_by_key WHERE
         account_id = ?1 AND key_id = ?2 AND ${ONE_KEY})
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
