/** Sorts rows in memory, and cuts pages of them: `sort=COLUMN`, or `sort=-COLUMN` for descending. Pure. */
import { GatewayError } from '../../errors.js'

/** A value of a column; null is unknown, and comes last in both directions. */
type Value = string | number | null

/** The members of a query that select a page. */
export interface PageQuery {
  readonly sort?: string | undefined
  readonly after?: string | undefined
  readonly limit?: number | undefined
}

/** What a list offers. */
export interface SortedList<Row, Column extends string> {
  readonly columns: Readonly<Record<Column, (row: Row) => Value>>
  /** The order without `sort`. */
  readonly usual: Column | `-${Column}`
  readonly idOf: (row: Row) => string
  /** The length of a page without `limit`. */
  readonly limit: number
}

/** The column of the order. Throws `malformed_request` if the list does not have it. */
export function columnOf<Column extends string>(
  sort: string,
  columns: Readonly<Record<Column, unknown>>,
): { readonly column: Column; readonly sign: 1 | -1 } {
  const name = sort.startsWith('-') ? sort.slice(1) : sort
  const names = Object.keys(columns) as Column[]
  const column = names.find((each) => each === name)
  if (column !== undefined) return { column, sign: sort.startsWith('-') ? -1 : 1 }
  const message = `The list cannot be sorted by "${name.slice(0, 40)}". Use ${names.join(', ')}, or - and one of them.`
  throw new GatewayError('malformed_request', message, { param: 'sort' })
}

/**
 * A page of the rows and the cursor of the next one. Throws `malformed_request` for a column that the list
 * does not have, and for the cursor of another order.
 */
export function pageOfRows<Row, Column extends string>(
  rows: readonly Row[],
  query: PageQuery,
  { columns, usual, idOf, limit: usualLimit }: SortedList<Row, Column>,
): { readonly rows: Row[]; readonly next: string | null } {
  const sort = query.sort ?? usual
  const { column, sign } = columnOf(sort, columns)
  const limit = query.limit ?? usualLimit
  const keyed = rows.map((row) => ({ row, value: columns[column](row), id: idOf(row) }))
  keyed.sort((a, b) => order(a, b, sign))
  const after = query.after === undefined ? null : placeIn(query.after, sort)
  const first = after === null ? 0 : keyed.findIndex((each) => order(each, after, sign) > 0)
  const page = first === -1 ? [] : keyed.slice(first, first + limit)
  const last = page.at(-1)
  const hasMore = first !== -1 && first + limit < keyed.length && last !== undefined
  return {
    rows: page.map(({ row }) => row),
    next: hasMore ? cursorOf(sort, last) : null,
  }
}

interface Place {
  readonly value: Value
  readonly id: string
}

function order(a: Place, b: Place, sign: 1 | -1): number {
  return compared(a.value, b.value, sign) || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)
}

function compared(a: Value, b: Value, sign: 1 | -1): number {
  if (a === b) return 0
  if (a === null) return 1
  if (b === null) return -1
  return (a < b ? -1 : 1) * sign
}

function cursorOf(sort: string, { value, id }: Place): string {
  return Buffer.from(JSON.stringify([sort, value, id])).toString('base64url')
}

function placeIn(cursor: string, sort: string): Place {
  let parts: unknown
  try {
    parts = JSON.parse(Buffer.from(cursor, 'base64url').toString())
  } catch {
    parts = null
  }
  const [of, value, id]: unknown[] = Array.isArray(parts) ? parts : []
  const isValue = value === null || typeof value === 'string' || typeof value === 'number'
  if (of === sort && isValue && typeof id === 'string') return { value, id }
  const message =
    'The page belongs to another order. Read the first page of this order, without "after".'
  throw new GatewayError('malformed_request', message, { param: 'after' })
}
