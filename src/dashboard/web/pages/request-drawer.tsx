/** The ledger entry of a request: failure, attempts, timing, cost and ids. */
import type { ReactNode } from 'react'
import type { RequestRow } from '../../server/schema/schema.js'
import { useResource, type List } from '../api/cache.js'
import { CopyButton } from '../components/copy-button.js'
import { Dialog } from '../components/dialog.js'
import { limitText, resetsAtMs } from '../components/limits.js'
import { BlockSkeleton, Failed } from '../components/states.js'
import { DataTable, type Column } from '../components/data-table.js'
import { Absent, Money, Name, Time, Took } from '../components/values.js'
import { Waterfall } from '../components/waterfall.js'
import { attemptsOf, kindText, adviceFor, CAUSE_NAMES, causeText } from '../format/failure-texts.js'
import { duration, exactCount, count } from '../format/number.js'
import { FORMAT_NAMES } from '../format/request-formats.js'
import { fullTime, clockTime } from '../format/time.js'
import { useScope } from '../shell/session.js'

interface DrawerProps {
  readonly id: string
  readonly onClose: () => void
}

/** The drawer. The request's id is in the address, so that the view can be shared. */
export function RequestDrawer({ id, onClose }: DrawerProps) {
  const scope = useScope()
  const { data, problem, reload } = useResource('/requests/{id}', { id, account: scope })
  return (
    <Dialog title="Request" side onClose={onClose}>
      {problem !== null ? (
        <Failed what="This request" problem={problem} retry={() => reload()} />
      ) : data === null ? (
        <BlockSkeleton />
      ) : (
        <Contents row={data.row} />
      )}
    </Dialog>
  )
}

function Contents({ row }: { readonly row: RequestRow }) {
  return (
    <div className="drawer-body">
      <Failure row={row} />
      <section>
        <h3 className="drawer-heading">Timing</h3>
        <Waterfall hops={row.hops} totalMs={row.durationMs} attempts={attemptsOf(row)} />
      </section>
      <Attempts row={row} />
      <section>
        <h3 className="drawer-heading">Request</h3>
        <dl className="facts">
          <RequestFacts row={row} />
        </dl>
      </section>
      <section>
        <h3 className="drawer-heading">Usage</h3>
        <dl className="facts">
          <TokenFacts row={row} />
          <Fact name="Cost">
            <Money nano={row.costNanoUsd} />
          </Fact>
          {row.priceVersion === null ? null : <Fact name="Price version">{row.priceVersion}</Fact>}
        </dl>
      </section>
      <section>
        <h3 className="drawer-heading">Identifiers</h3>
        <dl className="facts">
          <Ids row={row} />
        </dl>
      </section>
    </div>
  )
}

function RequestFacts({ row }: { readonly row: RequestRow }) {
  const { modelAsked, modelAnswered, ingress, dialect, finish, losses, upstreamStatus } = row
  return (
    <>
      <Fact name="Status">
        <Status row={row} />
      </Fact>
      <Fact name="Received">{fullTime(row.atMs)}</Fact>
      <Fact name="Duration">{duration(row.durationMs)}</Fact>
      <Fact name="Model requested">{modelAsked ?? <Absent />}</Fact>
      <Fact name={row.cause === null ? 'Model that answered' : 'Model at the upstream'}>
        {modelAnswered ?? <Absent />}
      </Fact>
      <Fact name="Client format">
        {ingress === null ? <Absent /> : (FORMAT_NAMES[ingress] ?? ingress)}
      </Fact>
      <Fact name="Upstream">
        {row.upstream ?? <Absent />}
        {dialect === null ? null : <span className="soft"> · {dialect}</span>}
      </Fact>
      <Fact name="Upstream status">{upstreamStatus ?? <Absent />}</Fact>
      <Fact name="Reply">
        {row.stream ? 'streamed' : 'whole'}
        {finish === null ? null : ` · finish reason ${finish}`}
      </Fact>
      <Fact name="Fields not translated">
        {losses.length === 0 ? (
          <span className="soft">none</span>
        ) : (
          losses.map((path) => (
            <code key={path} className="tag warn">
              {path}
            </code>
          ))
        )}
      </Fact>
      {row.guardrails === null ? null : <Fact name="Guardrails">{row.guardrails}</Fact>}
      {row.labels === null ? null : <Fact name="Labels">{row.labels}</Fact>}
      <Fact name="Configuration">
        generation {row.generation}
        {row.gateway === null ? null : ` of ${row.gateway}, hash ${row.generationHash ?? ''}`}
      </Fact>
    </>
  )
}

function Ids({ row }: { readonly row: RequestRow }) {
  const { upstreamRequestId, clientRequestId, shadowOf } = row
  return (
    <>
      <Id name="Request id" id={row.requestId} />
      {clientRequestId === null ? null : <Id name="Client request id" id={clientRequestId} />}
      {upstreamRequestId === null ? null : <Id name="Upstream request id" id={upstreamRequestId} />}
      {shadowOf === null ? null : <Id name="Shadow of" id={shadowOf} />}
      <Id name="Key" id={row.keyId} shown={row.keyName} />
    </>
  )
}

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  )
}

const SOURCES = {
  reported: 'reported by the provider',
  estimated: 'estimated',
  assumed: 'assumed: the maximum that it may have used',
  none: '',
} as const

function TokenFacts({
  row: { usage, source, tokensAfterDisconnect },
}: {
  readonly row: RequestRow
}) {
  const counts = [
    ['input', usage.input],
    ['cached', usage.cacheRead],
    ['written to cache', usage.cacheWrite],
    ['output', usage.output],
    ['reasoning', usage.reasoning],
  ] as const
  const known = counts.filter(([, value]) => value !== undefined)
  return (
    <>
      <Fact name="Tokens">
        {known.length === 0 ? (
          <Absent />
        ) : (
          known.map(([name, value]) => `${exactCount(value ?? 0)} ${name}`).join(' · ')
        )}
        {source === 'none' ? null : (
          <>
            {' '}
            <span className="tag">{SOURCES[source]}</span>
          </>
        )}
      </Fact>
      {tokensAfterDisconnect === 0 ? null : (
        <Fact name="After disconnect">{exactCount(tokensAfterDisconnect)} tokens</Fact>
      )}
    </>
  )
}

interface IdProps {
  readonly name: string
  readonly id: string
  readonly shown?: string | null
}

function Id({ name, id, shown = null }: IdProps) {
  return (
    <Fact name={name}>
      {shown === null ? null : `${shown} `}
      <code>{id}</code> <CopyButton text={id} what={name.toLowerCase()} />
    </Fact>
  )
}

/** The status with a text for screen readers. */
function Status({ row: { status, outcome } }: { readonly row: RequestRow }) {
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

const COLUMNS: readonly Column<RequestRow>[] = [
  {
    id: 'when',
    head: 'When',
    cell: ({ atMs }) => <Time ms={atMs} />,
    sort: 'atMs',
    first: 'desc',
  },
  { id: 'status', head: 'Status', cell: (row) => <Status row={row} /> },
  {
    id: 'model',
    head: 'Model',
    cell: ({ model }) => <Name text={model} strong />,
    text: true,
  },
  {
    id: 'upstream',
    head: 'Upstream',
    cell: ({ upstream }) => (upstream === null ? <Absent /> : <Name text={upstream} />),
    text: true,
    minor: true,
  },
  {
    id: 'key',
    head: 'Key',
    cell: ({ keyName, keyId }) => <Name text={keyName ?? keyId} />,
    text: true,
    minor: true,
  },
  {
    id: 'tokens',
    head: 'Tokens in · out',
    cell: ({ usage, source }) => <Tokens usage={usage} source={source} />,
    sort: 'tokens',
    numeric: true,
    minor: true,
  },
  {
    id: 'cost',
    head: 'Cost',
    cell: ({ costNanoUsd }) => <Money nano={costNanoUsd} />,
    sort: 'costNanoUsd',
    numeric: true,
  },
  {
    id: 'first',
    head: 'First token',
    cell: ({ hops }) => <Took ms={hops.firstContent ?? null} />,
    sort: 'firstTokenMs',
    numeric: true,
    minor: true,
  },
  {
    id: 'took',
    head: 'Took',
    cell: ({ durationMs }) => <Took ms={durationMs} />,
    sort: 'durationMs',
    numeric: true,
    extra: true,
  },
]

interface RequestTableProps {
  readonly open: (row: RequestRow) => void
}

interface RequestListProps extends RequestTableProps {
  readonly list: List<RequestRow>
  readonly empty: ReactNode
}

interface RequestRowsProps extends RequestTableProps {
  readonly rows: readonly RequestRow[]
}

/** Requests, newest first: a list of the server, or some rows. A click opens the request. */
export function RequestTable(props: RequestListProps | RequestRowsProps) {
  const shared = {
    caption: 'Requests, newest first',
    columns: COLUMNS,
    keyOf: ({ requestId }: RequestRow) => requestId,
    open: props.open,
    nameOf: ({ model, status }: RequestRow) => `request to ${model}, ${status}`,
  }
  if ('rows' in props) return <DataTable {...shared} rows={props.rows} />
  const { list, empty } = props
  return (
    <DataTable
      {...shared}
      list={list}
      unit="request"
      empty={empty}
      holds="Requests are still recorded."
    />
  )
}

/** The attempts in order; renders nothing without attempts. */
function Attempts({ row }: { readonly row: RequestRow }) {
  const attempts = attemptsOf(row)
  if (attempts.length === 0) return null
  return (
    <section>
      <h3 className="drawer-heading">Attempts</h3>
      <table className="table attempts">
        <caption className="unseen">Attempts</caption>
        <thead>
          <tr>
            <th scope="col">Upstream</th>
            <th scope="col">Outcome</th>
            <th scope="col" className="numeric">
              Time
            </th>
          </tr>
        </thead>
        <tbody>
          {attempts.map(({ upstream, outcome, ms }, at) => (
            <tr key={at}>
              <th scope="row">{upstream}</th>
              <td>
                <span className={`status ${toneOf(outcome)}`}>{kindText(outcome)}</span>
              </td>
              <td className="numeric">
                <Took ms={ms} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

function toneOf(outcome: string): string {
  if (outcome === 'ok') return 'good'
  return outcome === 'cancelled' || outcome === 'client_gone' ? 'warn' : 'bad'
}

/** The block at the head of the drawer; renders nothing for a successful request. */
function Failure({ row }: { readonly row: RequestRow }) {
  const { outcome, cause, errorMessage } = row
  if (cause === null) return null
  const advice = adviceFor(outcome)
  return (
    <section className={`failure ${cause}`} aria-label="Failure">
      <p className="failure-head">
        <span className="tag">{CAUSE_NAMES[cause]}</span>
        <code>{outcome}</code>
      </p>
      <p className="failure-message">
        {errorMessage ?? <span className="soft">No message recorded.</span>}
      </p>
      <dl className="facts">
        <dt>Caused by</dt>
        <dd>{causeText(row)}</dd>
        {row.limit === null ? null : <LimitFacts row={row} limit={row.limit} />}
        {row.upstreamStatus === null ? null : (
          <>
            <dt>Upstream reply</dt>
            <dd>
              status {row.upstreamStatus}
              {row.upstreamRequestId === null ? null : (
                <>
                  , request <code>{row.upstreamRequestId}</code>
                </>
              )}
            </dd>
          </>
        )}
        {advice === null ? null : (
          <>
            <dt>What to do</dt>
            <dd>{advice}</dd>
          </>
        )}
      </dl>
    </section>
  )
}

function LimitFacts({ row, limit }: { readonly row: RequestRow; readonly limit: string }) {
  const atMs = resetsAtMs(row)
  return (
    <>
      <dt>Limit</dt>
      <dd>
        {limitText(limit)} <code className="soft">{limit}</code>
      </dd>
      <dt>Resets</dt>
      <dd>
        {atMs === null ? (
          'when a running request ends'
        ) : (
          <time dateTime={new Date(atMs).toISOString()} title={fullTime(atMs)}>
            {atMs - row.atMs < 3_600_000 ? clockTime(atMs) : fullTime(atMs)}
          </time>
        )}
      </dd>
    </>
  )
}
