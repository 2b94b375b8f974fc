/** Operations on accounts and keys, for the dashboard and the command line. */
import type { PlanConfig } from '../config/config.js'
import { GatewayError } from '../errors.js'
import type { Store } from '../store/store.js'
import type { AuditEntriesOf, AuditEntry } from '../store/audit-trail.js'
import type { Account, ApiKey, KeyLimits, PlanName } from './account.js'
import { checkedLabels, NO_LABELS, type Labels } from './labels.js'
import { hashPassword, newPassword } from './password.js'
import { revokeReplacedKeys } from './replaced-keys.js'
import { digestOf, newSecret, randomBase62, shownParts, type RandomBytes } from './key-secret.js'

/** The limits of the plans on keys. */
export type Plans = Readonly<Record<PlanName, Pick<PlanConfig, 'priceUsd' | 'maxKeys'>>>

/** Clock and randomness; tests pass their own. */
export interface Sources {
  /** Milliseconds since 1970. */
  readonly now?: () => number
  readonly random?: RandomBytes
  /** Default `hashPassword`. */
  readonly hash?: (password: string) => string | Promise<string>
}

/** Options of a new key besides its name; absent means no limit. */
export interface NewKey extends Sources {
  /** Ms since 1970. */
  readonly expiresAtMs?: number
  /** As in `ApiKey`. */
  readonly models?: readonly string[]
  readonly limits?: KeyLimits
  /** At most 16; see `labels.ts`. */
  readonly labels?: Labels
  /** The key that it replaces. */
  readonly replaces?: string
}

/** Data of a new account. */
export interface NewAccount {
  readonly email: string
  readonly plan: PlanName
  /**
   * Null: a password is generated. `none`: the account has no password, and its owner signs in with a link or
   * an identity provider.
   */
  readonly password: string | null | { readonly none: true }
  readonly role?: Account['role']
}

/** A new account; its password is available only now. */
export interface CreatedAccount {
  readonly account: Account
  /** The generated password; null if the caller set one. It is not stored. */
  readonly generatedPassword: string | null
}

/** A new key with its secret. */
export interface CreatedKey {
  readonly key: ApiKey
  /** It is not stored. */
  readonly secret: string
}

/** One `@`, no spaces or control characters, a domain; delivery is not checked. */
const EMAIL = /^[^\s@"(),:;<>[\\\]\p{Cc}]{1,64}@[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)*$/u
/** The longest address that SMTP carries (RFC 5321, 4.5.3.1.3). */
const MAX_EMAIL = 254
const MAX_KEY_NAME = 100
/** Maximum active keys of an account whose plan has no limit (`max_keys: unlimited`). */
export const UNLIMITED_KEYS = 10_000

/** Whether it is the name of a plan. */
export function isPlanName(name: string): name is PlanName {
  return name === 'starter' || name === 'pro' || name === 'max'
}

/**
 * Creates an account, and adds the entries of `audit` to the audit trail. Throws `malformed_request` with the field
 * (also for an e-mail in use), `store_unavailable`.
 */
export async function createAccount(
  store: Store,
  newAccount: NewAccount,
  { now = Date.now, random, hash = hashPassword }: Sources = {},
  audit: (account: Account) => readonly AuditEntry[] = () => [],
): Promise<CreatedAccount> {
  const email = checkedEmail(newAccount.email)
  const generatedPassword = newAccount.password === null ? newPassword(random) : null
  const password = typeof newAccount.password === 'string' ? newAccount.password : generatedPassword
  const account: Account = {
    id: `acc_${randomBase62(16, random)}`,
    email,
    plan: newAccount.plan,
    role: newAccount.role ?? 'owner',
    passwordHash: password === null ? '' : await hash(password),
    disabled: false,
    createdAtMs: now(),
  }
  const outcome = await store.createAccount(account, audit(account))
  if (outcome === 'email_taken') throw refused('an account with this e-mail exists', 'email')
  if (outcome !== 'created') throw unforeseen('account', outcome)
  return { account, generatedPassword }
}

/** The account with that id or e-mail, or null. */
export async function findAccount(store: Store, idOrEmail: string): Promise<Account | null> {
  return idOrEmail.includes('@') ? store.accountByEmail(idOrEmail) : store.accountById(idOrEmail)
}

/**
 * Changes the plan, and adds the entries of `audit` to the audit trail. Keys above the new plan's limit stay valid; only
 * new ones are refused. Throws `malformed_request` for an unknown account, `store_unavailable`.
 */
export async function setPlan(
  store: Store,
  accountId: string,
  plan: PlanName,
  audit: AuditEntriesOf<Account> = () => [],
): Promise<void> {
  if ((await store.changeAccount(accountId, { plan }, audit)) === null) throw noAccount()
}

/**
 * Creates a key and returns its secret, which is not stored. Adds the entries of `audit` to the audit trail. Throws
 * `malformed_request` with the field, `plan_limit` if the plan allows no more keys, `store_unavailable`,
 * `store_unconfirmed`.
 */
export async function createKey(
  store: Store,
  plans: Plans,
  account: Account,
  name: string,
  { now = Date.now, random, labels = NO_LABELS, ...rest }: NewKey = {},
  audit: (key: ApiKey) => readonly AuditEntry[] = () => [],
): Promise<CreatedKey> {
  const maxKeys = plans[account.plan].maxKeys ?? UNLIMITED_KEYS
  const secret = newSecret(random)
  const key: ApiKey = {
    id: `key_${randomBase62(16, random)}`,
    accountId: account.id,
    name: checkedName(name),
    digest: digestOf(secret),
    ...shownParts(secret),
    createdAtMs: now(),
    ...rest,
    ...(Object.keys(labels).length === 0 ? {} : { labels: checkedLabels(labels) }),
  }
  const create = () => {
    return store.createKey(key, maxKeys, audit(key)).catch((error: unknown) => {
      return revokeUnconfirmed(store, key, now(), error)
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

/** Revokes a key that a failover could lose. Its secret has not been shown. */
async function revokeUnconfirmed(
  store: Store,
  { id, accountId }: ApiKey,
  nowMs: number,
  error: unknown,
): Promise<never> {
  if (!(error instanceof GatewayError) || error.kind !== 'store_unconfirmed') throw error
  // If this fails, the key is listed, but its secret is unknown.
  await store.revokeKey(accountId, id, nowMs).catch(() => undefined)
  const message = `Key ${id} is applied, not yet confirmed by a replica; it is revoked and its secret is not shown. Create another one.`
  throw new GatewayError('store_unconfirmed', message, { retryAfterSeconds: 1, cause: error.cause })
}

/**
 * Revokes the key, and adds the entries of `audit` to the audit trail. Revoking a revoked key succeeds and
 * adds no entries. Throws `malformed_request` for an unknown key, `store_unavailable`.
 */
export async function revokeKey(
  store: Store,
  accountId: string,
  keyId: string,
  { now = Date.now }: Sources = {},
  audit: readonly AuditEntry[] = [],
): Promise<void> {
  if (!(await store.revokeKey(accountId, keyId, now(), audit))) {
    throw refused('the account has no key with this id', 'key')
  }
}

/** Whether `checkedEmail` accepts it. */
export function isEmail(text: string): boolean {
  const email = text.trim().toLowerCase()
  return email.length <= MAX_EMAIL && EMAIL.test(email)
}

/** The normalised e-mail address. Throws `malformed_request`. */
export function checkedEmail(text: string): string {
  const email = text.trim().toLowerCase()
  if (email.length > MAX_EMAIL) {
    throw refused(`An e-mail address has at most ${MAX_EMAIL} characters`, 'email')
  }
  if (!EMAIL.test(email))
    throw refused('This is not an e-mail address, such as team@example.com', 'email')
  return email
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

/** Ids and digests are random, so a collision means a broken random source. */
function unforeseen(kind: string, outcome: string): GatewayError {
  return new GatewayError('bug', `the store refused a new ${kind}: ${outcome}`)
}

function noAccount(): GatewayError {
  return refused('there is no such account', 'account')
}

function refused(message: string, param: string): GatewayError {
  return new GatewayError('malformed_request', message, { param })
}
