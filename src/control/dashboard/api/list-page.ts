/**
 * The order of a list and the cursor of its pages, as the query of every sorted list has them: `sort=COLUMN`,
 * or `sort=-COLUMN` for descending, and `after`, which belongs to one order.
 */
import { cursorOf, placeIn } from '../../cursor.js'
import { GatewayError } from '../../../errors.js'
import type { SortedQuery } from '../../../store/account-and-key-lists.js'
import type { SortValue } from '../../../store/entry-order.js'

/** The members of a query that select a page. */
interface ListQuery {
  readonly sort?: string | undefined
  readonly after?: string | undefined
  readonly limit?: number | undefined
}

/** What a list offers. */
interface ListOptions<Column extends string> {
  readonly columns: readonly Column[]
  /** The order without `sort`: a column, or `-` and a column. */
  readonly usual: Column | `-${Column}`
  /** The length of a page without `limit`. */
  readonly limit: number
}

/** Former names of columns, which saved views and links have. */
const FORMER: Readonly<Record<string, string>> = { spend: 'cost', errors: 'failed' }

/** A page of a sorted list, and the text of its order for the cursor. */
interface ListOrder<Column extends string> extends Pick<
  SortedQuery<Column>,
  'column' | 'isDescending' | 'after' | 'limit'
> {
  readonly sort: string
}

/**
 * The order and page of a query; null for a text that is no cursor: nothing follows it. Throws
 * `malformed_request` for a column that the list does not have, and for the cursor of another order.
 */
export function orderOf<Column extends string>(
  query: ListQuery,
  { columns, usual, limit }: ListOptions<Column>,
): ListOrder<Column> | null {
  const sort = query.sort ?? usual
  const isDescending = sort.startsWith('-')
  const asked = isDescending ? sort.slice(1) : sort
  const name = FORMER[asked] ?? asked
  const column = columns.find((each) => each === name)
  if (column === undefined) {
    const message = `The list cannot be sorted by "${name.slice(0, 40)}". Use ${columns.join(', ')}, or - and one of them.`
    throw new GatewayError('malformed_request', message, { param: 'sort' })
  }
  const order = { column, isDescending, sort, limit: query.limit ?? limit }
  if (query.after === undefined) return { ...order, after: null }
  const cursor = readCursor(query.after)
  if (cursor === null) return null
  if (cursor.sort === sort) return { ...order, after: cursor.place }
  const message = `The page belongs to the order "${cursor.sort}". Read the first page of this order, without "after".`
  throw new GatewayError('malformed_request', message, { param: 'after' })
}

/** The cursor of the page after this place; null if there is none. */
export function cursorAt(sort: string, place: SortedQuery<string>['after']): string | null {
  if (place === null) return null
  return cursorOf(JSON.stringify([sort, place.value, place.id]))
}

interface Cursor {
  readonly sort: string
  readonly place: { readonly value: SortValue; readonly id: string }
}

function readCursor(text: string): Cursor | null {
  let parts: unknown
  try {
    parts = JSON.parse(placeIn(text) ?? '')
  } catch {
    return null
  }
  const [sort, value, id] = Array.isArray(parts) ? Array.from<unknown>(parts) : []
  if (typeof sort !== 'string' || typeof id !== 'string') return null
  if (value !== null && typeof value !== 'string' && typeof value !== 'number') return null
  return { sort, place: { value, id } }
}

// A page of a list whose rows are all in memory.

/** What a list offers. */
export interface SortedRows<Row, Column extends string> {
  readonly columns: Readonly<Record<Column, (row: Row) => SortValue>>
  /** The order without `sort`. */
  readonly usual: Column | `-${Column}`
  readonly idOf: (row: Row) => string
  /** The length of a page without `limit`. */
  readonly limit: number
}

/** The rows of a page and the cursor of the next one. Throws as `orderOf` does. */
export function pageOfRows<Row, Column extends string>(
  rows: readonly Row[],
  query: ListQuery,
  { columns, usual, idOf, limit }: SortedRows<Row, Column>,
): { readonly rows: Row[]; readonly next: string | null } {
  const names = Object.keys(columns) as Column[]
  const order = orderOf(query, { columns: names, usual, limit })
  if (order === null) return { rows: [], next: null }
  const { column, isDescending, after, sort } = order
  const places = rows.map((row) => ({ row, value: columns[column](row), id: idOf(row) }))
  places.sort((a, b) => compared(a, b, isDescending))
  const at = after === null ? 0 : places.findIndex((each) => compared(each, after, isDescending) > 0)
  const page = at === -1 ? [] : places.slice(at, at + order.limit)
  const isLast = at === -1 || at + order.limit >= places.length
  return {
    rows: page.map(({ row }) => row),
    next: isLast ? null : cursorAt(sort, page.at(-1) ?? null),
  }
}

interface Place {
  readonly value: SortValue
  readonly id: string
}

/** Unknown values come last in both directions; rows of the same value are in the order of their ids. */
function compared(a: Place, b: Place, isDescending: boolean): number {
  if (a.value === b.value) return a.id < b.id ? -1 : a.id > b.id ? 1 : 0
  if (a.value === null) return 1
  if (b.value === null) return -1
  return a.value < b.value === isDescending ? 1 : -1
}
