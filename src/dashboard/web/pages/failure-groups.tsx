/** Failures by upstream, kind and model, with their number, and a link to each group's requests. */
import type { FailuresReply } from '../../../control/dashboard/schema/schema.js'
import { useResource } from '../api/use-resource.js'
import { DataTable, type Column } from '../components/data-table.js'
import { Loaded, TableSkeleton } from '../components/loading-states.js'
import type { Range } from '../components/time-range.js'
import { Count, Time } from '../components/values.js'
import { CAUSE_NAMES, kindText } from '../format/failure-texts.js'
import { plural } from '../format/number.js'
import { Link } from '../routing.js'
import { Block } from '../shell/page.js'

type Group = FailuresReply['groups'][number]

/** The groups of failures in a range, of an account or of `all`. */
export function FailureGroups({ account, range }: { readonly account: string; readonly range: Range }) {
  const resource = useResource('/failures', { account, ...range.times }, { everyMs: range.everyMs })
  return (
    <Block title="Failures" note={`by upstream, kind and model, ${range.words}`}>
      <Loaded resource={resource} what="The failures" skeleton={<TableSkeleton rows={4} />}>
        {({ groups, requests, isPart, fromMs, toMs }) =>
          groups.length === 0 ? (
            <p className="soft">No failed requests in this time.</p>
          ) : (
            <>
              <DataTable
                caption="Failures by upstream, kind and model"
                columns={columnsOf(`account=${account}&from=${fromMs}&to=${toMs}`)}
                rows={groups}
                isPart
                keyOf={({ requestId }) => requestId}
              />
              <p className="pager soft">
                {isPart ? 'The newest ' : ''}
                {plural(requests, 'failed request')} in {plural(groups.length, 'group')}
              </p>
            </>
          )
        }
      </Loaded>
    </Block>
  )
}

/** `where`: the account and the times as the query of a link. */
function columnsOf(where: string): readonly Column<Group>[] {
  return [
    {
      id: 'kind',
      head: 'Failure',
      cell: (group) => (
        <span className="two-lines">
          <Link to={linkTo(group, where)} className="strong cut" title={kindText(group.outcome)}>
            {kindText(group.outcome)}
            {group.upstreamStatus === null ? '' : ` (${group.upstreamStatus})`}
          </Link>
          <span className="soft small cut">{group.cause === null ? '' : CAUSE_NAMES[group.cause]}</span>
        </span>
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
    { id: 'accounts', head: 'Accounts', cell: ({ accounts }) => accounts, numeric: true, minor: true },
    { id: 'first', head: 'First', cell: ({ firstMs }) => <Time ms={firstMs} />, minor: true },
    { id: 'last', head: 'Last', cell: ({ lastMs }) => <Time ms={lastMs} />, extra: true },
  ]
}

function linkTo({ upstream, outcome, model }: Group, where: string): string {
  const query = new URLSearchParams({ ...(upstream === null ? {} : { upstream }), outcome, model })
  return `/requests?${where}&${query.toString()}`
}
