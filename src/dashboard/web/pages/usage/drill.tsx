/**
 * What the page Usage shows: the account with those below it, a member, a key, a model; the grouping; and the
 * way from one to the next. All of it is in the address, so that Back undoes one step.
 */
import type { GroupRow } from '../../../../control/dashboard/schema/schema.js'
import { urlOf, type Query } from '../../api/client.js'
import { useResource } from '../../api/use-resource.js'
import { go, Link, setFilter, useLocation } from '../../routing.js'
import { TreeChoice } from '../../shell/tree-choice.js'
import { useRights, useScope, useTree } from '../../shell/session.js'

/** The groupings, `below` for accounts with all below them. */
export const GROUPINGS = [
  { value: 'below', label: 'account' },
  { value: 'key', label: 'key' },
  { value: 'model', label: 'model' },
  { value: 'member', label: 'member' },
  { value: 'account', label: 'single account' },
  { value: 'parent', label: 'parent account' },
  { value: 'root', label: 'top account' },
  { value: 'upstream', label: 'upstream' },
  { value: 'client_format', label: 'client format' },
  { value: 'program', label: 'program' },
  { value: 'user', label: 'person who signed in' },
  { value: 'month', label: 'month' },
] as const

/** By `below`: requests of the account itself. */
const ITSELF = '(itself)'

/** The words for a grouping. */
export function nameOfGrouping(group: string): string {
  const [, list, name] = /^(label|dimension):(.+)$/.exec(group) ?? []
  if (list !== undefined) return list === 'label' ? `label ${name}` : String(name)
  return GROUPINGS.find(({ value }) => value === group)?.label ?? group
}

/** What is shown. */
interface Drill {
  readonly scope: string | null
  readonly group: string
  /** The grouping is the usual one, not one of the address. */
  readonly isUsual: boolean
  /** The query for the server, without the range. */
  readonly query: Query
}

/** Groupings whose sums are kept for single keys. */
function isOfKeys(group: string): boolean {
  return ['key', 'model', 'month', 'program', 'user'].includes(group) || group.startsWith('dimension:')
}

/** What the address selects. */
export function useDrill(): Drill {
  const scope = useScope()
  const { isTree } = useTree()
  const { query } = useLocation()
  const [member, key, model] = [query.get('member'), query.get('key'), query.get('model')]
  const usual = key !== null ? 'model' : isTree || scope === 'all' ? 'below' : 'key'
  const asked = query.get('group')
  const group = asked ?? usual
  const ofKeys = key === null ? 'key' : 'model'
  return {
    ...{ scope, isUsual: asked === null },
    group: (key !== null || member !== null) && !isOfKeys(group) ? ofKeys : group,
    query: { account: scope, tree: isTree ? 'true' : null, member, keyId: key, model },
  }
}

/** Whether an account has nothing below it, so that its keys are the better grouping. */
export function isAlone(groups: readonly { readonly id: string }[]): boolean {
  return groups.every(({ id }) => id === ITSELF)
}

/** Groupings with a filter of the same name on the page Requests. */
const SAME_NAMES = ['model', 'key', 'upstream', 'program', 'user', 'member']

/** The filter of Requests that selects a group; null for one that Requests cannot select. */
export function requestsFilter(group: string, { id }: Pick<GroupRow, 'id'>): Record<string, string> | null {
  if (id === '(none)' || id === ITSELF) return null
  if (group === 'client_format') return { format: id }
  if (group.startsWith('label:')) return { label: `${group.slice('label:'.length)}=${id}` }
  if (group.startsWith('dimension:')) return { dimension: `${group.slice('dimension:'.length)}=${id}` }
  if (group === 'account') return { account: id }
  return SAME_NAMES.includes(group) ? { [group]: id } : null
}

/** What the address changes to for the usage of one row; null: the row has nothing below it. */
function stepInto(group: string, { id }: GroupRow, { key }: { key: string | null }) {
  const none = { group: null, search: null, sort: null }
  if (id === ITSELF) return { ...none, own: '1', group: 'key' }
  if (['below', 'parent', 'root'].includes(group)) return { ...none, account: id, own: null }
  if (group === 'account') return { ...none, account: id, own: '1', group: 'key' }
  if (group === 'member') return { ...none, member: id, group: 'key' }
  if (group === 'key') return { ...none, key: id, group: 'model' }
  if (group === 'model' && key === null) return { ...none, model: id, group: 'key' }
  if (group === 'month') return { ...none, range: null, from: `${id}-01`, to: lastDay(id), zone: 'UTC' }
  return null
}

/** The last day of a month `2026-11`. */
function lastDay(month: string): string {
  const [year = 0, number = 1] = month.split('-').map(Number)
  return new Date(Date.UTC(year, number, 0)).toISOString().slice(0, 10)
}

/** The function that opens a row: its own usage, and at the last step its requests. */
export function useOpenRow(
  { scope, group }: Drill,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): (row: GroupRow) => void {
  const { query } = useLocation()
  const [key, model, member] = [query.get('key'), query.get('model'), query.get('member')]
  return (row) => {
    if (row.id === '(none)') return
    const step = stepInto(group, row, { key })
    if (step !== null) {
      setFilter(step)
      document.getElementById('content')?.scrollIntoView()
    } else if (group === 'dimension:run' && scope !== 'all') {
      go(urlOf('/runs', { account: scope, run: row.id }))
    } else {
      const filter = requestsFilter(group, row)
      if (filter === null) return
      go(urlOf('/requests', { account: scope, key, model, member, ...filter, from: fromMs, to: toMs }))
    }
  }
}

interface Crumb {
  readonly text: string
  /** The parameters of the address that this step and those after it have set. */
  readonly without: readonly string[]
  readonly account?: string | null
}

/** The way to what is shown; each step before the last one is a link to it. */
export function Crumbs({ drill }: { readonly drill: Drill }) {
  const { scope } = drill
  const { query } = useLocation()
  const { readsGateway, readsAccounts } = useRights()
  const isOne = scope !== null && scope !== 'all'
  const found = useResource('/account-tree', { search: scope }, { enabled: isOne && readsAccounts }).data
  const row = found?.rows.find(({ id, name }) => id === scope || name === scope)
  const [member, key, model] = [query.get('member'), query.get('key'), query.get('model')]
  const keys = useResource(
    '/keys',
    { account: scope, state: 'all', search: key, limit: 1 },
    { enabled: key !== null },
  )
  const keyName = keys.data?.keys.find(({ id }) => id === key)?.name
  const [ofMember, ofKey] = [
    ['member', 'key', 'model', 'group'],
    ['key', 'model', 'group'],
  ]
  const crumbs: Crumb[] = [
    ...(readsGateway ? [{ text: 'All accounts', account: null, without: [...ofMember, 'own'] }] : []),
    ...(row?.above ?? []).map((text) => ({ text, account: text, without: [...ofMember, 'own'] })),
    ...(isOne ? [{ text: row?.name ?? scope, account: scope, without: ofMember }] : []),
    ...(member === null ? [] : [{ text: member, without: ofKey }]),
    ...(key === null ? [] : [{ text: keyName ?? key, without: ['model', 'group'] }]),
    ...(model === null ? [] : [{ text: model, without: ['group'] }]),
  ]
  return (
    <nav className="crumbs row" aria-label="What is shown">
      {crumbs.map((crumb, at) => (
        <span key={crumb.text} className="row line crumb">
          {at === 0 ? null : <span aria-hidden="true">›</span>}
          {at === crumbs.length - 1 ? (
            <b className="cut" aria-current="page">
              {crumb.text}
            </b>
          ) : (
            <Link className="cut" to={addressOf(query, crumb)}>
              {crumb.text}
            </Link>
          )}
        </span>
      ))}
      {member === null && key === null ? <TreeChoice also={{ group: null }} /> : null}
    </nav>
  )
}

function addressOf(query: URLSearchParams, { without, account }: Crumb): string {
  const next = new URLSearchParams(query)
  for (const name of [...without, 'search', 'sort', 'after', 'page']) next.delete(name)
  if (account === null) next.delete('account')
  else if (account !== undefined) next.set('account', account)
  const text = next.toString()
  return text === '' ? '/usage' : `/usage?${text}`
}
