/** Reads entries of the archive: pages, single ones, and all of a time. Erased ones are left out. */
import { HOUR_MS } from '../../base/time-units.js'
import { timeOfRequestId } from '../../http/request-id.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import { outcomesOf } from '../../errors.js'
import type { ArchiveProgress } from '../archive-feed.js'
import type { EntryPlace, OwnColumn } from '../entry-order.js'
import { beganAtMs } from '../records/correct-entry.js'
import { valuesOf, type EntryFilter, type EntryQuery, type OneOf } from '../usage-queries.js'
import { Sql, type ArchiveEngine } from './archive-engine.js'
import { ENTRY_COLUMNS, entryOfRow, numberIn, textIn } from './columns.js'

/** A slow read is cancelled after this time. */
export const READ_SECONDS = 10
/** Ids that a parameter of a statement has at most: ClickHouse takes them in the address of a request. */
export const MOST_IDS = 200
/** A page is looked for in windows of these lengths, so that a short one reads little. */
const WINDOWS_MS = [1, 6, 24, 7 * 24, 31 * 24].map((hours) => hours * HOUR_MS)

/** A place in the order of time. */
export interface TimePlace {
  readonly atMs: number
  /** Empty: before, or in a descending order after, all of that time. */
  readonly requestId: string
}

/** A page of entries in the order of time. */
interface PageQuery {
  /** Inclusive. */
  readonly fromMs: number
  /** Exclusive. */
  readonly toMs: number
  readonly after: TimePlace | null
  readonly isDescending: boolean
  readonly limit: number
  readonly filter: Omit<EntryQuery, 'after' | 'limit' | 'order' | 'fromMs' | 'toMs'>
}

/** A page of entries in another order. */
interface SortedQuery extends Pick<PageQuery, 'fromMs' | 'toMs' | 'filter' | 'isDescending' | 'limit'> {
  readonly column: OwnColumn
  readonly place: EntryPlace | null
}

/** The condition for entries after a place: unknown values are last, and the same ones newest first. */
function afterPlace(sql: Sql, value: string, isDescending: boolean, place: EntryPlace): string {
  const isOlder = `(at, request_id) < (${sql.time(place.atMs)}, ${sql.text(place.requestId)})`
  if (place.value === null) return `(${value} IS NULL AND ${isOlder})`
  const own = typeof place.value === 'number' ? sql.decimal(place.value) : sql.text(place.value)
  const beyond = `${value} ${isDescending ? '<' : '>'} ${own}`
  return `(${beyond} OR (${value} = ${own} AND ${isOlder}) OR ${value} IS NULL)`
}

/** The entries of one archive. Every method rejects with `ArchiveFailure`. */
export class ArchivedEntries {
  private readonly engine: ArchiveEngine

  constructor(engine: ArchiveEngine) {
    this.engine = engine
  }

  /** The next entries after a place; fewer than the limit: there are no more. */
  async page(query: PageQuery, { erased }: Pick<ArchiveProgress, 'erased'>): Promise<LedgerEntry[]> {
    const { fromMs, toMs, isDescending, after, limit } = query
    const found: LedgerEntry[] = []
    let [low, high] = [fromMs, toMs]
    if (after !== null && isDescending) high = Math.min(high, after.atMs + (after.requestId === '' ? 0 : 1))
    if (after !== null && !isDescending) low = Math.max(low, after.atMs)
    for (let at = 0; low < high && found.length < limit; at += 1) {
      const length = WINDOWS_MS[Math.min(at, WINDOWS_MS.length - 1)] ?? HOUR_MS
      const window = isDescending
        ? { fromMs: Math.max(low, high - length), toMs: high }
        : { fromMs: low, toMs: Math.min(high, low + length) }
      found.push(...(await this.window({ ...query, ...window, limit: limit - found.length }, erased)))
      if (isDescending) high = window.fromMs
      else low = window.toMs
    }
    return found
  }

  private async window(
    { fromMs, toMs, after, isDescending, limit, filter }: PageQuery,
    erased: ArchiveProgress['erased'],
  ): Promise<LedgerEntry[]> {
    const sql = new Sql(this.engine.is)
    const conditions = selected(sql, { fromMs, toMs, filter }, erased)
    if (after !== null && after.requestId !== '') {
      const sign = isDescending ? '<' : '>'
      conditions.push(`(at, request_id) ${sign} (${sql.time(after.atMs)}, ${sql.text(after.requestId)})`)
    }
    const direction = isDescending ? 'DESC' : 'ASC'
    return this.read(
      sql,
      `${conditions.join(' AND ')} ORDER BY at ${direction}, request_id ${direction} LIMIT ${limit}`,
    )
  }

  /** The next entries after a place of another order. */
  async sorted(
    { fromMs, toMs, filter, column, isDescending, place, limit }: SortedQuery,
    { erased }: Pick<ArchiveProgress, 'erased'>,
  ): Promise<LedgerEntry[]> {
    const { is } = this.engine
    const sql = new Sql(is)
    const value = is.sortValue(column)
    const conditions = [
      ...selected(sql, { fromMs, toMs, filter }, erased),
      ...(place === null ? [] : [afterPlace(sql, value, isDescending, place)]),
    ]
    const direction = isDescending ? 'DESC' : 'ASC'
    return this.read(
      sql,
      `${conditions.join(' AND ')}
       ORDER BY ${value} ${direction} NULLS LAST, at DESC, request_id DESC LIMIT ${limit}`,
    )
  }

  /** The ids of the keys or accounts that have entries of a filter in a time. */
  async owners(
    column: 'key' | 'account',
    { fromMs, toMs, filter }: Pick<PageQuery, 'fromMs' | 'toMs' | 'filter'>,
    { erased }: Pick<ArchiveProgress, 'erased'>,
  ): Promise<string[]> {
    const sql = new Sql(this.engine.is)
    const conditions = selected(sql, { fromMs, toMs, filter }, erased)
    // Earlier versions of an entry have the same owner.
    const rows = await this.engine.query(
      `SELECT DISTINCT ${column}_id AS owner FROM ${this.table} WHERE ${conditions.join(' AND ')}`,
      sql.parameters,
      READ_SECONDS,
    )
    return rows.map((row) => textIn(row, 'owner'))
  }

  /** Null if there is none, or it belongs to another account. */
  async entry(
    accountId: string | null,
    requestId: string,
    { erased }: Pick<ArchiveProgress, 'erased'>,
  ): Promise<LedgerEntry | null> {
    const sql = new Sql(this.engine.is)
    const idMs = timeOfRequestId(requestId)
    const near =
      idMs === null ? [] : [`at >= ${sql.time(idMs - HOUR_MS)}`, `at < ${sql.time(idMs + HOUR_MS)}`]
    const own = accountId === null ? [] : [`account_id = ${sql.text(accountId)}`]
    const conditions = [...near, ...own, ...leftOut(sql, erased), `request_id = ${sql.text(requestId)}`]
    const [found = null] = await this.read(sql, `${conditions.join(' AND ')} LIMIT 1`)
    return found
  }

  /** Those of these requests that began at about these times, by request id. */
  async ofRequests(
    requests: readonly Pick<LedgerEntry, 'requestId' | 'atMs'>[],
  ): Promise<ReadonlyMap<string, LedgerEntry>> {
    const found = new Map<string, LedgerEntry>()
    for (let from = 0; from < requests.length; from += MOST_IDS) {
      const some = requests.slice(from, from + MOST_IDS)
      const times = some.map(beganAtMs)
      const sql = new Sql(this.engine.is)
      const range = [
        `at >= ${sql.time(Math.min(...times) - HOUR_MS)}`,
        `at < ${sql.time(Math.max(...times) + HOUR_MS)}`,
      ]
      const ids = sql.texts(some.map(({ requestId }) => requestId))
      const conditions = [...range, this.engine.is.isOneOf('request_id', ids)]
      for (const entry of await this.read(sql, conditions.join(' AND '))) found.set(entry.requestId, entry)
    }
    return found
  }

  /** The time of the first entry; null if there is none. */
  async oldestMs(): Promise<number | null> {
    const { is } = this.engine
    // Both engines have the least time of each partition at hand.
    const sql = `SELECT ${is.millis('min(at)')} AS first FROM ${this.table}`
    const [row] = await this.engine.query(sql, [], READ_SECONDS)
    // Without rows it is NULL, or in ClickHouse 1970.
    return numberIn(row, 'first') || null
  }

  /** The table itself, with all versions of entries. */
  private get table(): string {
    return this.engine.is.entries.split(' ')[0] ?? ''
  }

  private async read(sql: Sql, rest: string): Promise<LedgerEntry[]> {
    const { is } = this.engine
    const columns = ENTRY_COLUMNS.map(({ name }) => is.quoted(name)).join(', ')
    const rows = await this.engine.query(
      `SELECT ${is.millis('at')} AS at_ms, ${columns} FROM ${is.entries} WHERE ${rest}`,
      sql.parameters,
      READ_SECONDS,
    )
    return rows.map(entryOfRow)
  }
}

/** The conditions of a time and a filter, without erased entries. */
function selected(
  sql: Sql,
  { fromMs, toMs, filter }: Pick<PageQuery, 'fromMs' | 'toMs' | 'filter'>,
  erased: ArchiveProgress['erased'],
): string[] {
  const times = [`at >= ${sql.time(fromMs)}`, `at < ${sql.time(toMs)}`]
  return [...times, ...filterOf(sql, filter), ...leftOut(sql, erased)]
}

/** Conditions by which erased entries are left out before the database has removed them. */
export function leftOut(sql: Sql, erased: ArchiveProgress['erased']): string[] {
  return erased.map(({ accountId, untilMs }) => {
    return `NOT (account_id = ${sql.text(accountId)} AND at < ${sql.time(untilMs)})`
  })
}

/** The conditions of a filter. */
function filterOf(sql: Sql, filter: Omit<EntryFilter, 'accountId'> & { accountId: string | null }): string[] {
  const { is } = sql
  const { failed, accountId, cause, label, dimension, within } = filter
  const one = (column: string, wanted: OneOf<string> | undefined): string[] => {
    return wanted === undefined ? [] : [is.isOneOf(column, sql.texts(valuesOf(wanted)))]
  }
  const { status } = filter
  const causes = cause === undefined ? undefined : valuesOf(cause).flatMap(outcomesOf)
  return [
    ...(accountId === null ? [] : [`account_id = ${sql.text(accountId)}`]),
    ...one('key_id', filter.keyId),
    ...one('model', filter.model),
    ...one('model_asked', filter.modelAsked),
    ...one('upstream', filter.upstream),
    ...(status === undefined
      ? []
      : [
          `status IN (${valuesOf(status)
            .map((each) => sql.number(each))
            .join(', ')})`,
        ]),
    ...(failed === undefined ? [] : [`outcome ${failed ? '<>' : '='} 'ok'`]),
    ...one('outcome', filter.outcome),
    ...one('outcome', causes),
    ...one('ingress', filter.ingress),
    ...(label === undefined ? [] : [is.hasPair('labels', sql.texts(valuesOf(label)))]),
    ...(dimension === undefined ? [] : [is.hasPair('dimensions', sql.texts(valuesOf(dimension)))]),
    ...one('program', filter.program),
    ...one(is.quoted('user'), filter.user),
    ...one('client_request_id', filter.clientRequestId),
    ...one('batch_id', filter.batch),
    ...(within === undefined
      ? []
      : [`(account_id = ${sql.text(within.accountId)} OR ${below(sql, within)})`]),
  ]
}

/** The last name of a path is that of the entry's own account, which has another id. */
function below(sql: Sql, { name, sinceMs = 0 }: NonNullable<EntryFilter['within']>): string {
  return `(at >= ${sql.time(sinceMs)} AND ${sql.is.isBelow(sql.text(name))})`
}
