/** The row of filters of the page of keys. */
import { Search } from '../../components/forms/search-field.js'
import { setQuery } from '../../routing/location.js'
import { useAccount } from '../../shell/session.js'

interface KeyFiltersProps {
  readonly search: string
  readonly showsRevoked: boolean
  readonly isOwn: boolean
}

/** The search, the switch for revoked keys, and a note about the plan. */
export function KeyFilters({ search, showsRevoked, isOwn }: KeyFiltersProps) {
  return (
    <>
      <Search label="Search keys" value={search} />
      <button
        type="button"
        className="filter toggle"
        aria-pressed={showsRevoked}
        onClick={() => setQuery({ state: showsRevoked ? null : 'all' })}
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
