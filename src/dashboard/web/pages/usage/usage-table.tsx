/** All groups of Usage as pages, with their change against the period before. A click drills. */
import type { GroupRow, UsageReply } from '../../../../control/dashboard/schema/schema.js'
import { urlOf } from '../../api/client.js'
import type { List } from '../../api/use-resource.js'
import { IconButton } from '../../components/button.js'
import { beforeTitle, Change, changeText } from '../../components/change.js'
import { coloursOf, seriesId } from '../../components/chart.js'
import { Swatch, type Colour } from '../../components/chart-series.js'
import { amounts, counts } from '../../components/columns.js'
import { DataTable, type Column } from '../../components/data-table.js'
import { Empty } from '../../components/loading-states.js'
import { Money, Name, TwoLines } from '../../components/values.js'
import { count, dollars, exactDollars, percent } from '../../format/number.js'
import { unitsText } from '../../format/units.js'
import { go, useLocation } from '../../routing.js'
import { nameOfGrouping, requestsFilter, useDrill, useOpenRow } from './drill.js'

interface TableProps {
  readonly list: List<GroupRow>
  readonly usage: UsageReply
  readonly group: string
}

/** The table below the chart. */
export function UsageTable({ list, usage, group }: TableProps) {
  const drill = useDrill()
  const { scope: account } = drill
  const { query } = useLocation()
  const { fromMs, toMs } = usage
  const open = useOpenRow({ ...drill, group }, usage)
  const [key, model, member] = [query.get('key'), query.get('model'), query.get('member')]
  return (
    <DataTable
      caption={`Usage by ${nameOfGrouping(group)}`}
      columns={columnsOf(usage, group)}
      list={list}
      unit="group"
      keyOf={({ id, accountId }) => `${id} ${accountId ?? ''}`}
      open={open}
      empty={<Empty title="Nothing matches">Change the search or the filters.</Empty>}
      actions={(row) => {
        const filter = requestsFilter(group, row)
        return filter === null ? null : (
          <IconButton
            icon="requests"
            label={`Requests of ${row.label}`}
            onClick={() =>
              go(urlOf('/requests', { account, key, model, member, ...filter, from: fromMs, to: toMs }))
            }
          />
        )
      }}
    />
  )
}

function columnsOf(usage: UsageReply, group: string): Column<GroupRow>[] {
  const name = nameOfGrouping(group)
  const whole = usage.total.costNanoUsd
  const colourOf = coloursOf(usage.groups.map(seriesId))
  const swatch = (id: string): Colour =>
    usage.groups.some((one) => seriesId(one) === id) ? colourOf(id) : '--others'
  return [
    {
      id: 'name',
      head: name.charAt(0).toUpperCase() + name.slice(1),
      cell: ({ id, label, accountName }) => (
        <TwoLines
          first={
            <b className="row line gap-4">
              <Swatch colour={swatch(id)} /> <Name text={label} />
            </b>
          }
          second={accountName ?? ''}
        />
      ),
      sort: 'name',
      text: true,
    },
    amounts('cost', 'Cost', ({ costNanoUsd }) => costNanoUsd, {
      cell: (row) => <Money nano={row.costNanoUsd} unpriced={row.unpricedRequests} />,
    }),
    {
      id: 'change',
      head: 'Change',
      cell: ({ costNanoUsd, previousCostNanoUsd: before }) => (
        <Change
          now={costNanoUsd}
          before={before}
          {...(before === null || usage.previous === null
            ? {}
            : { title: beforeTitle(exactDollars(before), usage.previous) })}
        />
      ),
      numeric: true,
    },
    {
      id: 'share',
      head: 'Share',
      cell: ({ costNanoUsd }) => percent(costNanoUsd / Math.max(whole, 1)),
      numeric: true,
      extra: true,
    },
    counts('requests', 'Requests', ({ requests }) => requests),
    {
      id: 'failed',
      head: 'Failed',
      cell: ({ requests, failed }) => (
        <span title={`${failed} of ${requests}`}>{percent(failed / Math.max(requests, 1))}</span>
      ),
      sort: 'failed',
      numeric: true,
      minor: true,
    },
    counts('inputTokens', 'Input', ({ inputTokens }) => inputTokens, { minor: true }),
    counts('outputTokens', 'Output', ({ outputTokens }) => outputTokens, { minor: true }),
    ...(usage.units === '' ? [] : [UNITS]),
    {
      id: 'perRequest',
      head: '$ / request',
      cell: ({ costNanoUsd, requests }) => <Money nano={costNanoUsd / Math.max(requests, 1)} />,
      numeric: true,
      minor: true,
    },
    {
      id: 'tokensPerRequest',
      head: 'Tokens / request',
      cell: ({ inputTokens, outputTokens, requests }) =>
        count((inputTokens + outputTokens) / Math.max(requests, 1)),
      numeric: true,
      minor: true,
    },
  ]
}

/** Shown if something in the range has units. */
const UNITS: Column<GroupRow> = {
  id: 'units',
  head: 'Units',
  cell: ({ units }) => unitsText(units),
  className: 'prose',
  minor: true,
}

/** Changes of the cost below these are not named. */
const NOTABLE = { share: 0.25, nanoUsd: 1e9 }

/** `Cost +214 %: search-reranker +$1,680`: the group whose cost changed most; null if nothing notable. */
export function moverText({ total, previous }: UsageReply, rows: readonly GroupRow[] | null): string | null {
  if (previous === null || rows === null || previous.total.costNanoUsd === 0) return null
  const change = total.costNanoUsd - previous.total.costNanoUsd
  const share = change / previous.total.costNanoUsd
  if (Math.abs(share) < NOTABLE.share || Math.abs(change) < NOTABLE.nanoUsd) return null
  const of = (row: GroupRow): number => row.costNanoUsd - (row.previousCostNanoUsd ?? row.costNanoUsd)
  const [first] = [...rows].sort((a, b) => Math.abs(of(b)) - Math.abs(of(a)))
  if (first === undefined || of(first) === 0) return null
  const signed = (value: number, text: string): string => `${value < 0 ? '−' : '+'}${text}`
  const whole = changeText(total.costNanoUsd, previous.total.costNanoUsd)
  return `Cost ${whole}: ${first.label} ${signed(of(first), dollars(Math.abs(of(first))))}`
}
