/** The columns that keys and accounts share: when they were made, and what they used of late. */
import { Count, Day, Money } from './figure.js'
import type { Column } from './table.js'

/** What was made at some time. */
interface Made {
  readonly createdAtMs: number
}

/** What was used in the last 30 days. */
interface Used {
  readonly requests: number
  readonly spendNanoUsd: number
  readonly unpricedRequests: number
}

/** When it was made. */
export const CREATED: Column<Made> = {
  id: 'created',
  head: 'Created',
  cell: ({ createdAtMs }) => <Day ms={createdAtMs} />,
  sort: ({ createdAtMs }) => createdAtMs,
  minor: true,
}

/** Its requests and its spend. */
export const RECENT_USE: readonly Column<Used>[] = [
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
