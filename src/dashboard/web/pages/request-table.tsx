/** Requests as rows of a table, and the drawer of the one that is named in the address. */
import type { ReactNode } from 'react'
import type { RequestRow } from '../../../control/dashboard/schema/schema.js'
import type { List } from '../api/use-resource.js'
import { amounts, durations, names, times } from '../components/columns.js'
import { Icon } from '../components/button.js'
import { DataTable, type Column } from '../components/data-table.js'
import { later } from '../components/later.js'
import { Absent, TwoLines } from '../components/values.js'
import { count } from '../format/number.js'
import { unitsText } from '../format/units.js'
import { setQuery, useLocation } from '../routing.js'
import { useScope, useTree } from '../shell/session.js'
import { modelOf, Status } from './request-status.js'

const RequestDrawer = later(async () => (await import('./request-drawer.js')).RequestDrawer)

/** The drawer of the request in the address, which can be shared; nothing without one. */
export function OpenedRequest() {
  const id = useLocation().query.get('request')
  if (id === null) return null
  return <RequestDrawer id={id} onClose={() => setQuery({ request: null })} />
}

/** The mark before the tokens, and the words after them in the title. */
const UNCERTAIN = {
  reported: ['', ''],
  estimated: ['≈ ', ', estimated'],
  assumed: ['≤ ', ', assumed'],
  none: ['', ''],
} as const

function Tokens({ usage, units, source }: Pick<RequestRow, 'usage' | 'units' | 'source'>) {
  const { input, output } = usage
  if (input === undefined && output === undefined) {
    return units === null ? <Absent /> : <span>{unitsText(units)}</span>
  }
  const [mark, words] = UNCERTAIN[source]
  const title = `${input ?? '?'} in, ${output ?? '?'} out${words}`
  return (
    <span title={title}>
      {mark}
      {count(input ?? 0)} · {count(output ?? 0)}
    </span>
  )
}

/** The model and its upstream; below them the account, where rows are of several, and the key. */
function requestColumn(withAccount: boolean): Column<RequestRow> {
  return {
    id: 'model',
    head: 'Request',
    cell: (row) => {
      const { upstream, accountName, accountId, keyName, keyId } = row
      const account = withAccount ? `${accountName ?? accountId} · ` : ''
      const model = modelOf(row)
      const text = upstream === null ? model : `${model} to ${upstream}`
      return (
        <TwoLines
          first={
            <span title={text}>
              <b>{model}</b>
              {upstream === null ? null : (
                <span className="soft">
                  {' '}
                  <Icon name="right" size={12} /> {upstream}
                </span>
              )}
            </span>
          }
          second={`${account}${keyName ?? keyId}`}
        />
      )
    },
    sort: 'model',
    text: true,
  }
}

const [WHEN, STATUS]: readonly [Column<RequestRow>, Column<RequestRow>] = [
  times('atMs', 'When', ({ atMs }) => atMs),
  {
    id: 'status',
    head: 'Status',
    cell: (row) => <Status row={row} />,
    sort: 'status',
    first: 'desc',
  },
]

const COLUMNS: readonly Column<RequestRow>[] = [
  // The request names them; alone, rows can be sorted by them.
  { ...names<RequestRow>('upstream', 'Upstream', ({ upstream }) => upstream), isOptional: true },
  { ...names<RequestRow>('key', 'Key', ({ keyName, keyId }) => keyName ?? keyId), isOptional: true },
  {
    id: 'tokens',
    head: 'Tokens in · out',
    cell: ({ usage, units, source }) => <Tokens usage={usage} units={units} source={source} />,
    sort: 'tokens',
    numeric: true,
    minor: true,
  },
  amounts('costNanoUsd', 'Cost', ({ costNanoUsd }) => costNanoUsd),
  durations('firstTokenMs', 'First token', ({ hops }) => hops.firstContent ?? null, {
    minor: true,
  }),
  durations('durationMs', 'Took', ({ durationMs }) => durationMs, { extra: true }),
]

const [OF_ONE, OF_ALL] = [false, true].map((isOfAll) => [WHEN, STATUS, requestColumn(isOfAll), ...COLUMNS])

interface RequestListProps {
  readonly list: List<RequestRow>
  readonly empty: ReactNode
}

interface RequestRowsProps {
  readonly rows: readonly RequestRow[]
}

/** A list of the server, or some rows, newest first. A click opens the request. */
export function RequestTable(props: RequestListProps | RequestRowsProps) {
  const { isTree } = useTree()
  const isOfAll = useScope() === 'all' || isTree
  const sort = 'list' in props ? props.list.sort : '-atMs'
  const shared = {
    caption: sort === '-atMs' ? 'Requests, newest first' : 'Requests',
    columns: (isOfAll ? OF_ALL : OF_ONE) ?? [],
    keyOf: ({ requestId }: RequestRow) => requestId,
    open: ({ requestId }: RequestRow) => setQuery({ request: requestId }),
    nameOf: (row: RequestRow) => `request to ${modelOf(row)}, ${row.status}`,
  }
  if ('rows' in props) return <DataTable {...shared} rows={props.rows} isPart />
  return <DataTable {...shared} {...props} unit="request" unaffected="Requests are still recorded." />
}
