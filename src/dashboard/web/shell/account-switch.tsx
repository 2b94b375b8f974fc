/**
 * The account that the pages show, chosen at the head of the rail from a list with a search: Enter takes the
 * first match. The server searches names, labels and members; `All accounts` is on top only while the text
 * begins it.
 */
import { useState } from 'react'
import type { TreeRow } from '../../../control/dashboard/schema/schema.js'
import { useResource } from '../api/use-resource.js'
import { Icon } from '../components/button.js'
import { Picker, type Entry } from '../components/picker.js'
import { dollars } from '../format/number.js'
import { accountOfPath, go, setFilter, useLocation } from '../routing.js'
import { useAccount, useRights, useScope, useSession, withScope } from './session.js'

const ALL = { id: 'all', label: 'All accounts' }

/** Pages of an account that have no view of another, or none of all: a choice leads to the overview. */
const OF_ONE = ['/me', '/runs', '/settings', '/operations', '/providers', '/users', '/configuration']

/** Shows the account on this page, or on the overview. */
function show(account: string | null, path: string): void {
  if (accountOfPath(path) !== null) go(account === null ? '/accounts' : `/accounts/${account}`)
  else if (OF_ONE.includes(path)) go(withScope('/', account))
  // A key belongs to one account.
  else setFilter({ account, own: null, key: null, request: null })
}

/** The button with the name of the account, and the list. */
export function AccountSwitch() {
  const scope = useScope()
  const { path } = useLocation()
  const me = useAccount()
  const { readsGateway, readsAccounts } = useRights()
  const { accounts: own } = useSession().session
  const [open, setOpen] = useState(false)
  const [text, setText] = useState('')
  const search = text.trim()
  const found = useResource('/account-tree', { search }, { enabled: readsAccounts && open })
  const shown = useResource('/account', { account: scope }, { enabled: scope !== 'all' }).data
  const words = search.toLowerCase()
  const isFresh = !found.stale
  const rank = ({ name }: TreeRow): number => (name === words ? 0 : name.startsWith(words) ? 1 : 2)
  const rows = isFresh ? [...(found.data?.rows ?? [])].sort((a, b) => rank(a) - rank(b)) : []
  const listed = rows.map((row): Entry => {
    const path = [...row.above, row.name].join(' › ')
    return { id: row.name, label: path, note: dollars(row.costNanoUsd) }
  })
  const mine = own
    .filter(({ name }) => name.toLowerCase().includes(words))
    .map(({ name }): Entry => ({ id: name, label: name }))
  const isAllFirst = readsGateway && ALL.label.toLowerCase().startsWith(words)
  const known = new Set(listed.map(({ id }) => id))
  const rest = readsGateway ? [] : mine.filter(({ id }) => !known.has(id))
  const entries = [...(isAllFirst ? [ALL] : []), ...listed, ...rest]
  const end = (): void => {
    setOpen(false)
    setText('')
  }
  const usual = own.find(({ id }) => id === me.id)?.name
  const take = ({ id }: Entry): void => {
    const isUsual = id === (readsGateway ? 'all' : usual)
    show(isUsual ? null : id, path)
    end()
  }
  const name = scope === 'all' ? ALL.label : (shown?.name ?? scope ?? usual ?? 'My account')
  return (
    <Picker
      trigger={
        <button type="button" className="filter account row line spread" aria-label={`Account: ${name}`}>
          <span className="cut" title={name}>
            {name}
          </span>
          <Icon name="down" size={12} />
        </button>
      }
      label="accounts"
      hint="Name, label or member"
      {...{ entries, text, setText, open, take }}
      isLoading={readsAccounts && (found.data === null || found.stale)}
      setOpen={(next) => (next ? setOpen(true) : end())}
    />
  )
}
