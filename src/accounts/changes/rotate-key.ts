/**
 * Replaces a key by a new one with the same settings: how long both work, and the transaction. `decide.ts`
 * has what the new key gets.
 */
import type { JsonValue } from '../../base/json.js'
import type { Account, ApiKey, KeyReference } from '../account.js'
import { changedKeys, gone, isFull, isTaken, maxKeysOf, namedFreely, type Changing } from './change-keys.js'
import { decideRotation, freshKey } from './decide.js'
import { checkedValue, numberType } from './field-types.js'
import { Refusal } from './refusal.js'

/** Time for which an account may have one key more than its plan allows. */
export const ROTATION_MS = 24 * 3_600_000

/** How long an old key works beside the new one, in seconds, 30 days at most; 0: it ends at once. */
export const OVERLAP_SECONDS = numberType(0, 30 * 24 * 3_600)

/** The new key, and when the old one ends, in ms since 1970; null: never. */
interface Rotated {
  readonly key: ApiKey
  readonly secret: string
  readonly oldEndsAtMs: number | null
}

/**
 * Replaces a key by a new one with the same settings. `overlap`: how long the old key works beside it, as
 * `OVERLAP_SECONDS`, which checks it; undefined: until it is revoked, or for 24 hours if the account then has
 * more keys than its plan allows. A rotation may exceed the plan's number of keys by one. Throws as
 * `createKey` does.
 */
export async function rotateKey(
  changing: Changing,
  account: Account,
  { key: { id }, overlap }: { readonly key: KeyReference; readonly overlap?: JsonValue },
): Promise<Rotated> {
  const overlapMs =
    overlap === undefined ? null : checkedValue(OVERLAP_SECONDS, overlap, 'overlap_seconds') * 1_000
  const { store, plans, bounds } = changing
  const latestMs = bounds?.of === 'token' ? bounds.endsAtMs : Infinity
  const fresh = freshKey()
  const old = await store.keyById(account.id, id)
  const ends = { atMs: Infinity }
  const key = await namedFreely(old?.name ?? '', (name) =>
    changedKeys(changing, account, {
      reads: { keys: [name], keyIds: [id] },
      fresh,
      decide(state, context) {
        const former = state.keysById.get(id)
        if (former === undefined) return { refuse: gone(former) }
        if (isTaken(state, name, context, id)) return { refuse: 'taken' }
        const mayStay = state.liveKeys < maxKeysOf(plans, account.plan)
        const lasts = overlapMs ?? (mayStay ? Infinity : ROTATION_MS)
        const decided = decideRotation(former, { name, fresh, overlapMs: lasts, latestMs }, context)
        if (decided instanceof Refusal) return { refuse: decided }
        if (isFull(changing, account, state, 1)) return { refuse: 'full' }
        ends.atMs = decided.endsAtMs
        return { write: { newKeys: decided.newKeys, keys: decided.keys, audit: decided.audit } }
      },
    }),
  )
  return { key, secret: fresh.secret ?? '', oldEndsAtMs: ends.atMs === Infinity ? null : ends.atMs }
}
