/** Comparison of upstreams, canaries and shadows, for administrators. */
import type { CanaryView, ProviderSide } from '../../server/schema/schema.js'
import { useResource } from '../api/cache.js'
import { percent } from '../format/number.js'
import { Loaded } from '../components/states.js'
import { DataTable, type Column } from '../components/data-table.js'
import { Absent, Ago, Count, Money, Took } from '../components/values.js'
import { setQuery, useLocation } from '../routing.js'
import { Block, Page } from '../shell/page.js'

const EVERY_MS = 10_000

const SPANS = [
  { hours: '1', label: 'last hour' },
  { hours: '24', label: 'last 24 hours' },
  { hours: '168', label: 'last 7 days' },
] as const

/** The page of providers. */
export function ProvidersPage() {
  const { query } = useLocation()
  const hours = SPANS.find((span) => span.hours === query.get('hours'))?.hours ?? '1'
  const resource = useResource('/providers', { hours }, { everyMs: EVERY_MS })
  return (
    <Page
      title="Providers"
      purpose="Upstreams compared: errors, time to first token, tokens and cost."
      action={<Span hours={hours} />}
    >
      <Loaded
        resource={resource}
        what="The comparison"
        holds="The command sluice compare shows the same figures."
      >
        {(data) => (
          <>
            <Canaries canaries={data.canaries} />
            <Block title="Shadows" note="the same requests, as clients got them and as copies">
              {data.shadows.length === 0 ? (
                <p className="soft">
                  No copied requests. Give a route <code>shadow</code> to copy some to another
                  upstream.
                </p>
              ) : (
                <DataTable
                  caption="Shadows"
                  columns={[PART, ...FIGURES]}
                  rows={data.shadows.flatMap(({ primary, shadow }) => [
                    { ...primary, part: 'client' },
                    { ...shadow, part: 'copy' },
                  ])}
                  keyOf={({ upstream, part }) => `${upstream} ${part}`}
                />
              )}
            </Block>
            <Block title="Upstreams" note={<Since fromMs={data.fromMs} />}>
              <DataTable
                caption="Upstreams"
                columns={[NAME, ...FIGURES]}
                rows={data.upstreams}
                keyOf={({ upstream }) => upstream}
                usualSort="-requests"
              />
            </Block>
          </>
        )}
      </Loaded>
    </Page>
  )
}

function Span({ hours }: { readonly hours: string }) {
  return (
    <label className="span">
      <span className="unseen">Time range</span>
      <select value={hours} onChange={(event) => setQuery({ hours: event.target.value })}>
        {SPANS.map((span) => (
          <option key={span.hours} value={span.hours}>
            {span.label}
          </option>
        ))}
      </select>
    </label>
  )
}

function Since({ fromMs }: { readonly fromMs: number }) {
  return (
    <>
      since <Ago ms={fromMs} />, at most the newest 10,000 requests
    </>
  )
}

function Canaries({ canaries }: { readonly canaries: readonly CanaryView[] | null }) {
  return (
    <Block title="Canaries" note="targets with abort, all workers together">
      {canaries === null ? (
        <p className="soft">Unknown: the process that reads the configuration does not respond.</p>
      ) : canaries.length === 0 ? (
        <p className="soft">
          None. Give a target <code>abort</code> to take it out of use when it fails too often.
        </p>
      ) : (
        <DataTable caption="Canaries" columns={CANARY} rows={canaries} keyOf={({ id }) => id} />
      )}
    </Block>
  )
}

function CanaryStatus({ canary }: { readonly canary: CanaryView }) {
  const { abortedAtMs, attempts, minRequests, weight } = canary
  if (abortedAtMs !== null) {
    return (
      <span className="status bad">
        aborted <Ago ms={abortedAtMs} />
      </span>
    )
  }
  if (weight === 0) return <span className="soft">weight 0</span>
  if (attempts < minRequests) {
    return (
      <span className="status warn">
        {attempts} of {minRequests} requests
      </span>
    )
  }
  return <span className="status good">in use</span>
}

const CANARY: readonly Column<CanaryView>[] = [
  {
    id: 'name',
    head: 'Canary',
    cell: ({ upstream, model }) => (
      <span className="cell-name">{model === null ? upstream : `${upstream}, ${model}`}</span>
    ),
    text: true,
  },
  { id: 'route', head: 'Route', cell: ({ route }) => <code>{route}</code>, extra: true },
  { id: 'state', head: 'State', cell: (canary) => <CanaryStatus canary={canary} /> },
  {
    id: 'share',
    head: 'Share',
    cell: (one) => percent(one.abortedAtMs === null ? one.percent / 100 : 0),
    numeric: true,
  },
  {
    id: 'failures',
    head: 'Failed',
    cell: ({ attempts, failures }) => `${failures} of ${attempts}`,
    numeric: true,
  },
  {
    id: 'limit',
    head: 'Aborted from',
    cell: ({ errorRate }) => percent(errorRate),
    numeric: true,
    minor: true,
  },
]

type Part = ProviderSide & { readonly part: string }

const NAME: Column<ProviderSide> = {
  id: 'name',
  head: 'Upstream',
  cell: ({ upstream }) => <span className="cell-name">{upstream}</span>,
  value: ({ upstream }) => upstream,
  text: true,
}

const PART: Column<Part> = {
  id: 'name',
  head: 'Upstream',
  cell: ({ upstream, part }) => (
    <span className="cell-name">
      {upstream} <span className="soft">{part}</span>
    </span>
  ),
  text: true,
}

const FIGURES: readonly Column<ProviderSide>[] = [
  {
    id: 'requests',
    head: 'Requests',
    cell: ({ requests }) => <Count value={requests} />,
    value: ({ requests }) => requests,
    numeric: true,
  },
  {
    id: 'errors',
    head: 'Errors',
    cell: ({ errors, errorRate }) =>
      errorRate === null ? (
        <Absent />
      ) : (
        <span title={`${errors} requests`}>{percent(errorRate)}</span>
      ),
    value: ({ errorRate }) => errorRate ?? -1,
    numeric: true,
  },
  {
    id: 'rejected',
    head: 'Rejected',
    cell: ({ rejected }) => <Count value={rejected} />,
    value: ({ rejected }) => rejected,
    numeric: true,
    minor: true,
  },
  {
    id: 'p50',
    head: 'First token p50',
    cell: ({ firstTokenP50Ms }) => <Took ms={firstTokenP50Ms} />,
    value: ({ firstTokenP50Ms }) => firstTokenP50Ms ?? -1,
    numeric: true,
    extra: true,
  },
  {
    id: 'p95',
    head: 'p95',
    cell: ({ firstTokenP95Ms }) => <Took ms={firstTokenP95Ms} />,
    value: ({ firstTokenP95Ms }) => firstTokenP95Ms ?? -1,
    numeric: true,
    minor: true,
  },
  {
    id: 'input',
    head: 'Tokens in',
    cell: ({ inputTokens }) => <Count value={inputTokens} unit="tokens" />,
    value: ({ inputTokens }) => inputTokens,
    numeric: true,
    minor: true,
  },
  {
    id: 'output',
    head: 'Tokens out',
    cell: ({ outputTokens }) => <Count value={outputTokens} unit="tokens" />,
    value: ({ outputTokens }) => outputTokens,
    numeric: true,
    minor: true,
  },
  {
    id: 'cost',
    head: 'Cost per request',
    cell: ({ requestNanoUsd }) => <Money nano={requestNanoUsd} />,
    value: ({ requestNanoUsd }) => requestNanoUsd ?? -1,
    numeric: true,
  },
]
