/** Whose figures an administrator looks at. */
import { useResource } from '../api/resource.js'
import { setQuery } from '../routing/place.js'
import { useScope } from './scope.js'
import { useAccount } from './session.js'

const SHOWN = 200

/** Own, everybody's, or one of the newest accounts; the page of accounts leads to all others. */
export function AccountSwitch() {
  const scope = useScope()
  const me = useAccount()
  const { data } = useResource('/accounts', { limit: SHOWN })
  const others = (data?.accounts ?? []).filter(({ id }) => id !== me.id)
  const known = scope === null || scope === 'all' || others.some(({ id }) => id === scope)
  return (
    <select
      className="filter account-switch"
      aria-label="Account"
      value={scope ?? ''}
      onChange={(event) => setQuery({ account: event.target.value })}
    >
      <option value="">My account</option>
      <option value="all">All accounts</option>
      {known ? null : <option value={scope}>{scope}</option>}
      {others.map(({ id, email }) => (
        <option key={id} value={id}>
          {email}
        </option>
      ))}
    </select>
  )
}
