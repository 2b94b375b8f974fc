/**
 * Reads records and pages of lists; the same for every table of the engine.
 */
import { damaged } from '../store-errors.js'
import type { Page, PageQuery } from '../store.js'
import { numberIn, type Row, type Statements, type Value } from './driver.js'

const NAME = /^[^\0-\x20\x7f]{1,400}$/
const CURSOR = /^\d{1,15}$/

/**
 * Whether a record may have the name; the same rule in every engine. A driver may end a text at its first
 * NUL, so a client's text must be a name before it is looked up.
 */
export function isName(name: string): boolean {
  return NAME.test(name)
}

/** Reads a record. If it is damaged, throws an Error that contains `what` and no value of the record. */
export function intact<T>(what: string, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    throw damaged(what, cause instanceof Error ? cause.message : String(cause))
  }
}

/** The number of a query such as `SELECT count(*) AS n …`; 0 without a row. */
export function numberOf(row: Row | undefined): number {
  return row === undefined ? 0 : numberIn(row, 'n')
}

/** The rows of a list: a query that ends with its condition, and the values of its parameters. */
interface ListRows {
  readonly engine: Statements
  /** Selects `place`, the order of creation. */
  readonly sql: string
  readonly values: readonly Value[]
}

/** A page of a list. */
export function pageOf<Item>(
  { engine, sql, values }: ListRows,
  { order, after, limit }: PageQuery,
  itemOf: (row: Row) => Item,
): Page<Item> {
  if (after !== null && !CURSOR.test(after)) return { items: [], next: null }
  const isOldestFirst = order === 'oldest_first'
  const place = after === null ? (isOldestFirst ? 0 : Number.MAX_SAFE_INTEGER) : Number(after)
  const inOrder = isOldestFirst ? 'place > ? ORDER BY place' : 'place < ? ORDER BY place DESC'
  // One more row shows whether there is another page.
  const statement = engine.prepare(`${sql} AND ${inOrder} LIMIT ?`)
  const rows = statement.all(...values, place, limit + 1)
  const last = rows.length > limit ? rows[limit - 1] : undefined
  return {
    items: rows.slice(0, limit).map(itemOf),
    next: last === undefined ? null : String(numberIn(last, 'place')),
  }
}
