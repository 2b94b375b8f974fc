/** The selection of the account whose data an administrator sees. */
import { useResource } from '../api/load-resource.js'
import { setQuery } from '../routing/location.js'
import { useScope } from './shown-account.js'
import { useAccount } from './session.js'

const SHOWN = 200

/** The own account, all accounts, or one of the newest; further ones are on the page of accounts. */
export function AccountSwitch({ hasAll }: { readonly hasAll: boolean }) {
  const scope = useScope()
  const me = useAccount()
  const { data } = useResource('/accounts', { limit: SHOWN })
  const others = (data?.accounts ?? []).filter(({ id }) => id !== me.id)
  const known = scope === null || scope === 'all' || others.some(({ id }) => id === scope)
  return (
    <select
      className={scope === null ? 'filter' : 'filter set'}
      aria-label="Account"
      value={scope ?? ''}
      // A key belongs to one account.
      onChange={(event) => setQuery({ account: event.target.value, key: null, request: null })}
    >
      <option value="">My account</option>
      {hasAll || scope === 'all' ? <option value="all">All accounts</option> : null}
      {known ? null : <option value={scope}>{scope}</option>}
      {others.map(({ id, email }) => (
        <option key={id} value={id}>
          {email}
        </option>
      ))}
    </select>
  )
}
