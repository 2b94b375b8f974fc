/** Failures by upstream, kind and model, with their number, and a link to each group's requests. */
import type { FailuresReply } from '../../server/schema/schema.js'
import { useResource } from '../api/use-resource.js'
import { DataTable, type Column } from '../components/data-table.js'
import { Filter } from '../components/form.js'
import { Loaded, TableSkeleton } from '../components/loading-states.js'
import { Count, Time } from '../components/values.js'
import { CAUSE_NAMES, kindText } from '../format/failure-texts.js'
import { plural } from '../format/number.js'
import { Link, setQuery, useLocation } from '../routing.js'
import { useNow } from '../shell/clock.js'
import { Block } from '../shell/page.js'

const HOUR_MS = 3_600_000
const EVERY_MS = 15_000
/** The start of a range moves in steps, so that the list does not reload with each tick of the clock. */
const STEP_MS = 60_000
const RANGES = [
  { value: '1h', label: 'last hour', spanMs: HOUR_MS },
  { value: '24h', label: 'last 24 hours', spanMs: 24 * HOUR_MS },
  { value: '7d', label: 'last 7 days', spanMs: 168 * HOUR_MS },
] as const

type Group = FailuresReply['groups'][number]

/** The groups of failures in a range that the reader chooses; `account` null: that of the page. */
export function FailureGroups({ account }: { readonly account: string | null }) {
  const { query } = useLocation()
  const now = Math.floor(useNow() / STEP_MS) * STEP_MS
  const range = RANGES.find(({ value }) => value === query.get('failures')) ?? RANGES[1]
  const fromMs = now - range.spanMs
  const resource = useResource('/failures', { account, fromMs }, { everyMs: EVERY_MS })
  return (
    <Block
      title="Failures"
      note="by upstream, kind and model"
      action={
        <Filter
          label="Time of failures"
          value={range.value}
          options={RANGES}
          onChange={(value) => setQuery({ failures: value }, { replace: true })}
        />
      }
    >
      <Loaded resource={resource} what="The failures" skeleton={<TableSkeleton rows={4} />}>
        {({ groups, requests, isPart }) =>
          groups.length === 0 ? (
            <p className="soft">No failed requests in the {range.label}.</p>
          ) : (
            <>
              <DataTable
                caption="Failures by upstream, kind and model"
                columns={columnsOf(account, fromMs)}
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

function columnsOf(account: string | null, fromMs: number): readonly Column<Group>[] {
  return [
    {
      id: 'kind',
      head: 'Failure',
      cell: (group) => (
        <span className="two-lines">
          <Link to={linkTo(group, account, fromMs)} className="strong cut" title={kindText(group.outcome)}>
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

function linkTo({ upstream, outcome, model }: Group, account: string | null, fromMs: number): string {
  const query = new URLSearchParams({
    ...(account === null ? {} : { account }),
    ...(upstream === null ? {} : { upstream }),
    ...{ outcome, model, since: 'custom', fromMs: String(fromMs) },
  })
  return `/requests?${query.toString()}`
}
