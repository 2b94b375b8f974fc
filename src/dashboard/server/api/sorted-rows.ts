/** A page of a list whose rows are all in memory. Pure. */
import type { SortValue } from '../../../store/entry-order.js'
import { cursorOf, orderOf, type ListQuery } from './list-page.js'

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
  const at =
    after === null ? 0 : places.findIndex((each) => compared(each, after, isDescending) > 0)
  const page = at === -1 ? [] : places.slice(at, at + order.limit)
  const isLast = at === -1 || at + order.limit >= places.length
  return {
    rows: page.map(({ row }) => row),
    next: isLast ? null : cursorOf(sort, page.at(-1) ?? null),
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
