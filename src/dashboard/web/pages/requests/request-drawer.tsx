/** One request, whole: what was asked and answered, what it cost, where its time went. Never what was said. */
import type { ReactNode } from 'react'
import type { RequestRow } from '../../../server/schema/schema.js'
import { useResource } from '../../api/resource.js'
import { duration, exactCount } from '../../format/number.js'
import { fullTime } from '../../format/time.js'
import { CopyButton } from '../../parts/actions/copy.js'
import { Dialog } from '../../parts/dialogs/dialog.js'
import { Absent, Money } from '../../parts/tables/figure.js'
import { BlockSkeleton, Failed } from '../../parts/states/states.js'
import { Waterfall } from '../../parts/charts/waterfall.js'
import { useScope } from '../../shell/scope.js'
import { Status } from './request-table.js'

interface DrawerProps {
  readonly id: string
  readonly onClose: () => void
}

/** The drawer at the side; its id is in the address, so it can be shared. */
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
        <Facts row={data.row} />
      )}
    </Dialog>
  )
}

function Facts({ row }: { readonly row: RequestRow }) {
  return (
    <div className="drawer-body">
      <Waterfall hops={row.hops} totalMs={row.durationMs} />
      <dl className="facts">
        <Fact name="Status">
          <Status row={row} />
        </Fact>
        <Why row={row} />
        <Fact name="When">{fullTime(row.atMs)}</Fact>
        <Fact name="Took">{duration(row.durationMs)}</Fact>
        <Fact name="Model">
          {row.modelAsked ?? <Absent />}
          {row.modelAnswered === null || row.modelAnswered === row.modelAsked
            ? null
            : ` → ${row.modelAnswered}`}
        </Fact>
        <Fact name="Upstream">
          {row.upstream ?? <Absent />}
          {row.dialect === null ? null : <span className="soft"> · {row.dialect}</span>}
          {row.attempts > 1 ? <span className="tag warn">{row.attempts} attempts</span> : null}
        </Fact>
        <Fact name="Reply">
          {row.stream ? 'streamed' : 'whole'}
          {row.finish === null ? null : ` · finish ${row.finish}`}
        </Fact>
        <TokenFacts row={row} />
        <Fact name="Cost">
          <Money nano={row.costNanoUsd} />
        </Fact>
        <Fact name="Lost in translation">
          {row.losses.length === 0 ? (
            <span className="soft">nothing</span>
          ) : (
            row.losses.map((path) => (
              <code key={path} className="tag">
                {path}
              </code>
            ))
          )}
        </Fact>
        <Optional name="Labels" value={row.labels} />
        <Fact name="Configuration">generation {row.generation}</Fact>
        <Optional name="Client format" value={row.ingress} />
        <Id name="Request id" id={row.requestId} />
        {row.clientRequestId === null ? null : (
          <Id name="Client's request id" id={row.clientRequestId} />
        )}
        {row.upstreamRequestId === null ? null : (
          <Id name="Upstream's request id" id={row.upstreamRequestId} />
        )}
        {row.shadowOf === null ? null : <Id name="Shadow of" id={row.shadowOf} />}
        <Id name="Key" id={row.keyId} shown={row.keyName} />
      </dl>
    </div>
  )
}

/** Why the request failed or was refused, and what its attempts came to. */
function Why({ row }: { readonly row: RequestRow }) {
  return (
    <>
      {row.outcome === 'ok' ? null : (
        <Fact name="Error kind">
          <code>{row.outcome}</code>
        </Fact>
      )}
      <Optional name="Error" value={row.errorMessage} />
      <Optional name="Limit" value={row.limit} />
      <Optional name="Upstream status" value={row.upstreamStatus} />
      <Optional name="Attempts" value={row.attempted} />
    </>
  )
}

function Optional({
  name,
  value,
}: {
  readonly name: string
  readonly value: string | number | null
}) {
  return value === null ? null : <Fact name={name}>{value}</Fact>
}

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  )
}

function TokenFacts({
  row: { usage, source, tokensAfterDisconnect },
}: {
  readonly row: RequestRow
}) {
  const counts = [
    ['in', usage.input],
    ['cached', usage.cacheRead],
    ['written to cache', usage.cacheWrite],
    ['out', usage.output],
    ['reasoning', usage.reasoning],
  ] as const
  const told = counts.filter(([, value]) => value !== undefined)
  return (
    <>
      <Fact name="Tokens">
        {told.length === 0 ? (
          <Absent />
        ) : (
          told.map(([name, value]) => `${exactCount(value ?? 0)} ${name}`).join(' · ')
        )}
        {source === 'none' ? null : (
          <>
            {' '}
            <span className="tag">{source}</span>
          </>
        )}
      </Fact>
      {tokensAfterDisconnect === 0 ? null : (
        <Fact name="After the client left">{exactCount(tokensAfterDisconnect)} tokens</Fact>
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
