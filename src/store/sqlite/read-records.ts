/**
 * What the engine's tables have in common: names that may be kept, damaged records, pages of lists.
 */
import { damaged } from '../errors.js'
import type { Page, PageQuery } from '../store.js'
import { numberIn, type Row, type Statement, type Value } from './driver.js'

const NAME = /^[^\0-\x20\x7f]{1,400}$/
const CURSOR = /^\d{1,15}$/

/**
 * Whether something may be kept under the name; the rule of every engine. A driver may end a text at its first
 * NUL, so that what is looked up by a client's text must be a name.
 */
export function isName(name: string): boolean {
  return NAME.test(name)
}

/** Reads a record; throws an Error that names it if it is damaged, and none of its values. */
export function intact<T>(what: string, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    throw damaged(what, cause instanceof Error ? cause.message : String(cause))
  }
}

/** Rows behind a place, in either order; the parameters end with the place and the limit. */
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
  // One more shows whether there is another page.
  const rows = statements[order].all(...values, place, limit + 1)
  const last = rows.length > limit ? rows[limit - 1] : undefined
  return {
    items: rows.slice(0, limit).map(itemOf),
    next: last === undefined ? null : String(numberIn(last, 'place')),
  }
}
