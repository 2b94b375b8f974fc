/**
 * Replaces a key: the new one has the same rights, and both work until the old one is revoked. A rotation may
 * exceed the plan's number of keys by one; the old key then expires after 24 hours.
 */
import { GatewayError } from '../errors.js'
import type { Store } from '../store/store.js'
import type { AuditEntry } from '../store/audit-trail.js'
import type { Account, ApiKey } from './account.js'
import { createKey, UNLIMITED_KEYS, type CreatedKey, type NewKeySettings } from './create-key.js'
import { type Plans } from './accounts.js'

/** Time for which an account may have one key more than its plan allows. */
export const ROTATION_MS = 24 * 3_600_000

/** Options of a rotation. */
export interface Rotation {
  readonly store: Store
  readonly plans: Plans
  readonly account: Account
  readonly old: ApiKey
  /** Ms since 1970. */
  readonly now: () => number
  /** Entries for the audit trail. */
  readonly audit: (created: ApiKey) => readonly AuditEntry[]
}

/** The new key, and when the old one expires, in ms since 1970; null: never. */
export interface Rotated extends CreatedKey {
  readonly oldEndsAtMs: number | null
}

/**
 * Creates the new key. Throws `malformed_request` if the old key is not active, `plan_limit` if the account
 * already has more keys than its plan allows, and the errors of `createKey`.
 */
export async function rotateKey(rotation: Rotation): Promise<Rotated> {
  const { store, plans, account, old, now, audit } = rotation
  const nowMs = now()
  if (old.revokedAtMs !== undefined || (old.expiresAtMs ?? nowMs + 1) <= nowMs) {
    throw new GatewayError('malformed_request', 'This key no longer works. Create a new one.')
  }
  const maxKeys = plans[account.plan].maxKeys ?? UNLIMITED_KEYS
  const raisedPlans = { ...plans, [account.plan]: { ...plans[account.plan], maxKeys: maxKeys + 1 } }
  const created = await createKey(store, {
    plans: raisedPlans,
    account,
    name: old.name,
    ...settingsLike(old),
    now,
    audit,
  }).catch((error: unknown) => {
    if (error instanceof GatewayError && error.kind === 'plan_limit') throw tooMany(maxKeys)
    throw error
  })
  const isOver = (await store.countKeys(account.id)) > maxKeys
  const endsAtMs = isOver
    ? Math.min(old.expiresAtMs ?? Infinity, nowMs + ROTATION_MS)
    : (old.expiresAtMs ?? null)
  await store.changeKey(old, { replacedBy: created.key.id, expiresAtMs: endsAtMs })
  return { ...created, oldEndsAtMs: endsAtMs }
}

function settingsLike({
  id,
  expiresAtMs,
  models,
  allowTools,
  limits,
  labels,
}: ApiKey): NewKeySettings {
  return {
    ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
    ...(models === undefined ? {} : { models }),
    ...(allowTools === undefined ? {} : { allowTools }),
    ...(limits === undefined ? {} : { limits }),
    ...(labels === undefined ? {} : { labels }),
    replaces: id,
  }
}

function tooMany(maxKeys: number): GatewayError {
  const message = `The account has more than the ${maxKeys} keys of its plan already. Revoke a replaced key, then rotate again.`
  return new GatewayError('plan_limit', message)
}
