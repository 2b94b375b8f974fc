/**
 * Health of upstreams and recent failures, for administrators: whether failures come from a provider or the
 * gateway.
 */
import type {
  Cause,
  ConfigState,
  HealthCell,
  OperationsReply,
  UpstreamState,
} from '../../../control/dashboard/schema/schema.js'
import { urlOf, type Query } from '../api/client.js'
import { useResource } from '../api/use-resource.js'
import { CAUSE_NAMES, kindText } from '../format/failure-texts.js'
import { bytesText, duration, percent, plural } from '../format/number.js'
import { clockTime, DAY_MS, HOUR_MS, MINUTE_MS } from '../format/time.js'
import { Changes, Fact, Facts } from '../components/facts.js'
import { DataTable, type Column } from '../components/data-table.js'
import { RangePicker } from '../components/range-picker.js'
import { useRange } from '../components/time-range.js'
import { Absent, Ago, Took } from '../components/values.js'
import { Pulse, Loaded } from '../components/loading-states.js'
import { Link } from '../routing.js'
import { Block, Page } from '../shell/page.js'
import { useSession } from '../shell/session.js'
import { FailureGroups } from './failure-groups.js'

const EVERY_MS = 2_000

export function OperationsPage() {
  const { grafanaUrl } = useSession().session
  const resource = useResource('/operations', {}, { everyMs: EVERY_MS })
  const range = useRange('24h')
  return (
    <Page
      title="Operations"
      purpose="Is it us or the provider? Health of each upstream, outages, failures, and the configuration in force."
      action={
        <>
          <Pulse on of={[resource]} />
          {grafanaUrl === null ? null : (
            <a className="button plain" href={grafanaUrl} target="_blank" rel="noreferrer">
              Open Grafana
            </a>
          )}
        </>
      }
      filters={<RangePicker range={range} />}
    >
      <Loaded
        resource={resource}
        what="The state of the gateway"
        unaffected="Requests are not affected. See /readyz on the operations port."
      >
        {(data) => (
          <>
            <Upstreams upstreams={data.upstreams} />
            <Block title="Failures" note={`by upstream, kind and model, ${range.words}`}>
              <FailureGroups
                query={{ account: 'all', ...range.times }}
                address={{ account: 'all' }}
                everyMs={range.everyMs}
              />
            </Block>
            <History />
            <Config config={data.config} />
            <LedgerMemory memory={data.ledgerMemory} />
            <Archive archive={data.archive} />
          </>
        )}
      </Loaded>
    </Page>
  )
}

function Upstreams({ upstreams }: { readonly upstreams: readonly UpstreamState[] }) {
  return (
    <>
      <Block title="Upstreams" note="last 5 minutes; in flight: now">
        <DataTable caption="Upstreams" columns={COLUMNS} rows={upstreams} keyOf={({ name }) => name} />
        <p className="soft note-line">
          Only failures of the provider count for the health: degraded from 5 % and three failures on, failing
          from 25 % and five. Refusals by limits, failures of the gateway and failures of clients have columns
          of their own.
        </p>
      </Block>
      <Block title="Retries and fallbacks" note="last 5 minutes">
        <DataTable
          caption="Retries and fallbacks"
          columns={RESILIENCE}
          rows={upstreams}
          keyOf={({ name }) => name}
        />
      </Block>
    </>
  )
}

const HISTORY_EVERY_MS = 30_000
const STATES = { healthy: 'ok', degraded: 'degraded', failing: 'failing', idle: 'no requests' } as const

/** The last 24 hours of each upstream by the hour, and the outages in them. */
function History() {
  const { data } = useResource('/incidents', { history: 'true' }, { everyMs: HISTORY_EVERY_MS })
  const history = data?.history ?? null
  if (history === null) return null
  const { rows, past } = history
  return (
    <Block title="Last 24 hours" note="requests that failed at the provider or in the gateway, by the hour">
      <ul className="history panel">
        {rows.map(({ upstream, cells }) => (
          <li key={upstream}>
            <span className="cut strong" title={upstream}>
              {upstream}
            </span>
            <span className="cells" role="group" aria-label={cellsText(upstream, cells)}>
              {cells.map(({ fromMs, requests, failed, state }) => (
                <Link
                  key={fromMs}
                  tabIndex={-1}
                  className={`cell ${state}`}
                  title={`${clockTime(fromMs)}: ${STATES[state]}, ${failed} of ${requests} failed`}
                  aria-label={`${upstream} at ${clockTime(fromMs)}: ${STATES[state]}`}
                  to={requestsOf(upstream, { from: fromMs, to: fromMs + HOUR_MS })}
                />
              ))}
            </span>
          </li>
        ))}
      </ul>
      {past.length === 0 ? (
        <p className="soft">No outage in the last 24 hours.</p>
      ) : (
        <ul className="stack">
          {past.map(({ upstream, fromMs, toMs, requests }) => (
            <li key={`${upstream} ${fromMs}`}>
              <b>{upstream}</b> was out from {clockTime(fromMs)} for {duration(toMs - fromMs)}:{' '}
              <Link to={requestsOf(upstream, { outcome: 'failed', from: fromMs, to: toMs + 1 })}>
                {plural(requests, 'request')} failed
              </Link>
            </li>
          ))}
        </ul>
      )}
    </Block>
  )
}

function cellsText(upstream: string, cells: readonly HealthCell[]): string {
  const bad = cells.filter(({ state }) => state === 'failing' || state === 'degraded')
  return bad.length === 0
    ? `${upstream}: no hour with many failures`
    : `${upstream}: ${bad.map(({ fromMs, state }) => `${STATES[state]} at ${clockTime(fromMs)}`).join(', ')}`
}

/** How long entries stay in the memory of the store. */
function LedgerMemory({ memory }: { readonly memory: OperationsReply['ledgerMemory'] }) {
  if (memory === null) return null
  const { usedBytes, maxBytes, fullInMs, oldestAtMs } = memory
  const of = maxBytes === null ? '' : ` of ${bytesText(maxBytes)}`
  const days = fullInMs === null ? null : fullInMs / DAY_MS
  return (
    <Block title="Ledger entries in Redis">
      <p className={days !== null && days < 3 ? 'status warn' : 'soft'}>
        {bytesText(usedBytes)}
        {of}
        {oldestAtMs === null ? null : (
          <>
            , the oldest <Ago ms={oldestAtMs} />
          </>
        )}
        {days === null
          ? '.'
          : days === 0
            ? '. The part of memory is full: the oldest leave before keep_days. Sums stay.'
            : `. Full in ${days < 2 ? `${Math.round(days * 24)} hours` : `${Math.round(days)} days`} at this rate; then the oldest leave. Sums stay.`}
      </p>
    </Block>
  )
}

/** A longer lag is a warning. */
const LONG_LAG_MS = 900_000

/** What waits for the archive. */
function Archive({ archive }: { readonly archive: OperationsReply['archive'] }) {
  if (archive === null) return null
  const { rowsWaiting, lagMs, hotFromMs } = archive
  const minutes = Math.round(lagMs / MINUTE_MS)
  return (
    <Block title="Archive">
      <p className={lagMs > LONG_LAG_MS ? 'status warn' : 'soft'}>
        {rowsWaiting === 0
          ? 'No entries wait for the archive'
          : `${rowsWaiting.toLocaleString('en-US')} entries wait for the archive, the oldest for ${minutes < 1 ? 'less than a minute' : `${minutes} minutes`}`}
        {hotFromMs === null ? (
          '.'
        ) : (
          <>
            . Older ones than <Ago ms={hotFromMs} /> are read from it.
          </>
        )}
      </p>
    </Block>
  )
}

const HEALTHS = { healthy: 'good', degraded: 'warn', failing: 'bad', idle: 'soft' } as const

/** What the upstream lacks to be used, and its health in words with the share behind it. */
function Health({ upstream }: { readonly upstream: UpstreamState }) {
  const { name, configured, apiKeySource, credentials, failureShare, failures, health } = upstream
  if (!configured) {
    return (
      <span className="status warn">no API key{apiKeySource === null ? '' : `: set ${apiKeySource}`}</span>
    )
  }
  if (credentials === 'invalid') return <span className="status bad">no valid credentials</span>
  if (credentials === 'failing') {
    return <span className="status warn">credentials cannot be refreshed</span>
  }
  const of = `${percent(failureShare)} of the attempts failed (${failures.provider})`
  if (health === 'idle') return <span className="soft">idle</span>
  if (health === 'healthy') {
    return (
      <span className="status good" title={of}>
        healthy
      </span>
    )
  }
  return (
    <>
      <span className={`status ${HEALTHS[health]}`} title={of}>
        {health}
      </span>{' '}
      <Link className="soft" to={requestsOf(name, { cause: 'provider', range: '15m' })}>
        {percent(failureShare)} failed
      </Link>
    </>
  )
}

function Kinds({ kinds }: Pick<UpstreamState, 'kinds'>) {
  if (kinds.length === 0) return <span className="soft">none</span>
  return (
    <>
      {kinds.map(({ kind, count, lastAtMs }) => (
        <span key={kind} className="tag" title={`last at ${clockTime(lastAtMs)}`}>
          {count} × {kindText(kind)}
        </span>
      ))}
    </>
  )
}

/** The address of the requests of an upstream, of all accounts. */
function requestsOf(upstream: string, filters: Query = {}): string {
  return urlOf('/requests', { account: 'all', upstream, ...filters })
}

function rate(value: number): string {
  return value === 0 ? '0' : value.toFixed(value < 10 ? 1 : 0)
}

const NAME: Column<UpstreamState> = {
  id: 'name',
  head: 'Upstream',
  cell: ({ name, origin, platform, preset, dialect }) => (
    <Link
      to={requestsOf(name)}
      title={`Requests of ${origin}, ${platform ?? preset ?? dialect}`}
      className="strong"
    >
      {name}
    </Link>
  ),
  text: true,
}

const FAILURE_HEADS: Readonly<Record<Cause, string>> = {
  provider: 'Provider failures',
  gateway: 'Gateway failures',
  limits: 'Limit refusals',
  client: 'Client failures',
}

/** The number of failures with a cause, as a link to the requests. */
function failureColumn(cause: Cause, more: Partial<Column<UpstreamState>> = {}) {
  return {
    id: cause,
    head: FAILURE_HEADS[cause],
    className: 'wraps',
    cell: ({ name, failures }: UpstreamState) =>
      failures[cause] === 0 ? (
        <span className="soft">0</span>
      ) : (
        <Link
          to={requestsOf(name, { cause, range: '15m' })}
          aria-label={`${failures[cause]} failures of ${name}, cause ${CAUSE_NAMES[cause]}`}
        >
          {failures[cause]}
        </Link>
      ),
    numeric: true,
    ...more,
  }
}

const COLUMNS: readonly Column<UpstreamState>[] = [
  NAME,
  {
    id: 'health',
    head: 'Health',
    cell: (upstream) => <Health upstream={upstream} />,
    className: 'prose',
  },
  {
    id: 'breaker',
    head: 'Breaker',
    cell: (upstream) => <Breaker upstream={upstream} />,
    className: 'prose',
  },
  {
    id: 'flight',
    head: 'In flight',
    cell: ({ inFlight }) => inFlight ?? <Absent />,
    numeric: true,
    extra: true,
  },
  {
    id: 'rate',
    head: 'Attempts / min',
    cell: (one) => rate(one.attemptsPerMinute),
    numeric: true,
    minor: true,
  },
  failureColumn('provider'),
  failureColumn('gateway', { extra: true }),
  failureColumn('limits', { extra: true }),
  failureColumn('client', { extra: true }),
  {
    id: 'p95',
    head: 'First token p50 · p95',
    cell: ({ firstTokenP50Ms, firstTokenP95Ms }) => (
      <>
        <Took ms={firstTokenP50Ms} /> · <Took ms={firstTokenP95Ms} />
      </>
    ),
    numeric: true,
    minor: true,
    className: 'wraps',
  },
]

function Times({ what: { count, lastAtMs } }: { readonly what: UpstreamState['retries'] }) {
  if (count === 0) return <span className="soft">0</span>
  return (
    <>
      {count}
      {lastAtMs === null ? null : (
        <span className="soft">
          {' '}
          · last <Ago ms={lastAtMs} />
        </span>
      )}
    </>
  )
}

const BREAKERS = { closed: 'good', half_open: 'warn', open: 'bad' } as const

function Breaker({ upstream: { breaker, breakerChangedAtMs } }: { upstream: UpstreamState }) {
  if (breaker === null) return <Absent />
  return (
    <>
      <span className={`status ${BREAKERS[breaker]}`}>{breaker.replace('_', '-')}</span>
      {breakerChangedAtMs === null ? null : (
        <span className="soft">
          {' '}
          · {breaker === 'closed' ? 'closed' : 'opened'} <Ago ms={breakerChangedAtMs} />
        </span>
      )}
    </>
  )
}

const RESILIENCE: readonly Column<UpstreamState>[] = [
  NAME,
  { id: 'retries', head: 'Retries', cell: ({ retries }) => <Times what={retries} /> },
  { id: 'fallbacks', head: 'Fallbacks', cell: ({ fallbacks }) => <Times what={fallbacks} /> },
  {
    id: 'kinds',
    head: 'Failures of the provider',
    cell: ({ kinds }) => <Kinds kinds={kinds} />,
    minor: true,
    className: 'wide-cell',
  },
]

function Config({ config }: { readonly config: ConfigState }) {
  const { generation, loadedAtMs, fileHash, changes, refused } = config
  return (
    <Block title="Configuration">
      {refused === null ? null : (
        <div className="problem" role="alert">
          <p>
            The file of <Ago ms={refused.atMs} /> was refused; generation {generation} goes on.
          </p>
          <pre tabIndex={0}>{refused.problems.join('\n')}</pre>
        </div>
      )}
      <Facts>
        <Fact name="In force">
          generation {generation}, since <Ago ms={loadedAtMs} />
        </Fact>
        <Fact name="File">
          <code title={fileHash}>{fileHash.slice(0, 12)}</code>
        </Fact>
        <Fact name="Changed">
          {changes.length === 0 ? (
            <span className="soft">
              {generation <= 1 ? 'the first since the start' : 'nothing that counts'}
            </span>
          ) : (
            <Changes changes={changes} />
          )}
        </Fact>
      </Facts>
    </Block>
  )
}
