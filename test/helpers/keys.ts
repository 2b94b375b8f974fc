/** Keys of accounts as the command line makes them, with times and limits as the store has them. */
import type { Account, ApiKey, KeyLimits, KeyReference } from '../../src/accounts/account.js'
import * as changes from '../../src/accounts/changes/change-keys.js'
import * as rotation from '../../src/accounts/changes/rotate-key.js'
import type { Plans } from '../../src/accounts/plans.js'
import { shownAmounts } from '../../src/config/schema/limits-schema.js'
import type { JsonObject } from '../../src/base/json.js'
import type { Store } from '../../src/store/store.js'

/** Settings of a new key. */
export type NewKeySettings = Omit<NewKey, 'plans' | 'account' | 'name' | 'now'>

interface NewKey extends Partial<
  Pick<ApiKey, 'expiresAtMs' | 'models' | 'allowTools' | 'labels' | 'createdBy'>
> {
  readonly plans: Plans
  readonly account: Account
  readonly name: string
  readonly limits?: KeyLimits
  readonly now?: () => number
}

/** Creates a key. */
export async function createKey(store: Store, wish: NewKey): Promise<{ key: ApiKey; secret: string }> {
  const { plans, account, now = Date.now, createdBy = 'test' } = wish
  const changing = { store: silent(store), plans, nowMs: now(), actor: { actor: createdBy, address: null } }
  return changes.createKey(changing, account, settingsOf(wish))
}

function settingsOf({ name, expiresAtMs, models, allowTools, labels, limits }: NewKey): JsonObject {
  return {
    name,
    ...(expiresAtMs === undefined ? {} : { expires_at: new Date(expiresAtMs).toISOString() }),
    ...(models === undefined ? {} : { models: [...models] }),
    ...(allowTools === undefined ? {} : { allow_tools: [...allowTools] }),
    ...(labels === undefined ? {} : { labels: { ...labels } }),
    ...(limits === undefined ? {} : { limits: shownAmounts(limits) }),
  }
}

interface Rotation {
  readonly store: Store
  readonly plans: Plans
  readonly account: Account
  readonly old: ApiKey
  readonly overlapMs?: number
  readonly now?: () => number
}

/** Rotates a key. */
export function rotateKey({ store, plans, account, old, overlapMs, now = Date.now }: Rotation) {
  const changing = { store: silent(store), plans, nowMs: now(), actor: { actor: 'test', address: null } }
  const overlap = overlapMs === undefined ? {} : { overlap: overlapMs / 1_000 }
  return rotation.rotateKey(changing, account, { key: old, ...overlap })
}

/** Revokes a key. */
export async function revokeKey(
  store: Store,
  key: KeyReference,
  { now = Date.now }: { readonly now?: () => number } = {},
): Promise<void> {
  const account = await store.accountById(key.accountId)
  if (account === null) throw new Error('the account of the key is missing')
  const changing = { store: silent(store), plans: {}, nowMs: now(), actor: { actor: 'test', address: null } }
  await changes.revokeKey(changing, account, key)
}

/** The store, without entries of the audit trail: those of a test are about its own changes. */
function silent(store: Store): Store {
  const transact: Store['transact'] = (change) => {
    return store.transact({
      ...change,
      decide(state) {
        const decision = change.decide(state)
        return 'write' in decision ? { write: { ...decision.write, audit: [] } } : decision
      },
    })
  }
  return Object.assign(Object.create(store) as Store, { transact })
}
