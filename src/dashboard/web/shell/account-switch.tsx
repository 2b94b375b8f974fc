/**
 * The account that the page shows. Administrators and auditors choose of all accounts, which the server
 * searches; other users of those that they are members of.
 */
import { useState } from 'react'
import { useResource } from '../api/use-resource.js'
import { Icon } from '../components/button.js'
import { Picker, type Entry } from '../components/picker.js'
import { setFilter } from '../routing.js'
import { useAccount, useRights, useScope, useSession } from './session.js'

const SHOWN = 50

/** The button with the name of the account, and the list. `hasAll`: the page can show all accounts. */
export function AccountSwitch({ hasAll }: { readonly hasAll: boolean }) {
  const scope = useScope()
  const me = useAccount()
  const { readsGateway } = useRights()
  const { accounts: own } = useSession().session
  const [open, setOpen] = useState(false)
  const [text, setText] = useState('')
  const found = useResource('/accounts', { search: text, limit: SHOWN }, { enabled: readsGateway && open })
  const shown = useResource('/account', { account: scope }, { enabled: scope !== 'all' }).data
  const mine = { id: me.id, label: own.find(({ id }) => id === me.id)?.name ?? 'My account' }
  const all = readsGateway
    ? [
        ...(hasAll ? [{ id: 'all', label: 'All accounts' }] : []),
        { id: me.id, label: 'My account' },
        ...(found.data?.accounts ?? []).map(({ id, email }) => ({ id, label: email })),
      ]
    : [mine, ...own.map(({ id, name }) => ({ id, label: name }))]
  const wanted = text.trim().toLowerCase()
  const entries = all.filter(({ id, label }, at) => {
    const isFirst = all.findIndex((each) => each.id === id) === at
    return isFirst && (readsGateway || label.toLowerCase().includes(wanted))
  })
  const end = (): void => {
    setOpen(false)
    setText('')
  }
  const take = ({ id }: Entry): void => {
    const isUsual = id === (readsGateway ? 'all' : me.id)
    // A key belongs to one account.
    setFilter({ account: isUsual ? null : id, key: null, request: null })
    end()
  }
  const name = scope === 'all' ? 'All accounts' : (shown?.name ?? scope ?? mine.label)
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
      hint="Name or e-mail"
      {...{ entries, text, setText, open, take }}
      isLoading={found.data === null && readsGateway}
      setOpen={(next) => (next ? setOpen(true) : end())}
    />
  )
}
