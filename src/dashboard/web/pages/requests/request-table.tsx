/** The table of requests, for the page of requests and the overview. */
import type { RequestRow } from '../../../server/schema/schema.js'
import { count } from '../../format/number.js'
import { Absent, Ago, Money, Took } from '../../components/tables/figure.js'
import { Table, type Column } from '../../components/tables/table.js'

/** The status with a text for screen readers. */
export function Status({ row: { status, outcome } }: { readonly row: RequestRow }) {
  const tone = outcome === 'ok' ? 'good' : status === 499 ? 'warn' : 'bad'
  return (
    <span className={`status ${tone}`} title={outcome}>
      {status}
      {outcome === 'ok' ? null : (
        <span className="status-kind"> {outcome.replaceAll('_', ' ')}</span>
      )}
    </span>
  )
}

/** The mark before the tokens, and the words after them in the title. */
const UNCERTAIN = {
  reported: ['', ''],
  estimated: ['≈ ', ', estimated'],
  assumed: ['≤ ', ', assumed'],
  none: ['', ''],
} as const

function Tokens({ usage, source }: Pick<RequestRow, 'usage' | 'source'>) {
  const { input, output } = usage
  if (input === undefined && output === undefined) return <Absent />
  const [mark, words] = UNCERTAIN[source]
  const title = `${input ?? '?'} in, ${output ?? '?'} out${words}`
  return (
    <span title={title}>
      {mark}
      {count(input ?? 0)} · {count(output ?? 0)}
    </span>
  )
}

const WHEN: Column<RequestRow> = { id: 'when', head: 'When', cell: ({ atMs }) => <Ago ms={atMs} /> }

const COLUMNS: readonly Column<RequestRow>[] = [
  WHEN,
  { id: 'status', head: 'Status', cell: (row) => <Status row={row} /> },
  {
    id: 'model',
    head: 'Model',
    cell: ({ model }) => <span className="cell-name">{model}</span>,
    className: 'main-cell',
  },
  { id: 'upstream', head: 'Upstream', cell: ({ upstream }) => upstream ?? <Absent />, minor: true },
  { id: 'key', head: 'Key', cell: ({ keyName, keyId }) => keyName ?? keyId, minor: true },
  {
    id: 'tokens',
    head: 'Tokens in · out',
    cell: ({ usage, source }) => <Tokens usage={usage} source={source} />,
    numeric: true,
    minor: true,
  },
  {
    id: 'cost',
    head: 'Cost',
    cell: ({ costNanoUsd }) => <Money nano={costNanoUsd} />,
    numeric: true,
  },
  {
    id: 'first',
    head: 'First token',
    cell: ({ hops }) => <Took ms={hops.firstContent ?? null} />,
    numeric: true,
    minor: true,
  },
  {
    id: 'took',
    head: 'Took',
    cell: ({ durationMs }) => <Took ms={durationMs} />,
    numeric: true,
    extra: true,
  },
]

interface RequestTableProps {
  readonly rows: readonly RequestRow[]
  readonly open: (row: RequestRow) => void
}

/** Requests, newest first. A click opens the request. */
export function RequestTable({ rows, open }: RequestTableProps) {
  return (
    <Table
      caption="Requests, newest first"
      columns={COLUMNS}
      rows={rows}
      keyOf={({ requestId }) => requestId}
      open={open}
      nameOf={({ model, status }) => `request to ${model}, ${status}`}
    />
  )
}
