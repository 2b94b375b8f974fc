/** Creates API keys: checks their settings and the plan's number of keys, and shows the secret once. */
import { GatewayError } from '../errors.js'
import type { AuditEntry } from '../store/audit-trail.js'
import type { Store } from '../store/store.js'
import type { Account, ApiKey, KeyLimits, PlanName } from './account.js'
import type { Plans, Sources } from './accounts.js'
import { digestOf, newSecret, randomBase62, shownParts } from './key-secret.js'
import { checkedLabels, NO_LABELS, type Labels } from './labels.js'
import { noAccount, refused, unforeseen } from './refusals.js'
import { revokeReplacedKeys } from './replaced-keys.js'

/** Settings of a new key; absent means no limit. */
export interface NewKeySettings {
  /** Ms since 1970. */
  readonly expiresAtMs?: number
  /** As in `ApiKey`. */
  readonly models?: readonly string[]
  readonly allowTools?: readonly string[]
  readonly limits?: KeyLimits
  /** At most 16; see `labels.ts`. */
  readonly labels?: Labels
  /** The key that it replaces. */
  readonly replaces?: string
}

/** A key to create. */
export interface NewKey extends NewKeySettings, Sources {
  /** The limits of all plans; that of the account's plan applies. */
  readonly plans: Plans
  readonly account: Account
  /** 1 to 100 characters. */
  readonly name: string
  /** Entries for the audit trail; none by default. */
  readonly audit?: (key: ApiKey) => readonly AuditEntry[]
}

/** A new key with its secret. */
export interface CreatedKey {
  readonly key: ApiKey
  /** It is not stored. */
  readonly secret: string
}

const MAX_KEY_NAME = 100
/** Maximum active keys of an account whose plan has no limit (`max_keys: unlimited`). */
export const UNLIMITED_KEYS = 10_000

/**
 * Creates a key and returns its secret, which is not stored. Adds the entries of `audit` to the audit trail.
 * Throws `malformed_request` with the field, `plan_limit` if the plan allows no more keys,
 * `store_unavailable`, `store_unconfirmed`.
 */
export async function createKey(store: Store, newKey: NewKey): Promise<CreatedKey> {
  const { plans, account, name, audit = () => [], ...options } = newKey
  const { now = Date.now, random, labels = NO_LABELS, ...settings } = options
  const maxKeys = plans[account.plan].maxKeys ?? UNLIMITED_KEYS
  const secret = newSecret(random)
  const key: ApiKey = {
    id: `key_${randomBase62(16, random)}`,
    accountId: account.id,
    name: checkedName(name),
    digest: digestOf(secret),
    ...shownParts(secret),
    createdAtMs: now(),
    ...settings,
    ...(Object.keys(labels).length === 0 ? {} : { labels: checkedLabels(labels) }),
  }
  const create = () => {
    return store.createKey(key, maxKeys, audit(key)).catch(async (error: unknown) => {
      if (!isUnconfirmed(error)) throw error
      // A failover could lose the key, and its secret has not been shown. If revoking fails, the key stays
      // listed.
      await store.revokeKey(key, now()).catch(() => undefined)
      throw unconfirmedKey(key.id, error)
    })
  }
  let outcome = await create()
  if (outcome === 'plan_limit' && (await revokeReplacedKeys(store, account.id, now())) > 0) {
    outcome = await create()
  }
  if (outcome === 'no_account') throw noAccount()
  if (outcome === 'plan_limit') throw planLimit(account.plan, maxKeys)
  if (outcome === 'account_full') throw accountFull()
  if (outcome !== 'created') throw unforeseen('key', outcome)
  return { key, secret }
}

function isUnconfirmed(error: unknown): error is GatewayError {
  return error instanceof GatewayError && error.kind === 'store_unconfirmed'
}

function unconfirmedKey(id: string, { cause }: GatewayError): GatewayError {
  const message = `Key ${id} is applied, not yet confirmed by a replica; it is revoked and its secret is not shown. Create another one.`
  return new GatewayError('store_unconfirmed', message, { retryAfterSeconds: 1, cause })
}

/** The normalised name. Throws `malformed_request`. */
export function checkedName(text: string): string {
  const name = text.trim()
  const length = Array.from(name).length
  if (length < 1 || length > MAX_KEY_NAME) {
    throw refused(`a key's name has 1 to ${MAX_KEY_NAME} characters`, 'name')
  }
  // Terminals and pages show the name: no control characters, and no characters that reorder text.
  if (/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u.test(name)) {
    throw refused("a key's name has no control characters", 'name')
  }
  return name
}

function planLimit(plan: PlanName, maxKeys: number): GatewayError {
  const limit = `the plan '${plan}' allows ${maxKeys} keys and the account has as many`
  return new GatewayError('plan_limit', `${limit}: revoke one or choose a larger plan`)
}

function accountFull(): GatewayError {
  const limit = 'the account has as many keys as the store keeps, revoked and expired ones included'
  return new GatewayError('plan_limit', `${limit}: those are removed 30 days after they ended`)
}
