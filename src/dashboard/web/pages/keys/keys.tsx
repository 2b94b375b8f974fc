/** The list of keys of an account, or of all, with their use, filters, drawer and actions. */
import { useMemo, useState } from 'react'
import type { Key, LimitLevel } from '../../../../control/dashboard/schema/schema.js'
import { useList, useResource } from '../../api/use-resource.js'
import { Button, CreateButton, IconButton } from '../../components/button.js'
import { CREATED, names, RECENT_USE, times } from '../../components/columns.js'
import { DataTable, type Column } from '../../components/data-table.js'
import { FilterBar, NoMatches, type ListFilter } from '../../components/filter-bar.js'
import { LimitBar, Limits, shareOf, useLimits } from '../../components/limits.js'
import { Menu } from '../../components/menu.js'
import { optionsOf } from '../../components/options.js'
import { Empty } from '../../components/loading-states.js'
import { Day, Name, TwoLines } from '../../components/values.js'
import { go, keyLink, setQuery, useLocation } from '../../routing.js'
import { Page } from '../../shell/page.js'
import { priceText } from '../../shell/navigation-rail.js'
import { useAccount, useRights, useScope, useSession } from '../../shell/session.js'
import { useKeyFilters } from '../key-filters.js'
import { CreateKey, KeyDialog, type KeyAct } from './key-dialogs.js'
import { limitTexts, maskOf } from './key-draft.js'
import { KeyDrawer, KeyName } from './key-drawer.js'

const PAGE_KEYS = 50

/** The name; below it the account, the labels, and when the key ends. */
function nameColumn(withAccount: boolean): Column<Key> {
  return {
    id: 'name',
    head: 'Name',
    cell: (key) => (
      <TwoLines
        first={<KeyName apiKey={key} />}
        second={[
          withAccount ? key.accountName : '',
          ...Object.entries(key.labels).map(([name, value]) => `${name}=${value}`),
        ]
          .filter((text) => text !== '')
          .join(' · ')}
      />
    ),
    sort: 'name',
    text: true,
  }
}

const [NAME, NAME_OF_ALL] = [nameColumn(false), nameColumn(true)]
/** The account alone, to sort by it. */
const ACCOUNT: Column<Key> = {
  ...names<Key>('account', 'Account', ({ accountName }) => accountName),
  isOptional: true,
}
const COLUMNS: readonly Column<Key>[] = [
  { id: 'key', head: 'Key', cell: (key) => <code>{maskOf(key)}</code>, extra: true },
  {
    id: 'by',
    head: 'Created by',
    cell: ({ createdBy }) => <Name text={createdBy ?? ''} />,
    text: true,
    minor: true,
    isOptional: true,
  },
  CREATED,
  times('expiresAt', 'Expires', ({ expiresAtMs }) => expiresAtMs, {
    cell: ({ expiresAtMs }) => <Day ms={expiresAtMs} />,
    first: 'asc',
    minor: true,
  }),
  times('lastUsedAt', 'Last used', ({ lastUsedAtMs }) => lastUsedAtMs, { extra: true }),
  ...RECENT_USE,
]

/** The limits that a key has of its own; how far they are used is counted for one account at a time. */
const OWN_LIMITS: Column<Key> = {
  id: 'limits',
  head: 'Limits',
  cell: ({ limits }) => {
    const texts = limitTexts(limits)
    return texts.length === 0 ? <span className="soft">plan</span> : <Name text={texts.join(', ')} />
  },
  text: true,
  minor: true,
}

/** The keys of an account, on its page; a click opens one on the page of keys. */
export function KeysOf({ account }: { readonly account: string }) {
  const { query } = useLocation()
  return (
    <DataTable
      caption="Keys"
      columns={[NAME, ...COLUMNS, OWN_LIMITS]}
      list={useKeys(account, query)}
      unit="key"
      unaffected="Keys keep working."
      empty={<p className="soft">No keys yet.</p>}
      keyOf={({ id }) => id}
      faded={({ state }) => state !== 'live'}
      open={(key) => go(keyLink(key))}
    />
  )
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

export function KeysPage() {
  const { query } = useLocation()
  const scope = useScope()
  const { changesKeys, makesKeys } = useRights()
  const { refresh } = useSession()
  const [dialog, setDialog] = useState<{ act: KeyAct; key: Key } | null>(null)
  const filters = useFilters()
  const list = useKeys(scope, query)
  const limits = useLimits(scope)
  const columns = useColumns(scope, limits)
  const [id, edit] = [query.get('key'), query.get('edit')]
  const close = (): void => {
    setDialog(null)
    setQuery({ create: null, edit: null }, { replace: true })
    void refresh()
  }
  return (
    <Page
      title="Keys"
      purpose="Programs send a key with each request. Usage, limits and revocation are per key."
      action={makesKeys && <CreateButton text="Create key" onClick={() => setQuery({ create: '1' })} />}
      filters={
        <FilterBar search={{ label: 'Search keys', hint: 'Name, id or part of the key' }} filters={filters}>
          {scope === null && makesKeys ? <PlanNote /> : null}
        </FilterBar>
      }
    >
      {scope === 'all' ? null : <Limits limits={limits} withKeys={false} />}
      <DataTable
        caption="Keys"
        columns={columns}
        list={list}
        unit="key"
        unaffected="Keys keep working."
        empty={
          <NoMatches what="keys" filters={filters}>
            <NoKeys mayCreate={makesKeys} />
          </NoMatches>
        }
        keyOf={(key) => key.id}
        faded={(key) => key.state !== 'live'}
        open={(key) => setQuery({ key: key.id, edit: null })}
        actions={(key) => (
          <RowMenu apiKey={key} mayChange={changesKeys} open={(act) => setDialog({ act, key })} />
        )}
      />
      {query.has('create') ? <CreateKey onClose={close} /> : null}
      {id !== null && dialog === null && edit === null ? (
        <KeyDrawer
          id={id}
          account={scope}
          act={(act, key) => setDialog({ act, key })}
          onClose={() => setQuery({ key: null })}
        />
      ) : null}
      {dialog === null ? null : (
        <KeyDialog act={dialog.act} id={dialog.key.id} account={dialog.key.accountId} onClose={close} />
      )}
      {dialog === null && id !== null && edit !== null ? (
        <LinkedForm id={id} edit={edit} account={scope} onClose={close} />
      ) : null}
    </Page>
  )
}

interface LinkedFormProps {
  readonly id: string
  /** The value of `edit` in the address. */
  readonly edit: string
  readonly account: string | null
  readonly onClose: () => void
}

/** The form that a link opens, at its limits for `edit=limits`. */
function LinkedForm({ edit, ...key }: LinkedFormProps) {
  return <KeyDialog act={edit === 'limits' ? 'limits' : 'edit'} {...key} />
}

function useColumns(scope: string | null, limits: ReturnType<typeof useLimits>) {
  return useMemo(
    () =>
      scope === 'all'
        ? [NAME_OF_ALL, ACCOUNT, ...COLUMNS, OWN_LIMITS]
        : [NAME, ...COLUMNS, limitColumn(limits ?? [])],
    [scope, limits],
  )
}

function useKeys(account: string | null, query: URLSearchParams) {
  const of = (name: string): string | null => query.get(name)
  const asked = {
    ...{ account, search: of('search'), state: of('state'), label: of('label') },
    ...{ model: of('model'), createdBy: of('createdBy'), limit: PAGE_KEYS },
  }
  const options = { sortable: true, usualSort: '-createdAt' }
  return useList('/keys', asked, ({ keys }) => keys, options)
}

const STATES = [
  { value: 'expired', label: 'expired' },
  { value: 'revoked', label: 'revoked' },
  { value: 'all', label: 'all, with revoked ones' },
]

function useFilters(): readonly ListFilter[] {
  const models = useResource('/models').data?.models ?? []
  const { label, maker } = useKeyFilters()
  return [
    { name: 'state', label: 'State', options: STATES },
    label,
    { name: 'model', label: 'May use model', options: optionsOf(models.map(({ id }) => id)), isFree: true },
    maker,
  ]
}

function NoKeys({ mayCreate }: { readonly mayCreate: boolean }) {
  return (
    <Empty title="No keys yet">
      <p>
        A key lets a program use the models of this gateway. Its secret is shown once, with a request to
        paste.
      </p>
      {mayCreate ? (
        <p>
          <Button onClick={() => setQuery({ create: '1' })}>Create your first key</Button>
        </p>
      ) : null}
    </Empty>
  )
}

interface RowMenuProps {
  readonly apiKey: Key
  readonly mayChange: boolean
  readonly open: (act: KeyAct) => void
}

function RowMenu({ apiKey: key, mayChange, open }: RowMenuProps) {
  const look = (path: string) => () => go(`${path}?key=${key.id}&account=${key.accountId}`)
  const change = [
    { label: 'Edit', choose: () => open('edit') },
    { label: 'Rotate', choose: () => open('rotate') },
    { label: 'Revoke', danger: true, choose: () => open('revoke') },
  ] as const
  return (
    <Menu
      trigger={<IconButton icon="more" label={`Actions for ${key.name}`} />}
      items={[
        { label: 'Usage', choose: look('/usage') },
        { label: 'Requests', choose: look('/requests') },
        ...(key.state === 'revoked' || !mayChange ? [] : change),
      ]}
    />
  )
}

/** The plan's number of keys, and advice if it is used up. */
function PlanNote() {
  const { plan, liveKeys } = useAccount()
  if (plan.maxKeys === null) return null
  const isFull = liveKeys >= plan.maxKeys
  return (
    <p className={`filter-note end ${isFull ? 'warn' : 'soft'}`}>
      {liveKeys} of {plan.maxKeys} keys of the plan {plan.name}
      {priceText(plan.priceUsd)}
      {isFull ? '. Revoke a key that is not used, or ask for a larger plan.' : ''}
    </p>
  )
}
