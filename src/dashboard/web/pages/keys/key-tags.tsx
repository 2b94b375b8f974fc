/** Tags of a key: its state and its labels. */
import type { Key } from '../../../server/schema/schema.js'
import { until } from '../../format/time.js'

/** Nothing for a key that works and has no end. */
export function StateTags({ apiKey }: { readonly apiKey: Key }) {
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
export function LabelTags({ labels }: { readonly labels: Key['labels'] }) {
  return Object.entries(labels).map(([name, value]) => (
    <span className="tag" key={name}>
      {name}={value}
    </span>
  ))
}
