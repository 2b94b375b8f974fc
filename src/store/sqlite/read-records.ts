/**
 * Reads records and pages of lists; the same for every table of the engine.
 */
import { damaged } from '../errors.js'
import type { Page, PageQuery } from '../store.js'
import { numberIn, type Row, type Statement, type Value } from './driver.js'

const NAME = /^[^\0-\x20\x7f]{1,400}$/
const CURSOR = /^\d{1,15}$/

/**
 * Whether a record may have the name; the same rule in every engine. A driver may end a text at its first NUL, so a
 * client's text must be a name before it is looked up.
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

/** Statements for the rows after a place, in each order. Their last parameters are the place and the limit. */
export type PageStatements = Readonly<Record<PageQuery['order'], Statement>>

/** A page of a list whose rows have a `place`. `values` are the statement's first parameters. */
export function pageOf<Item>(
  statements: PageStatements,
  values: readonly Value[],
  { order, after, limit }: PageQuery,
  itemOf: (row: Row) => Item,
): Page<Item> {
  if (after !== null && !CURSOR.test(after)) return { items: [], next: null }
  const first = order === 'oldest_first' ? 0 : Number.MAX_SAFE_INTEGER
  const place = after === null ? first : Number(after)
  // One more row shows whether there is another page.
  const rows = statements[order].all(...values, place, limit + 1)
  const last = rows.length > limit ? rows[limit - 1] : undefined
  return {
    items: rows.slice(0, limit).map(itemOf),
    next: last === undefined ? null : String(numberIn(last, 'place')),
  }
}
