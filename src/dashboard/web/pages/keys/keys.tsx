/** The list of keys with their usage, limits and actions. */
import { useMemo, useState } from 'react'
import type { Key, LimitLevel } from '../../../server/schema/schema.js'
import { useList } from '../../api/cache.js'
import { Button, CreateButton, IconButton } from '../../components/button.js'
import { Menu } from '../../components/menu.js'
import { Search } from '../../components/form.js'
import { LimitBar, Limits, shareOf, useLimits } from '../../components/limits.js'
import { report } from '../../components/notices.js'
import { Empty } from '../../components/states.js'
import { CREATED, DataTable, RECENT_USE, type Column } from '../../components/data-table.js'
import { Name, Time } from '../../components/values.js'
import { clockTime, until } from '../../format/time.js'
import { go, setFilter, setQuery, useLocation } from '../../routing.js'
import { Page } from '../../shell/page.js'
import { useRights, useScope, withScope, useSession, useAccount } from '../../shell/session.js'
import { CreateKey, EditKey, RevokeKey, RotateKey } from './key-dialogs.js'
import { maskOf } from './key-draft.js'

/** Keys per page; older ones are loaded on demand. */
const PAGE_KEYS = 100

type Open = { readonly act: 'edit' | 'rotate' | 'revoke'; readonly key: Key } | null

function columnsOf(limits: readonly LimitLevel[]): readonly Column<Key>[] {
  const [name, ...others] = COLUMNS
  return name === undefined ? COLUMNS : [name, ...others, limitColumn(limits)]
}

/** The most used limit of a key. */
function limitColumn(limits: readonly LimitLevel[]): Column<Key> {
  const of = (id: string): LimitLevel | undefined =>
    limits
      .filter(({ keyId }) => keyId === id)
      .sort((a, b) => shareOf(b) - shareOf(a))
      .at(0)
  return {
    id: 'limits',
    head: 'Limits',
    cell: ({ id }) => {
      const limit = of(id)
      return limit === undefined ? (
        <span className="soft">of the plan</span>
      ) : (
        <LimitBar limit={limit} isCompact />
      )
    },
    className: 'limit-cell',
    minor: true,
  }
}

const COLUMNS: readonly Column<Key>[] = [
  {
    id: 'name',
    head: 'Name',
    cell: (key) => <NameCell apiKey={key} />,
    sort: 'name',
    text: true,
  },
  { id: 'key', head: 'Key', cell: (key) => <code>{maskOf(key)}</code>, extra: true },
  CREATED,
  {
    id: 'used',
    head: 'Last used',
    cell: ({ lastUsedAtMs }) => <Time ms={lastUsedAtMs} />,
    sort: 'lastUsedAt',
    first: 'desc',
  },
  ...RECENT_USE,
]

function NameCell({ apiKey }: { apiKey: Key }) {
  const { name, state, expiresAtMs, models, labels, replacedBy } = apiKey
  const expires = expiresAtMs === null ? null : until(expiresAtMs, Date.now())
  return (
    <>
      <Name text={name} strong />
      {state === 'live' ? null : <span className={`tag ${state}`}>{state}</span>}
      {state === 'live' && replacedBy !== null ? <span className="tag warn">replaced</span> : null}
      {state === 'live' && expires !== null ? (
        <span className="tag">expires {expires.startsWith('in ') ? expires : `on ${expires}`}</span>
      ) : null}
      {models === null ? null : (
        <span className="tag" title={models.join(', ')}>
          {models.length === 1 ? models[0] : `${models.length} models`}
        </span>
      )}
      {Object.entries(labels).map(([label, value]) => (
        <span className="tag" key={label}>
          {label}={value}
        </span>
      ))}
    </>
  )
}

/** The page of keys. */
export function KeysPage() {
  const { query } = useLocation()
  const scope = useScope()
  const { makesKeys } = useRights()
  const { refresh } = useSession()
  const [dialog, setDialog] = useState<Open>(null)
  const search = query.get('search') ?? ''
  const state = query.get('state') === 'all' ? 'all' : null
  const asked = { account: scope, search, state, limit: PAGE_KEYS }
  const limits = useLimits(scope)
  const columns = useMemo(() => columnsOf(limits ?? []), [limits])
  const list = useList('/keys', asked, ({ keys }) => keys, { enabled: scope !== 'all' })
  const creating = query.get('create') !== null
  const close = (): void => {
    setDialog(null)
    void refresh()
  }
  const stopCreating = (): void => {
    setQuery({ create: null }, { replace: true })
    close()
  }
  const openForm = (): void => setQuery({ create: '1' })
  return (
    <Page
      title="Keys"
      purpose="Programs send a key with each request. Usage, limits and revocation are per key."
      scoped="one"
      action={makesKeys && <CreateButton text="Create key" onClick={openForm} />}
      filters={
        <KeyFilters
          search={search}
          showsRevoked={state === 'all'}
          isOwn={scope === null && makesKeys}
        />
      }
    >
      {scope === 'all' ? (
        <Empty title="Choose an account">
          <p>Keys are listed for one account at a time.</p>
        </Empty>
      ) : (
        <>
          <Limits limits={limits} withKeys={false} />
          <DataTable
            caption="Keys"
            columns={columns}
            list={list}
            unit="key"
            holds="Keys keep working."
            empty={<NoKeys isFiltered={search !== ''} isOwn={makesKeys} />}
            keyOf={({ id }) => id}
            faded={(key) => key.state !== 'live'}
            actions={(key) => <RowMenu apiKey={key} scope={scope} open={setDialog} />}
          />
        </>
      )}
      {creating ? <CreateKey onClose={stopCreating} /> : null}
      {dialog === null ? null : <KeyDialog dialog={dialog} onClose={close} />}
    </Page>
  )
}

function NoKeys({ isFiltered, isOwn }: { readonly isFiltered: boolean; readonly isOwn: boolean }) {
  if (isFiltered) {
    return (
      <Empty title="No keys match this search">
        <p>
          <Button onClick={() => setFilter({ search: null })}>Clear search</Button>
        </p>
      </Empty>
    )
  }
  return (
    <Empty title="No keys yet">
      <p>
        A key lets a program use the models of this gateway. Its secret is shown once, with a
        request to paste.
      </p>
      {isOwn ? (
        <p>
          <Button onClick={() => setQuery({ create: '1' })}>Create your first key</Button>
        </p>
      ) : null}
    </Empty>
  )
}

interface RowMenuProps {
  readonly apiKey: Key
  readonly scope: string | null
  readonly open: (dialog: Open) => void
}

function RowMenu({ apiKey: key, scope, open }: RowMenuProps) {
  const { makesKeys } = useRights()
  const look = (path: string) => () => go(withScope(`${path}?key=${key.id}`, scope))
  const change = [
    { label: 'Edit', choose: () => open({ act: 'edit', key }) },
    { label: 'Rotate', choose: () => open({ act: 'rotate', key }) },
    { label: 'Revoke', danger: true, choose: () => open({ act: 'revoke', key }) },
  ] as const
  return (
    <Menu
      trigger={<IconButton icon="more" label={`Actions for ${key.name}`} />}
      items={[
        { label: 'Usage', choose: look('/usage') },
        { label: 'Requests', choose: look('/requests') },
        ...(key.state === 'revoked' || !makesKeys ? [] : change),
      ]}
    />
  )
}

interface KeyDialogProps {
  readonly dialog: NonNullable<Open>
  readonly onClose: () => void
}

function KeyDialog({ dialog: { act, key }, onClose }: KeyDialogProps) {
  if (act === 'edit') return <EditKey apiKey={key} onClose={onClose} />
  if (act === 'rotate') return <RotateKey apiKey={key} onClose={onClose} />
  return (
    <RevokeKey
      apiKey={key}
      onClose={onClose}
      onDone={() => report(`Revoked. ${key.name} stopped working at ${clockTime(Date.now())}.`)}
    />
  )
}

interface KeyFiltersProps {
  readonly search: string
  readonly showsRevoked: boolean
  readonly isOwn: boolean
}

/** The search, the switch for revoked keys, and a note about the plan. */
function KeyFilters({ search, showsRevoked, isOwn }: KeyFiltersProps) {
  return (
    <>
      <Search label="Search keys" value={search} />
      <button
        type="button"
        className="filter toggle"
        aria-pressed={showsRevoked}
        onClick={() => setFilter({ state: showsRevoked ? null : 'all' })}
      >
        Show revoked
      </button>
      {isOwn ? <PlanNote /> : null}
    </>
  )
}

/** The plan's number of keys, and advice if it is used up. */
function PlanNote() {
  const { plan, liveKeys } = useAccount()
  if (plan.maxKeys === null) return null
  const isFull = liveKeys >= plan.maxKeys
  return (
    <p className={isFull ? 'filter-note warn' : 'filter-note'}>
      {liveKeys} of {plan.maxKeys} keys of the plan {plan.name} (${plan.priceUsd} a month)
      {isFull ? '. Revoke a key that is not used, or ask for a larger plan.' : ''}
    </p>
  )
}
