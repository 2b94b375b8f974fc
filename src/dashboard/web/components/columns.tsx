/** Columns that several tables have: counts, money, durations, times and names. */
import type { ReactNode } from 'react'
import type { Column } from './data-table.js'
import { Absent, Count, Day, Money, Name, Time, Took } from './values.js'

type More<Row> = Partial<Column<Row>>

/** A column of numbers, sorted by the server's column of the same name. */
function numbers<Row>(
  id: string,
  head: string,
  value: (row: Row) => number | null,
  cell: (row: Row) => ReactNode,
): Column<Row> {
  return { id, head, cell, value, sort: id, numeric: true }
}

export function counts<Row>(
  id: string,
  head: string,
  pick: (row: Row) => number,
  more: More<Row> = {},
): Column<Row> {
  return { ...numbers(id, head, pick, (row) => <Count value={pick(row)} />), ...more }
}

/** Amounts in nano-dollars. */
export function amounts<Row>(
  id: string,
  head: string,
  pick: (row: Row) => number | null,
  more: More<Row> = {},
): Column<Row> {
  return { ...numbers(id, head, pick, (row) => <Money nano={pick(row)} />), ...more }
}

/** Durations in ms. */
export function durations<Row>(
  id: string,
  head: string,
  pick: (row: Row) => number | null,
  more: More<Row> = {},
): Column<Row> {
  return { ...numbers(id, head, pick, (row) => <Took ms={pick(row)} />), ...more }
}

/** Names, which share the remaining width and are cut. */
export function names<Row>(
  id: string,
  head: string,
  pick: (row: Row) => string | null,
  { strong = false, ...more }: More<Row> & { readonly strong?: boolean } = {},
): Column<Row> {
  const cell = (row: Row) => {
    const text = pick(row)
    return text === null ? <Absent /> : <Name text={text} strong={strong} />
  }
  return { id, head, cell, value: pick, sort: id, text: true, ...more }
}

/** Times, the newest first. */
export function times<Row>(
  id: string,
  head: string,
  pick: (row: Row) => number | null,
  more: More<Row> = {},
): Column<Row> {
  return {
    ...{ id, head, cell: (row: Row) => <Time ms={pick(row)} />, value: pick },
    ...{ sort: id, first: 'desc', ...more },
  }
}

/** A row with a creation time. */
interface CreatedRow {
  readonly createdAtMs: number
}

/** The creation time. */
export const CREATED: Column<CreatedRow> = times('createdAt', 'Created', (row) => row.createdAtMs, {
  cell: ({ createdAtMs }) => <Day ms={createdAtMs} />,
  minor: true,
})

/** A row with usage of the last 30 days. */
interface UsedRow {
  readonly requests: number
  readonly costNanoUsd: number
  readonly unpricedRequests: number
}

/** Requests and cost. */
export const RECENT_USE: readonly Column<UsedRow>[] = [
  counts('requests', '30 d requests', ({ requests }) => requests, { minor: true }),
  amounts('cost', '30 d cost', ({ costNanoUsd }) => costNanoUsd, {
    cell: (row) => <Money nano={row.costNanoUsd} unpriced={row.unpricedRequests} />,
  }),
]
