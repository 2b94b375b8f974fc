/** The drawer of a key: its settings, its limits now, its labels over time, and its actions. */
import type { Key, KeyDetailReply } from '../../../../control/dashboard/schema/schema.js'
import { useResource } from '../../api/use-resource.js'
import { Button } from '../../components/button.js'
import { CopyButton } from '../../components/copy-button.js'
import { DrawerSection, Fact, Facts, Summary } from '../../components/facts.js'
import { Dialog } from '../../components/dialog.js'
import { LimitBar } from '../../components/limits.js'
import { Loaded } from '../../components/loading-states.js'
import { Ago, Money, Name, Time } from '../../components/values.js'
import { plural } from '../../format/number.js'
import { until } from '../../format/time.js'
import { Link } from '../../routing.js'
import { useRights } from '../../shell/session.js'
import { CostChart } from '../cost-chart.js'
import type { KeyAct } from './key-dialogs.js'
import { maskOf } from './key-draft.js'

const EVERY_MS = 15_000

/** A key with what its forms need; null while it is loaded. */
function useKey(id: string | null, account: string | null) {
  const options = { everyMs: EVERY_MS, enabled: id !== null }
  return useResource('/keys/{id}', { id: id ?? '', account }, options)
}

interface DrawerProps {
  readonly id: string
  /** The account of the address; null: the user's own. */
  readonly account: string | null
  readonly act: (act: KeyAct, key: Key) => void
  readonly onClose: () => void
}

/** The drawer. The key's id is in the address, so that the view can be shared. */
export function KeyDrawer({ id, account, act, onClose }: DrawerProps) {
  const resource = useKey(id, account)
  const { data } = resource
  return (
    <Dialog title={data === null ? 'Key' : data.key.name} side onClose={onClose}>
      <Loaded resource={{ ...resource, data }} what="The key" unaffected="Keys keep working.">
        {(detail) => <Detail detail={detail} act={act} />}
      </Loaded>
    </Dialog>
  )
}

function Detail({
  detail: { key, limits, labelHistory, plan },
  act,
}: Pick<DrawerProps, 'act'> & { readonly detail: KeyDetailReply }) {
  const ofKey = `key=${key.id}&account=${key.accountId}`
  return (
    <>
      <Line apiKey={key} />
      <Actions apiKey={key} act={act} />
      <Cost apiKey={key} />
      <section>
        <Facts>
          <Fact name="Account">
            <Link to={`/keys?account=${key.accountId}`}>{key.accountName}</Link>
          </Fact>
          <Fact name="Key">
            <code>{maskOf(key)}</code> <StateTags apiKey={key} />
          </Fact>
          <Fact name="Id">
            <code>{key.id}</code> <CopyButton text={key.id} what="id" />
          </Fact>
          <Fact name="Created">
            <Time ms={key.createdAtMs} />
            {key.createdBy === null ? null : <span className="soft"> by {key.createdBy}</span>}
          </Fact>
          <Fact name="Last used">
            <Time ms={key.lastUsedAtMs} />
          </Fact>
          <Fact name="30 days">
            <Link to={`/requests?${ofKey}`}>{plural(key.requests, 'request')}</Link>
            {', '}
            <Link to={`/usage?${ofKey}`}>
              <Money nano={key.costNanoUsd} unpriced={key.unpricedRequests} />
            </Link>
          </Fact>
          <Fact name="Models">{key.models === null ? 'all' : key.models.join(', ')}</Fact>
          <Fact name="Tools">{toolsText(key.allowTools)}</Fact>
          <Fact name="Replaces">{key.replaces === null ? null : <code>{key.replaces}</code>}</Fact>
        </Facts>
      </section>
      <DrawerSection title="Limits now">
        {limits.length === 0 ? (
          <p className="soft">No limit of its own, and none of the plan {plan.name}.</p>
        ) : (
          <ul className="limits panel">
            {limits.map((limit) => (
              <li key={`${limit.scope} ${limit.kind}`}>
                <LimitBar limit={limit} />
              </li>
            ))}
          </ul>
        )}
      </DrawerSection>
      <LabelHistory history={labelHistory} />
    </>
  )
}

const TONES = { live: 'good', expired: 'warn', revoked: 'bad' } as const

/** `live · search · $1.20 in 30 d · used 2 min ago`. */
function Line({ apiKey: key }: { readonly apiKey: Key }) {
  return (
    <Summary>
      <span className={`status ${TONES[key.state]}`}>{key.state}</span>
      <Name text={key.accountName} />
      <span>
        <Money nano={key.costNanoUsd} unpriced={key.unpricedRequests} /> in 30 d
      </span>
      <span>
        {key.lastUsedAtMs === null ? (
          'never used'
        ) : (
          <>
            used <Ago ms={key.lastUsedAtMs} />
          </>
        )}
      </span>
    </Summary>
  )
}

/** What the key has cost day by day; nothing without requests. */
function Cost({ apiKey: { id, accountId } }: { readonly apiKey: Key }) {
  const asked = { account: accountId, keyId: id, range: '30d', by: 'day', group: 'model' }
  const { data } = useResource('/usage', asked)
  return data === null ? null : <CostChart title="Cost by model" usage={data} />
}

function LabelHistory({ history }: { readonly history: KeyDetailReply['labelHistory'] }) {
  return (
    <DrawerSection title="Labels over time">
      <ol className="stack gap-4">
        {history.map(({ atMs, by, labels }) => (
          <li key={atMs} className="row spread">
            <span>
              <Time ms={atMs} /> {by === null ? null : <span className="soft">by {by}</span>}
            </span>
            <span>
              {Object.keys(labels).length === 0 ? <span className="soft">none</span> : null}
              <LabelTags labels={labels} />
            </span>
          </li>
        ))}
      </ol>
    </DrawerSection>
  )
}

function toolsText(tools: readonly string[] | null): string {
  if (tools === null) return 'as the gateway allows'
  return tools.length === 0 ? 'none' : tools.join(', ')
}

function Actions({ apiKey: key, act }: Pick<DrawerProps, 'act'> & { readonly apiKey: Key }) {
  const { changesKeys, readsMembers } = useRights()
  const mayChange = changesKeys && key.state !== 'revoked'
  return (
    <p className="row">
      {mayChange ? (
        <>
          <Button onClick={() => act('edit', key)}>Edit</Button>
          <Button onClick={() => act('rotate', key)}>Rotate</Button>
          <Button tone="danger" onClick={() => act('revoke', key)}>
            Revoke
          </Button>
        </>
      ) : null}
      {readsMembers ? (
        <Link to={`/audit?target=${key.id}&account=${key.accountId}`}>Who changed it</Link>
      ) : null}
    </p>
  )
}

/** The name of a key in a list. */
export function KeyName({ apiKey }: { readonly apiKey: Key }) {
  return (
    <>
      <Name text={apiKey.name} strong />
      <StateTags apiKey={apiKey} />
      {apiKey.models === null ? null : (
        <span className="tag" title={apiKey.models.join(', ')}>
          {apiKey.models.length === 1 ? apiKey.models[0] : `${apiKey.models.length} models`}
        </span>
      )}
    </>
  )
}

/** Nothing for a key that works and has no end. */
function StateTags({ apiKey }: { readonly apiKey: Key }) {
  const { state, expiresAtMs, replacedBy } = apiKey
  if (state !== 'live') return <span className={`tag ${state}`}>{state}</span>
  const expires = expiresAtMs === null ? null : until(expiresAtMs, Date.now())
  return (
    <>
      {replacedBy === null ? null : <span className="tag warn">replaced</span>}
      {expires === null ? null : (
        <span className="tag">expires {expires.startsWith('in ') ? expires : `on ${expires}`}</span>
      )}
    </>
  )
}

/** `team=research`, a tag for each. */
function LabelTags({ labels }: { readonly labels: Key['labels'] }) {
  return Object.entries(labels).map(([name, value]) => (
    <span className="tag" key={name}>
      {name}={value}
    </span>
  ))
}
