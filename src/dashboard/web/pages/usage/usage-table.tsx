/** The sums per model or key. A click filters the view by it. */
import type { UsageGroup, UsageReply } from '../../../server/schema/schema.js'
import { duration, percent } from '../../format/number.js'
import { Absent, Count, Money } from '../../components/tables/figure.js'
import { Swatch } from '../../components/charts/chart.js'
import type { Colour } from '../../components/charts/colours.js'
import { Table, type Column } from '../../components/tables/table.js'
import { go, setQuery } from '../../routing/location.js'
import { IconButton } from '../../components/actions/button.js'
import { Block } from '../../shell/page.js'
import { useScope, withScope } from '../../shell/shown-account.js'

interface UsageTableProps {
  readonly usage: UsageReply
  readonly group: 'model' | 'key'
  readonly colourOf: (id: string) => Colour
  readonly words: string
}

function columnsOf(group: string, colourOf: (id: string) => Colour): Column<UsageGroup>[] {
  return [
    {
      id: 'group',
      head: group === 'model' ? 'Model' : 'Key',
      cell: ({ id, label }) => (
        <span className="cell-name">
          <Swatch colour={colourOf(id)} /> {label}
        </span>
      ),
      sort: ({ label }) => label,
      className: 'main-cell',
    },
    number('Requests', ({ total }) => total.requests),
    number('Input', ({ total }) => total.inputTokens, true),
    number('Cached', ({ total }) => total.cachedTokens, true),
    number('Output', ({ total }) => total.outputTokens, true),
    number('Reasoning', ({ total }) => total.reasoningTokens, true),
    {
      id: 'errors',
      head: 'Errors',
      cell: ({ total }) => (
        <span title={`${total.errors} of ${total.requests}`}>
          {percent(total.errors / Math.max(total.requests, 1))}
        </span>
      ),
      sort: ({ total }) => total.errors / Math.max(total.requests, 1),
      numeric: true,
      minor: true,
    },
    {
      id: 'first',
      head: 'First token p95',
      cell: ({ total: { firstTokenP95Ms: ms } }) => (ms === null ? <Absent /> : duration(ms)),
      sort: ({ total }) => total.firstTokenP95Ms ?? 0,
      numeric: true,
      minor: true,
    },
    {
      id: 'spend',
      head: 'Spend',
      cell: ({ total }) => <Money nano={total.spendNanoUsd} unpriced={total.unpricedRequests} />,
      sort: ({ total }) => total.spendNanoUsd,
      numeric: true,
    },
  ]
}

function number(
  head: string,
  pick: (group: UsageGroup) => number,
  minor = false,
): Column<UsageGroup> {
  return {
    id: head,
    head,
    cell: (group) => <Count value={pick(group)} />,
    sort: pick,
    numeric: true,
    minor,
  }
}

/** A table of models or keys. */
export function UsageTable({ usage, group, colourOf, words }: UsageTableProps) {
  const scope = useScope()
  const { fromMs, toMs } = usage
  return (
    <Block title={group === 'model' ? 'By model' : 'By key'} note={words}>
      <Table
        caption={`Usage by ${group}`}
        columns={columnsOf(group, colourOf)}
        rows={usage.groups}
        keyOf={({ id }) => id}
        open={({ id }) => (id === 'other' ? undefined : setQuery({ [group]: id }))}
        actions={({ id, label }) =>
          id === 'other' ? null : (
            <IconButton
              icon="requests"
              label={`Requests of ${label}`}
              onClick={() =>
                go(withScope(`/requests?${group}=${id}&fromMs=${fromMs}&toMs=${toMs}`, scope))
              }
            />
          )
        }
      />
    </Block>
  )
}
