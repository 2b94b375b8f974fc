/**
 * What can be done with accounts and keys: the one place for the dashboard and the command line.
 * Knows no engine, no HTTP and no terminal.
 */
import type { PlanConfig } from '../config/config.js'
import { GatewayError } from '../errors.js'
import type { Store } from '../store/store.js'
import type { AuditEntry } from '../store/audit-trail.js'
import type { Account, ApiKey, KeyLimits, PlanName } from './account.js'
import { checkedLabels, NO_LABELS, type Labels } from './labels.js'
import { hashPassword, newPassword } from './password.js'
import { revokeReplacedKeys } from './replaced-keys.js'
import { digestOf, newSecret, randomBase62, shownParts, type RandomBytes } from './key-secret.js'

/** What the plans, by name, say of keys. */
export type Plans = Readonly<Record<PlanName, Pick<PlanConfig, 'priceUsd' | 'maxKeys'>>>

/** Clock and randomness, handed in by tests; the process's own where absent. */
export interface Sources {
  /** Milliseconds since 1970. */
  readonly now?: () => number
  readonly random?: RandomBytes
  /** As `hashPassword`, which it is where left out. */
  readonly hash?: (password: string) => string | Promise<string>
}

/** What a new key may be given besides its name; what is left out does not limit it. */
export interface NewKey extends Sources {
  /** Ms since 1970. */
  readonly expiresAtMs?: number
  /** As in `ApiKey`. */
  readonly models?: readonly string[]
  readonly limits?: KeyLimits
  /** At most 16; see `labels.ts`. */
  readonly labels?: Labels
  /** The key that it is made to replace. */
  readonly replaces?: string
}

/** What an account is made from. */
export interface NewAccount {
  readonly email: string
  readonly plan: PlanName
  /** Null: one is made. `none`: it has none, until a link or an identity provider lets its owner in. */
  readonly password: string | null | { readonly none: true }
  readonly role?: Account['role']
}

/** An account that was made, with what must be told now or never. */
export interface CreatedAccount {
  readonly account: Account
  /** The password that was made; null where the caller gave one. Exists nowhere else. */
  readonly generatedPassword: string | null
}

/** A key that was made, with its secret. */
export interface CreatedKey {
  readonly key: ApiKey
  /** The only time that anybody sees it. */
  readonly secret: string
}

/** One `@`, no spaces or control characters, a domain; whether it receives mail is not asked. */
const EMAIL = /^[^\s@"(),:;<>[\\\]\p{Cc}]{1,64}@[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)*$/u
/** The longest address that SMTP carries (RFC 5321, 4.5.3.1.3). */
const MAX_EMAIL = 254
const MAX_KEY_NAME = 100
/** Live keys of an account whose plan has no limit (`max_keys: unlimited`). */
export const UNLIMITED_KEYS = 10_000

/** True for one of the plans' names. */
export function isPlanName(name: string): name is PlanName {
  return name === 'starter' || name === 'pro' || name === 'max'
}

/**
 * Makes an account; `told` says what it leaves in the audit trail. Throws `malformed_request` naming the field
 * (a taken e-mail too), `store_unavailable`.
 */
export async function createAccount(
  store: Store,
  wanted: NewAccount,
  { now = Date.now, random, hash = hashPassword }: Sources = {},
  told: (account: Account) => readonly AuditEntry[] = () => [],
): Promise<CreatedAccount> {
  const email = checkedEmail(wanted.email)
  const generatedPassword = wanted.password === null ? newPassword(random) : null
  const password = typeof wanted.password === 'string' ? wanted.password : generatedPassword
  const account: Account = {
    id: `acc_${randomBase62(16, random)}`,
    email,
    plan: wanted.plan,
    role: wanted.role ?? 'owner',
    passwordHash: password === null ? '' : await hash(password),
    disabled: false,
    createdAtMs: now(),
  }
  const outcome = await store.createAccount(account, told(account))
  if (outcome === 'email_taken') throw refused('an account with this e-mail exists', 'email')
  if (outcome !== 'created') throw unforeseen('account', outcome)
  return { account, generatedPassword }
}

/** The account with that id or e-mail, or null. */
export async function findAccount(store: Store, idOrEmail: string): Promise<Account | null> {
  return idOrEmail.includes('@') ? store.accountByEmail(idOrEmail) : store.accountById(idOrEmail)
}

/**
 * Changes the plan. Keys over the new plan's limit stay good; only new ones are refused. Throws
 * `malformed_request` where there is no such account, `store_unavailable`.
 */
export async function setPlan(store: Store, accountId: string, plan: PlanName): Promise<void> {
  if ((await store.changeAccount(accountId, { plan })) === null) throw noAccount()
}

/**
 * Makes a key for the account and hands out its secret, once; `told` as with accounts. Throws
 * `malformed_request` naming the field, `plan_limit` where the plan's keys are used up, `store_unavailable`,
 * `store_unconfirmed`.
 */
export async function createKey(
  store: Store,
  plans: Plans,
  account: Account,
  name: string,
  { now = Date.now, random, labels = NO_LABELS, ...rest }: NewKey = {},
  told: (key: ApiKey) => readonly AuditEntry[] = () => [],
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
    return store.createKey(key, maxKeys, told(key)).catch((error: unknown) => {
      return withdraw(store, key, now(), error)
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

/** A key that may not last is not handed out, and revoked, since nobody has its secret. */
async function withdraw(
  store: Store,
  { id, accountId }: ApiKey,
  nowMs: number,
  error: unknown,
): Promise<never> {
  if (!(error instanceof GatewayError) || error.kind !== 'store_unconfirmed') throw error
  // Where this fails, the key is listed, and its secret is still nobody's.
  await store.revokeKey(accountId, id, nowMs).catch(() => undefined)
  const message = `Key ${id} is applied, not yet confirmed by a replica; it is revoked and its secret is not shown. Make another one.`
  throw new GatewayError('store_unconfirmed', message, { retryAfterSeconds: 1, cause: error.cause })
}

/**
 * Revokes the key, and leaves `told` in the audit trail; again is no error, and leaves nothing. Throws
 * `malformed_request` where the account has no such key, `store_unavailable`.
 */
export async function revokeKey(
  store: Store,
  accountId: string,
  keyId: string,
  { now = Date.now }: Sources = {},
  told: readonly AuditEntry[] = [],
): Promise<void> {
  if (!(await store.revokeKey(accountId, keyId, now(), told))) {
    throw refused('the account has no key with this id', 'key')
  }
}

/** True for what `checkedEmail` takes. */
export function isEmail(text: string): boolean {
  const email = text.trim().toLowerCase()
  return email.length <= MAX_EMAIL && EMAIL.test(email)
}

/** The address as it is kept. Throws `malformed_request`. */
export function checkedEmail(text: string): string {
  const email = text.trim().toLowerCase()
  if (email.length > MAX_EMAIL) {
    throw refused(`an e-mail has at most ${MAX_EMAIL} characters`, 'email')
  }
  if (!EMAIL.test(email)) throw refused("this is not an e-mail, such as 'ada@example.com'", 'email')
  return email
}

/** The name as it is kept. Throws `malformed_request`. */
export function checkedName(text: string): string {
  const name = text.trim()
  const length = Array.from(name).length
  if (length < 1 || length > MAX_KEY_NAME) {
    throw refused(`a key's name has 1 to ${MAX_KEY_NAME} characters`, 'name')
  }
  // A name is shown in terminals and pages: no control characters, no reordering of what follows.
  if (/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u.test(name)) {
    throw refused("a key's name has no control characters", 'name')
  }
  return name
}

function planLimit(plan: PlanName, maxKeys: number): GatewayError {
  const limit = `the plan '${plan}' allows ${maxKeys} keys and the account has as many`
  return new GatewayError('plan_limit', `${limit}; revoke one or choose a larger plan`)
}

function accountFull(): GatewayError {
  const limit = 'the account has as many keys as the store keeps, revoked and expired ones included'
  return new GatewayError('plan_limit', `${limit}; those are removed 30 days after they ended`)
}

/** Ids and digests are random: two alike mean a broken source of randomness. */
function unforeseen(what: string, outcome: string): GatewayError {
  return new GatewayError('bug', `the store refused a new ${what}: ${outcome}`)
}

function noAccount(): GatewayError {
  return refused('there is no such account', 'account')
}

function refused(message: string, param: string): GatewayError {
  return new GatewayError('malformed_request', message, { param })
}
