/** Columns that keys and accounts share: creation and recent usage. */
import { Count, Day, Money } from './figure.js'
import type { Column } from './table.js'

/** A row with a creation time. */
interface CreatedRow {
  readonly createdAtMs: number
}

/** A row with usage of the last 30 days. */
interface UsedRow {
  readonly requests: number
  readonly spendNanoUsd: number
  readonly unpricedRequests: number
}

/** The creation time. */
export const CREATED: Column<CreatedRow> = {
  id: 'created',
  head: 'Created',
  cell: ({ createdAtMs }) => <Day ms={createdAtMs} />,
  sort: ({ createdAtMs }) => createdAtMs,
  minor: true,
}

/** Requests and spend. */
export const RECENT_USE: readonly Column<UsedRow>[] = [
  {
    id: 'requests',
    head: '30 d requests',
    cell: ({ requests }) => <Count value={requests} unit="requests" />,
    sort: ({ requests }) => requests,
    numeric: true,
    minor: true,
  },
  {
    id: 'spend',
    head: '30 d spend',
    cell: ({ spendNanoUsd, unpricedRequests }) => (
      <Money nano={spendNanoUsd} unpriced={unpricedRequests} />
    ),
    sort: ({ spendNanoUsd }) => spendNanoUsd,
    numeric: true,
  },
]
