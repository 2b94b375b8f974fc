/**
 * The ledger entry of a request: failure, attempts, timing, cost, ids and the recorded conversation. What an
 * entry names is a link to it.
 */
import type { ReactNode } from 'react'
import type { CostPart, RequestRow } from '../../../control/dashboard/schema/schema.js'
import { useResource } from '../api/use-resource.js'
import { Icon } from '../components/button.js'
import { CodeBlock, CopyButton } from '../components/copy-button.js'
import { DrawerSection, Fact, Facts, Summary } from '../components/facts.js'
import { DataTable, type Column } from '../components/data-table.js'
import { Dialog } from '../components/dialog.js'
import { limitText, resetsAtMs } from '../components/limits.js'
import { Loaded } from '../components/loading-states.js'
import { Tabs } from '../components/tabs.js'
import { Absent, Money, Name, Took } from '../components/values.js'
import { Waterfall } from '../components/waterfall.js'
import {
  adviceFor,
  attemptsOf,
  CAUSE_NAMES,
  causeText,
  kindText,
  type AdviceTarget,
  type AttemptRow,
} from '../format/failure-texts.js'
import { duration, exactCount, exactDollars, plural, price } from '../format/number.js'
import { dimensionsOf, FORMAT_NAMES } from '../format/request-formats.js'
import { clockTime, fullTime, HOUR_MS } from '../format/time.js'
import { unitsText } from '../format/units.js'
import { urlOf, type Query } from '../api/client.js'
import { Link, keyLink } from '../routing.js'
import { useRights, useScope, type Rights } from '../shell/session.js'
import { RecordedConversation } from './recorded-conversation.js'
import { modelOf, Status } from './request-status.js'

interface DrawerProps {
  readonly id: string
  readonly onClose: () => void
}

export function RequestDrawer({ id, onClose }: DrawerProps) {
  const scope = useScope()
  const resource = useResource('/requests/{id}', { id, account: scope })
  return (
    <Dialog title="Request" side onClose={onClose}>
      <Loaded resource={resource} what="This request">
        {({ row, costParts = [] }) => <Contents row={row} costParts={costParts} />}
      </Loaded>
    </Dialog>
  )
}

/** The addresses of what an entry names; null for what the user may not see. */
function useLinks(row: RequestRow) {
  const scope = useScope()
  const rights = useRights()
  const account = scope === 'all' ? row.accountId : scope
  const to = (path: string, query: Query = {}): string => urlOf(path, { ...query, account })
  const isKey = row.keyId !== 'playground' && rights.readsKeys
  return {
    account: to('/', { account: row.accountId }),
    key: isKey ? keyLink({ accountId: row.accountId, id: row.keyId }) : null,
    model: row.model === 'other' ? null : urlOf('/models', { model: row.model }),
    playground:
      rights.makesKeys && row.modelAsked !== null
        ? urlOf('/playground', { model: row.modelAsked, format: row.clientFormat })
        : null,
    upstream: (upstream: string) => to('/requests', { upstream }),
    attempt: ({ upstream, outcome }: AttemptRow) => to('/requests', { upstream, outcome }),
    alike: to('/requests', { outcome: row.outcome, upstream: row.upstream }),
    label: (label: string) => to('/requests', { label }),
    dimension: (pair: string) =>
      pair.startsWith('run=')
        ? urlOf('/runs', { account: row.accountId, run: pair.slice('run='.length) })
        : to('/requests', { dimension: pair }),
    program: (program: string) => to('/requests', { program }),
    user: (user: string) => to('/requests', { user }),
    batch: (batch: string) => urlOf('/batches', { account: row.accountId, batch }),
    request: (id: string) => to('/requests', { request: id }),
    search: (id: string) => to('/requests', { search: id }),
    generation: rights.readsGateway ? urlOf('/configuration', { generation: row.generation }) : null,
    advice: (target: AdviceTarget) => adviceLink(target, row, rights),
  }
}

type Links = ReturnType<typeof useLinks>

/** The address at which an advice is followed; null if the user cannot do it. */
function adviceLink(target: AdviceTarget, row: RequestRow, rights: Rights): string | null {
  const isKey = row.keyId !== 'playground' && rights.readsKeys
  const editKey = isKey ? keyLink({ accountId: row.accountId, id: row.keyId }, 'limits') : null
  const gateway = (path: string): string | null => (rights.readsGateway ? path : null)
  switch (target) {
    case 'key':
      return isKey ? keyLink({ accountId: row.accountId, id: row.keyId }, 'all') : null
    case 'limit': {
      const limit = row.limit ?? ''
      if (limit.startsWith('key:')) return editKey
      if (!limit.startsWith('account:')) return gateway('/configuration')
      return gateway(urlOf('/accounts', { search: row.accountId }))
    }
    case 'models':
      return '/models'
    case 'upstream':
      return gateway(urlOf('/operations', { upstream: row.upstream }))
    case 'configuration':
      return gateway('/configuration')
  }
}

/** A link, or only the text if there is nothing to open. */
function MaybeLink({ to, children }: { readonly to: string | null; readonly children: ReactNode }) {
  return to === null ? <>{children}</> : <Link to={to}>{children}</Link>
}

interface ContentsProps {
  readonly row: RequestRow
  readonly costParts: readonly CostPart[]
}

function Contents({ row, costParts }: ContentsProps) {
  const links = useLinks(row)
  const isFailed = row.cause !== null
  const timing = (
    <DrawerSection title="Timing">
      <Waterfall hops={row.hops} totalMs={row.durationMs} attempts={attemptsOf(row)} />
    </DrawerSection>
  )
  const details = (
    <>
      {isFailed ? timing : null}
      <DrawerSection title="Request">
        <Facts>
          <RequestFacts row={row} links={links} />
        </Facts>
      </DrawerSection>
      <DrawerSection title="Usage">
        <Facts>
          <TokenFacts row={row} />
          <Fact name="Cost">
            <Money nano={row.costNanoUsd} />
            <CostParts parts={costParts} />
          </Fact>
          <Fact name="Price version">{row.priceVersion}</Fact>
        </Facts>
      </DrawerSection>
      <DrawerSection title="Identifiers">
        <Facts>
          <Ids row={row} links={links} />
        </Facts>
      </DrawerSection>
    </>
  )
  const routing = (
    <>
      <Attempts row={row} links={links} />
      <DrawerSection title="Route">
        <Facts>
          <ServiceFacts row={row} links={links} />
        </Facts>
      </DrawerSection>
    </>
  )
  const raw = <CodeBlock what="ledger entry" code={JSON.stringify(row, null, 2)} />
  return (
    <>
      <Line row={row} />
      {isFailed ? <Failure row={row} links={links} /> : timing}
      <Tabs
        label="Parts of the request"
        tabs={[
          { name: 'Details', content: details },
          { name: 'Routing', content: routing },
          { name: 'Raw', content: raw },
          ...(row.recorded === true
            ? [{ name: 'Conversation', content: <RecordedConversation row={row} /> }]
            : []),
        ]}
      />
    </>
  )
}

/** `200 · gpt-5.4-mini > openai · $0.0002 · 52 tokens · 24 ms`, with the arrow as an icon. */
function Line({ row }: { readonly row: RequestRow }) {
  const { upstream, costNanoUsd, usage, durationMs } = row
  const tokens = (usage.input ?? 0) + (usage.output ?? 0)
  return (
    <Summary>
      <Status row={row} />
      <span>
        <Name text={modelOf(row)} strong />
        {upstream === null ? null : (
          <>
            {' '}
            <Icon name="right" size={12} /> {upstream}
          </>
        )}
      </span>
      <Money nano={costNanoUsd} />
      {tokens === 0 ? null : <span>{plural(tokens, 'token')}</span>}
      <Took ms={durationMs} />
    </Summary>
  )
}

interface PartProps {
  readonly row: RequestRow
  readonly links: Links
}

function RequestFacts({ row, links }: PartProps) {
  const { modelAsked, modelAnswered, clientFormat, finish } = row
  return (
    <>
      <Fact name="Status">
        <Status row={row} />
      </Fact>
      <Fact name="Received">{fullTime(row.atMs)}</Fact>
      <Fact name="Duration">{duration(row.durationMs)}</Fact>
      <Fact name="Account">
        <Link to={links.account} className="cut" title={row.accountPath ?? row.accountId}>
          {row.accountName ?? row.accountId}
        </Link>
      </Fact>
      <Fact name="Model requested">
        {modelAsked === null ? (
          <Absent />
        ) : (
          <MaybeLink to={links.model}>
            <Name text={modelAsked} />
          </MaybeLink>
        )}
        {row.model === 'other' ? <span className="tag">unknown model</span> : null}
        {links.playground === null ? null : (
          <>
            {' · '}
            <Link to={links.playground}>Try it in the playground</Link>
          </>
        )}
      </Fact>
      <Fact name={row.cause === null ? 'Model that answered' : 'Model at the upstream'}>
        {modelAnswered === null ? <Absent /> : <Name text={modelAnswered} />}
      </Fact>
      <Fact name="Client format">
        {clientFormat === null ? <Absent /> : (FORMAT_NAMES[clientFormat] ?? clientFormat)}
      </Fact>
      <Fact name="Reply">
        {row.stream ? 'streamed' : 'whole'}
        {finish === null ? null : ` · finish reason ${finish}`}
      </Fact>
    </>
  )
}

function ServiceFacts({ row, links }: PartProps) {
  const { upstream, dialect, losses, upstreamStatus, labels, gateway } = row
  return (
    <>
      <Fact name="Upstream">
        {upstream === null ? <Absent /> : <Link to={links.upstream(upstream)}>{upstream}</Link>}
        {dialect === null ? null : <span className="soft"> · {dialect}</span>}
      </Fact>
      <Fact name="Upstream status">{upstreamStatus ?? <Absent />}</Fact>
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
      <Fact name="Guardrails">{row.guardrails}</Fact>
      <Fact name="Labels">{tagsOf(labels?.split(' ') ?? [], links.label)}</Fact>
      <BelowKey row={row} links={links} />
      <Fact name="Configuration">
        <MaybeLink to={links.generation}>generation {row.generation}</MaybeLink>
        {gateway === null ? null : ` of ${gateway}, hash ${row.generationHash ?? ''}`}
      </Fact>
    </>
  )
}

/** What distinguishes the request below its key. */
function BelowKey({ row, links }: PartProps) {
  const { program, user } = row
  return (
    <>
      <Fact name="Dimensions">{tagsOf(dimensionsOf(row), links.dimension)}</Fact>
      <Fact name="Program">
        {program === null || program === 'none' ? null : <Link to={links.program(program)}>{program}</Link>}
      </Fact>
      <Fact name="Person">{user === null ? null : <Link to={links.user(user)}>{user}</Link>}</Fact>
    </>
  )
}

/** Tags that are links; null for none. */
function tagsOf(texts: readonly string[], to: (text: string) => string): ReactNode {
  if (texts.length === 0) return null
  return texts.map((text) => (
    <Link key={text} className="tag" to={to(text)}>
      {text}
    </Link>
  ))
}

function Ids({ row, links }: PartProps) {
  const { upstreamRequestId, clientRequestId, shadowOf, batch, keyName } = row
  return (
    <>
      <Id name="Request id" id={row.requestId} />
      <Id name="Client request id" id={clientRequestId} to={links.search} />
      <Id name="Upstream request id" id={upstreamRequestId} />
      <Id name="Batch" id={batch} to={links.batch} />
      <Id name="Shadow of" id={shadowOf} to={links.request} />
      <Fact name="Key">
        {keyName === null ? null : (
          <MaybeLink to={links.key}>
            <Name text={keyName} />
          </MaybeLink>
        )}
      </Fact>
      <Id name="Key id" id={row.keyId} to={() => (keyName === null ? links.key : null)} />
    </>
  )
}

const SOURCES = {
  reported: 'reported by the provider',
  estimated: 'estimated',
  assumed: 'assumed: the maximum that it may have used',
  none: '',
} as const

function TokenFacts({ row: { usage, units, source, tokensAfterDisconnect } }: { readonly row: RequestRow }) {
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
      <Fact name="Units">{units === null ? null : unitsText(units)}</Fact>
      <Fact name="After disconnect">
        {tokensAfterDisconnect === 0 ? null : `${exactCount(tokensAfterDisconnect)} tokens`}
      </Fact>
    </>
  )
}

/** `1,204 input × $0.75 = $0.000903`, a line for each kind of tokens. */
function CostParts({ parts }: { readonly parts: readonly CostPart[] }) {
  if (parts.length === 0) return null
  return (
    <ul className="stack gap-4" aria-label="Why it cost that">
      {parts.map(({ kind, tokens, usdPerMillion, costNanoUsd }) => (
        <li key={kind} className="soft small">
          {exactCount(tokens)} {kind} × {price(usdPerMillion)} per million = {exactDollars(costNanoUsd)}
        </li>
      ))}
    </ul>
  )
}

interface IdProps {
  readonly name: string
  /** Null: it has none. */
  readonly id: string | null
  /** Its address; null if there is nothing to open. */
  readonly to?: (id: string) => string | null
}

function Id({ name, id, to = () => null }: IdProps) {
  if (id === null) return null
  return (
    <Fact name={name}>
      <MaybeLink to={to(id)}>
        <code>{id}</code>
      </MaybeLink>{' '}
      <CopyButton text={id} what={name.toLowerCase()} />
    </Fact>
  )
}

interface Attempt extends AttemptRow {
  readonly at: number
}

/** The attempts in order, each with the requests that went the same way; nothing without attempts. */
function Attempts({ row, links }: PartProps) {
  const attempts = attemptsOf(row).map((attempt, at) => ({ ...attempt, at }))
  if (attempts.length === 0) return null
  const columns: readonly Column<Attempt>[] = [
    {
      id: 'upstream',
      head: 'Upstream',
      cell: ({ upstream }) => <Link to={links.upstream(upstream)}>{upstream}</Link>,
    },
    {
      id: 'outcome',
      head: 'Outcome',
      cell: (attempt) => (
        <span className={`status ${toneOf(attempt.outcome)}`}>
          <Link to={links.attempt(attempt)} title="Requests with this outcome at this upstream">
            {kindText(attempt.outcome)}
          </Link>
        </span>
      ),
    },
    { id: 'time', head: 'Time', cell: ({ ms }) => <Took ms={ms} />, numeric: true },
  ]
  return (
    <DrawerSection title="Attempts">
      <DataTable caption="Attempts" columns={columns} rows={attempts} keyOf={({ at }) => String(at)} />
    </DrawerSection>
  )
}

function toneOf(outcome: string): string {
  if (outcome === 'ok') return 'good'
  return outcome === 'cancelled' || outcome === 'client_gone' ? 'warn' : 'bad'
}

/** The block at the head of the drawer; renders nothing for a successful request. */
function Failure({ row, links }: PartProps) {
  const { outcome, cause, errorMessage, upstreamStatus, upstreamRequestId } = row
  if (cause === null) return null
  const advice = adviceFor(outcome)
  return (
    <section className={`failure stack ${cause === 'limits' ? 'limit' : cause}`} aria-label="Failure">
      <p className="failure-head row">
        <span className="tag">{CAUSE_NAMES[cause]}</span>
        <code>{outcome}</code>
      </p>
      <p className="failure-message">{errorMessage ?? <span className="soft">No message recorded.</span>}</p>
      <Facts>
        <Fact name="Caused by">{causeText(row)}</Fact>
        {row.limit === null ? null : <LimitFacts row={row} links={links} limit={row.limit} />}
        {upstreamStatus === null ? null : (
          <Fact name="Upstream reply">
            status {upstreamStatus}
            {upstreamRequestId === null ? null : (
              <>
                , request <code>{upstreamRequestId}</code>
              </>
            )}
          </Fact>
        )}
        {advice.length === 0 ? null : (
          <Fact name="What to do">
            {advice.map(({ text, target }) => (
              <MaybeLink key={text} to={target === null ? null : links.advice(target)}>
                {text}
              </MaybeLink>
            ))}
          </Fact>
        )}
        <Fact name="Others">
          <Link to={links.alike}>Requests that failed like this one</Link>
        </Fact>
      </Facts>
    </section>
  )
}

function LimitFacts({ row, links, limit }: PartProps & { readonly limit: string }) {
  const atMs = resetsAtMs(row)
  return (
    <>
      <Fact name="Limit">
        <MaybeLink to={links.advice('limit')}>{limitText(limit)}</MaybeLink>{' '}
        <code className="soft">{limit}</code>
      </Fact>
      <Fact name="Resets">
        {atMs === null ? (
          'when a running request ends'
        ) : (
          <time dateTime={new Date(atMs).toISOString()} title={fullTime(atMs)}>
            {atMs - row.atMs < HOUR_MS ? clockTime(atMs) : fullTime(atMs)}
          </time>
        )}
      </Fact>
    </>
  )
}
