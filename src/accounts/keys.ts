/** Creates, rotates and revokes API keys. */
import { GatewayError, malformed } from '../errors.js'
import type { AuditEntry } from '../store/audit-trail.js'
import type { Store } from '../store/store.js'
import type { Account, ApiKey, KeyLimits, PlanName, KeyReference } from './account.js'
import { digestOf, newSecret, randomBase62, shownParts } from './key-secret.js'
import { checkedLabels, NO_LABELS, type Labels } from './labels.js'
import { MAX_KEY_NAME, numberedKeyNames } from './names.js'
import { planMissing, planNamed, type Plans } from './plans.js'
import { noAccount, unforeseen, type Sources } from './sources.js'

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
interface NewKey extends NewKeySettings, Sources {
  /** The limits of all plans; that of the account's plan applies. */
  readonly plans: Plans
  readonly account: Account
  /** 1 to 100 characters. If another live key of the account has the name, it gets ` (2)` and so on. */
  readonly name: string
  /** As in `ApiKey`. */
  readonly createdBy?: string
  /** Entries for the audit trail; none by default. */
  readonly audit?: (key: ApiKey) => readonly AuditEntry[]
}

/** A new key with its secret. */
interface CreatedKey {
  readonly key: ApiKey
  /** It is not stored. */
  readonly secret: string
}

/** Maximum active keys of an account whose plan has no limit (`max_keys: unlimited`). */
const UNLIMITED_KEYS = 10_000

/**
 * Creates a key and returns its secret, which is not stored. Adds the entries of `audit` to the audit trail.
 * Throws `malformed_request` with the field, `plan_limit` if the plan allows no more keys,
 * `store_unavailable`, `store_unconfirmed`.
 */
export async function createKey(store: Store, newKey: NewKey): Promise<CreatedKey> {
  const { plans, account, name, audit = () => [], ...options } = newKey
  const { now = Date.now, random, labels = NO_LABELS, ...settings } = options
  const maxKeys = maxKeysOf(plans, account.plan)
  const secret = newSecret(random)
  const first: ApiKey = {
    id: `key_${randomBase62(16, random)}`,
    accountId: account.id,
    name: checkedName(name),
    digest: digestOf(secret),
    ...shownParts(secret),
    createdAtMs: now(),
    ...settings,
    ...(Object.keys(labels).length === 0 ? {} : { labels: checkedLabels(labels) }),
  }
  const create = (key: ApiKey) => {
    return store.createKey(key, maxKeys, audit(key)).catch(async (error: unknown) => {
      if (!isUnconfirmed(error)) throw error
      // A failover could lose the key, and its secret has not been shown. If revoking fails, the key stays
      // listed.
      await store.revokeKey(key, now()).catch(() => undefined)
      throw unconfirmedKey(key.id, error)
    })
  }
  for (const freeName of numberedKeyNames(first.name)) {
    const key = { ...first, name: freeName }
    let outcome = await create(key)
    if (outcome === 'plan_limit' && (await revokeReplacedKeys(store, account.id, now())) > 0) {
      outcome = await create(key)
    }
    if (outcome === 'created') return { key, secret }
    if (outcome === 'name_taken') continue
    if (outcome === 'no_account') throw noAccount()
    if (outcome === 'plan_limit') throw planLimit(account.plan, maxKeys)
    if (outcome === 'account_full') throw accountFull()
    throw unforeseen('key', outcome)
  }
  throw new GatewayError('bug', 'there is always a free name')
}

/** Throws `forbidden` if the configuration does not have the plan. */
export function maxKeysOf(plans: Plans, name: PlanName): number {
  const plan = planNamed(plans, name)
  if (plan === null) throw planMissing(name)
  return plan.maxKeys ?? UNLIMITED_KEYS
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
    throw malformed(`a key's name has 1 to ${MAX_KEY_NAME} characters`, 'name')
  }
  // Terminals and pages show the name: no control characters, and no characters that reorder text.
  if (/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u.test(name)) {
    throw malformed("a key's name has no control characters", 'name')
  }
  return name
}

/** The name for a key of the account, with a number if another live key has it. */
export async function freeKeyName(
  store: Pick<Store, 'keyByName'>,
  { accountId, id }: KeyReference,
  name: string,
): Promise<string> {
  for (const free of numberedKeyNames(name)) {
    const holder = await store.keyByName(accountId, free)
    if (holder === null || holder.id === id) return free
  }
  throw new GatewayError('bug', 'there is always a free name')
}

function planLimit(plan: PlanName, maxKeys: number): GatewayError {
  const limit = `the plan '${plan}' allows ${maxKeys} keys and the account has as many`
  return new GatewayError('plan_limit', `${limit}: revoke one or choose a larger plan`)
}

function accountFull(): GatewayError {
  const limit = 'the account has as many keys as the store keeps, revoked and expired ones included'
  return new GatewayError('plan_limit', `${limit}: those are removed 30 days after they ended`)
}

/** Number of keys in one page of the list. */
const PAGE = 100

/**
 * Revokes replaced keys that have expired, so that they no longer count: a rotation may exceed the plan's
 * number of keys for a time. Resolves to their number.
 */
export async function revokeReplacedKeys(
  store: Pick<Store, 'listKeys' | 'revokeKey'>,
  accountId: string,
  nowMs: number,
): Promise<number> {
  let count = 0
  for (let cursor: string | null = null; ;) {
    const page = await store.listKeys(accountId, {
      order: 'newest_first',
      after: cursor,
      limit: PAGE,
    })
    for (const { id, replacedBy, expiresAtMs, revokedAtMs } of page.items) {
      if (replacedBy === undefined || revokedAtMs !== undefined) continue
      if (expiresAtMs === undefined || expiresAtMs > nowMs) continue
      await store.revokeKey({ accountId, id }, expiresAtMs)
      count += 1
    }
    if (page.next === null) return count
    cursor = page.next
  }
}

/** Time for which an account may have one key more than its plan allows. */
export const ROTATION_MS = 24 * 3_600_000

/** Options of a rotation. */
interface Rotation {
  readonly store: Store
  readonly plans: Plans
  readonly account: Account
  readonly old: ApiKey
  /**
   * How long the old key works, in ms; 0: it is revoked at once. Default: until it is revoked, or for 24
   * hours if the account has more keys than its plan allows.
   */
  readonly overlapMs?: number
  /** Ms since 1970. */
  readonly now: () => number
  /** Entries for the audit trail. */
  readonly audit: (created: ApiKey) => readonly AuditEntry[]
  /** As in `ApiKey`, of the new key. */
  readonly createdBy?: string
}

/** The new key, and when the old one expires, in ms since 1970; null: never. */
interface Rotated extends CreatedKey {
  readonly oldEndsAtMs: number | null
}

/**
 * Creates the new key. Throws `malformed_request` if the old key is not active, `plan_limit` if the account
 * already has more keys than its plan allows, and the errors of `createKey`.
 *
 * Replaces a key: the new one has the same rights, and both work until the old one ends (`overlapMs`). A
 * rotation may exceed the plan's number of keys by one.
 */
export async function rotateKey(rotation: Rotation): Promise<Rotated> {
  const { store, plans, account, old, overlapMs, now, audit, createdBy } = rotation
  const nowMs = now()
  if (old.revokedAtMs !== undefined || (old.expiresAtMs ?? nowMs + 1) <= nowMs) {
    throw malformed('This key no longer works. Create a new one.')
  }
  const maxKeys = maxKeysOf(plans, account.plan)
  const raisedPlans = { ...plans, [account.plan]: { priceUsd: 0, maxKeys: maxKeys + 1 } }
  const created = await createKey(store, {
    plans: raisedPlans,
    account,
    name: old.name,
    ...settingsOfSuccessor(old),
    ...(createdBy === undefined ? {} : { createdBy }),
    now,
    audit,
  }).catch((error: unknown) => {
    if (error instanceof GatewayError && error.kind === 'plan_limit') throw tooMany(maxKeys)
    throw error
  })
  const replacedBy = created.key.id
  if (overlapMs === 0) {
    await store.changeKey(old, { replacedBy, updatedAtMs: nowMs })
    await store.revokeKey(old, nowMs)
    return { ...created, oldEndsAtMs: nowMs }
  }
  const isOver = overlapMs === undefined && (await store.countKeys(account.id)) > maxKeys
  const lastsMs = overlapMs ?? (isOver ? ROTATION_MS : Infinity)
  const endsAtMs = replacedKeyEndMs(old, nowMs, lastsMs)
  const expiresAtMs = endsAtMs === Infinity ? null : endsAtMs
  await store.changeKey(old, { replacedBy, expiresAtMs, updatedAtMs: nowMs })
  return { ...created, oldEndsAtMs: expiresAtMs }
}

/** When a key ends that is replaced now and works for `overlapMs` beside the new one, in ms since 1970. */
export function replacedKeyEndMs(old: ApiKey, nowMs: number, overlapMs: number): number {
  return Math.min(old.expiresAtMs ?? Infinity, nowMs + overlapMs)
}

/** What a new key takes over from the one that it replaces, apart from account and name. */
export function settingsOfSuccessor({
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

/** Options of revoking a key. */
interface RevokeOptions extends Pick<Sources, 'now'> {
  /** Entries for the audit trail; none by default. */
  readonly audit?: readonly AuditEntry[]
}

/**
 * Revokes the key, and adds the entries of `audit` to the audit trail. Revoking a revoked key succeeds and
 * adds no entries. Throws `malformed_request` for an unknown key, `store_unavailable`.
 *
 * Revokes API keys. `accounts/authentication/check-running-requests.ts` then ends their running requests.
 */
export async function revokeKey(
  store: Store,
  key: KeyReference,
  { now = Date.now, audit = [] }: RevokeOptions = {},
): Promise<void> {
  if (!(await store.revokeKey(key, now(), audit))) {
    throw malformed('the account has no key with this id', 'key')
  }
}
