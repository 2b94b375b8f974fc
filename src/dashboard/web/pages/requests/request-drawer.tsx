/** The ledger entry of a request: failure, attempts, timing, cost and ids. */
import type { ReactNode } from 'react'
import type { RequestRow } from '../../../server/schema/schema.js'
import { useResource } from '../../api/load-resource.js'
import { attemptsOf } from '../../format/failure-texts.js'
import { FORMAT_NAMES } from '../../format/client-formats.js'
import { duration, exactCount } from '../../format/number.js'
import { fullTime } from '../../format/time.js'
import { CopyButton } from '../../components/actions/copy-button.js'
import { Waterfall } from '../../components/charts/waterfall.js'
import { Dialog } from '../../components/dialogs/dialog.js'
import { BlockSkeleton, Failed } from '../../components/states/states.js'
import { Absent, Money } from '../../components/tables/figure.js'
import { useScope } from '../../shell/shown-account.js'
import { Attempts } from './attempts.js'
import { Failure } from './failure.js'
import { Status } from './request-table.js'

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
      {row.labels === null ? null : <Fact name="Labels">{row.labels}</Fact>}
      <Fact name="Configuration">generation {row.generation}</Fact>
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
