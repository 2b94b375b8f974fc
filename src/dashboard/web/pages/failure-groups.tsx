/** Failures by upstream, kind and model, with their number, and a link to each group's requests. */
import type { ReactNode } from 'react'
import type { FailuresReply } from '../../../control/dashboard/schema/schema.js'
import { urlOf, type Query } from '../api/client.js'
import { useResource } from '../api/use-resource.js'
import { DataTable, type Column } from '../components/data-table.js'
import { Loaded, TableSkeleton } from '../components/loading-states.js'
import { Count, Time, TwoLines } from '../components/values.js'
import { CAUSE_NAMES, kindText } from '../format/failure-texts.js'
import { percent, plural } from '../format/number.js'
import { Link } from '../routing.js'

type Group = FailuresReply['groups'][number]

interface GroupsProps {
  /** The query of the requests. */
  readonly query: Query
  /** The same filters in an address of the page Requests. */
  readonly address: Query
  readonly everyMs?: number | undefined
  /** Shown without failures. */
  readonly empty?: ReactNode
}

/** The groups of the failures among some requests. */
export function FailureGroups({ query, address, everyMs, empty = NO_FAILURES }: GroupsProps) {
  const resource = useResource('/failures', query, { everyMs })
  return (
    <Loaded resource={resource} what="The failures" skeleton={<TableSkeleton rows={4} />}>
      {(reply) => (reply.groups.length === 0 ? empty : <FailureTable reply={reply} address={address} />)}
    </Loaded>
  )
}

interface TableProps extends Pick<GroupsProps, 'address'> {
  readonly reply: FailuresReply
  /** Only this number of groups, the largest. */
  readonly most?: number
}

/** A table of groups; each leads to its requests. */
export function FailureTable({ reply, address, most }: TableProps) {
  const { groups, requests, isPart, fromMs, toMs } = reply
  return (
    <div className="list">
      <DataTable
        caption="Failures by upstream, kind and model"
        columns={columnsOf({ ...address, range: null, from: fromMs, to: toMs }, requests)}
        rows={groups.slice(0, most)}
        isPart
        keyOf={({ requestId }) => requestId}
      />
      <p className="pager soft">
        {isPart ? 'The newest ' : ''}
        {plural(requests, 'failed request')} in {plural(groups.length, 'group')}
      </p>
    </div>
  )
}

const NO_FAILURES = <p className="soft">No failed requests in this time.</p>

/** `where`: the filters of a link; `all`: the number of all failures. */
function columnsOf(where: Query, all: number): readonly Column<Group>[] {
  return [
    {
      id: 'kind',
      head: 'Failure',
      cell: (group) => (
        <TwoLines
          first={
            <Link to={linkTo(group, where)} className="strong" title={kindText(group.outcome)}>
              {kindText(group.outcome)}
              {group.upstreamStatus === null ? '' : ` (${group.upstreamStatus})`}
            </Link>
          }
          second={group.cause === null ? '' : CAUSE_NAMES[group.cause]}
        />
      ),
      text: true,
    },
    { id: 'upstream', head: 'Upstream', cell: ({ upstream }) => upstream ?? '–' },
    { id: 'model', head: 'Model', cell: ({ model }) => model, extra: true },
    {
      id: 'requests',
      head: 'Requests',
      cell: ({ requests }) => <Count value={requests} unit="requests" />,
      numeric: true,
    },
    {
      id: 'share',
      head: 'Share',
      cell: ({ requests }) => percent(requests / Math.max(all, 1)),
      numeric: true,
      minor: true,
    },
    { id: 'accounts', head: 'Accounts', cell: ({ accounts }) => accounts, numeric: true, minor: true },
    { id: 'first', head: 'First', cell: ({ firstMs }) => <Time ms={firstMs} />, minor: true },
    { id: 'last', head: 'Last', cell: ({ lastMs }) => <Time ms={lastMs} />, extra: true },
  ]
}

function linkTo({ upstream, outcome, model }: Group, where: Query): string {
  return urlOf('/requests', { ...where, group: null, upstream, outcome, model })
}
