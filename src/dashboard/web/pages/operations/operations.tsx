/** For administrators: is it us or the provider. */
import type { ConfigState, UpstreamState } from '../../../server/schema/schema.js'
import { useResource } from '../../api/resource.js'
import { clockTime } from '../../format/time.js'
import { Absent, Ago, Took } from '../../parts/tables/figure.js'
import { Pulse } from '../../parts/states/pulse.js'
import { BlockSkeleton, Failed } from '../../parts/states/states.js'
import { Table, type Column } from '../../parts/tables/table.js'
import { setQuery, usePlace } from '../../routing/place.js'
import { Block, Page } from '../../shell/page.js'
import { useSession } from '../../shell/session.js'
import { RequestDrawer } from '../requests/request-drawer.js'
import { RequestTable } from '../requests/request-table.js'

const EVERY_MS = 2_000

/** The page of operations. */
export function OperationsPage() {
  const { query } = usePlace()
  const { grafanaUrl } = useSession().session
  const { data, problem, reload } = useResource('/operations', {}, { everyMs: EVERY_MS })
  const id = query.get('request')
  return (
    <Page
      title="Operations"
      purpose="How each upstream is, what configuration is in force, and what failed."
      action={
        <>
          <Pulse on />
          {grafanaUrl === null ? null : (
            <a className="button plain" href={grafanaUrl} target="_blank" rel="noreferrer">
              Open Grafana
            </a>
          )}
        </>
      }
    >
      {problem !== null && data === null ? (
        <Failed
          what="The state of things"
          problem={problem}
          holds="It says nothing about traffic: see /readyz."
          retry={() => reload()}
        />
      ) : data === null ? (
        <BlockSkeleton />
      ) : (
        <>
          <Block title="Upstreams" note="the last 5 minutes; in flight: now">
            <Table
              caption="Upstreams"
              columns={COLUMNS}
              rows={data.upstreams}
              keyOf={({ name }) => name}
            />
          </Block>
          <Config config={data.config} />
          <Block title="Recent failures" note="of all accounts, newest first">
            {data.failed.length === 0 ? (
              <p className="soft">None. Requests that end otherwise than well appear here.</p>
            ) : (
              <RequestTable
                rows={data.failed}
                open={({ requestId }) => setQuery({ request: requestId, account: 'all' })}
              />
            )}
          </Block>
        </>
      )}
      {id === null ? null : <RequestDrawer id={id} onClose={() => setQuery({ request: null })} />}
    </Page>
  )
}

function Health({ upstream }: { readonly upstream: UpstreamState }) {
  const { configured, apiKeySource, errorsPerMinute, requestsPerMinute, breaker } = upstream
  if (!configured) {
    return (
      <span className="status warn">no key{apiKeySource === null ? '' : `: ${apiKeySource}`}</span>
    )
  }
  if (breaker === 'open') return <span className="status bad">breaker open</span>
  if (breaker === 'half_open') return <span className="status warn">breaker half open</span>
  if (requestsPerMinute === 0) return <span className="soft">no traffic</span>
  const share = errorsPerMinute / requestsPerMinute
  if (share >= 0.05) return <span className="status bad">failing</span>
  return share > 0 ? (
    <span className="status warn">some errors</span>
  ) : (
    <span className="status good">well</span>
  )
}

function Errors({ errors }: Pick<UpstreamState, 'errors'>) {
  if (errors.length === 0) return <span className="soft">none</span>
  return (
    <>
      {errors.map(({ kind, count, lastAtMs }) => (
        <span key={kind} className="tag" title={`last at ${clockTime(lastAtMs)}`}>
          {count} × {kind.replaceAll('_', ' ')}
        </span>
      ))}
    </>
  )
}

function rate(value: number): string {
  return value === 0 ? '0' : value.toFixed(value < 10 ? 1 : 0)
}

const COLUMNS: readonly Column<UpstreamState>[] = [
  {
    id: 'name',
    head: 'Upstream',
    cell: ({ name, origin, preset, dialect }) => (
      <span title={`${origin}, ${preset ?? dialect}`} className="cell-name">
        {name}
      </span>
    ),
    className: 'main-cell',
  },
  { id: 'health', head: 'State', cell: (upstream) => <Health upstream={upstream} /> },
  {
    id: 'flight',
    head: 'In flight',
    cell: ({ inFlight }) => inFlight ?? <Absent />,
    numeric: true,
    extra: true,
  },
  {
    id: 'rate',
    head: 'Per minute',
    cell: (one) => rate(one.requestsPerMinute),
    numeric: true,
    extra: true,
  },
  {
    id: 'errors',
    head: 'Errors / min',
    cell: (one) => rate(one.errorsPerMinute),
    numeric: true,
  },
  {
    id: 'p50',
    head: 'First token p50',
    cell: ({ firstTokenP50Ms }) => <Took ms={firstTokenP50Ms} />,
    numeric: true,
    minor: true,
  },
  {
    id: 'p95',
    head: 'p95',
    cell: ({ firstTokenP95Ms }) => <Took ms={firstTokenP95Ms} />,
    numeric: true,
    minor: true,
  },
  {
    id: 'kinds',
    head: 'Recent errors',
    cell: (one) => <Errors errors={one.errors} />,
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
      <dl className="facts">
        <dt>In force</dt>
        <dd>
          generation {generation}, since <Ago ms={loadedAtMs} />
        </dd>
        <dt>File</dt>
        <dd>
          <code title={fileHash}>{fileHash.slice(0, 12)}</code>
        </dd>
        <dt>Changed</dt>
        <dd>
          {changes.length === 0 ? (
            <span className="soft">
              {generation <= 1 ? 'the first since the start' : 'nothing that counts'}
            </span>
          ) : (
            <ul className="changes">
              {changes.map(({ path, before, after }) => (
                <li key={path}>
                  <code>{path}</code> {before === null ? null : <del>{before}</del>}{' '}
                  {after === null ? <span className="soft">gone</span> : <ins>{after}</ins>}
                </li>
              ))}
            </ul>
          )}
        </dd>
      </dl>
    </Block>
  )
}
