/** Operations on accounts, for the dashboard and the command line. `keys.ts` creates their keys. */
import { GatewayError } from '../errors.js'
import type { AuditEntriesOf, AuditEntry } from '../store/audit-trail.js'
import type { Store } from '../store/store.js'
import type { Account, PlanName } from './account.js'
import { randomBase62, type RandomBytes } from './key-secret.js'
import { hashPassword, newPassword } from './password.js'
import { isPlanOf, type Plans } from './plans.js'

/** Clock and randomness; tests pass their own. */
export interface Sources {
  /** Milliseconds since 1970. */
  readonly now?: () => number
  readonly random?: RandomBytes
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

/** Options of creating an account. */
export interface CreateAccountOptions extends Sources {
  /** Hashes the password; `hashPassword` by default. */
  readonly hash?: (password: string) => string | Promise<string>
  /** Entries for the audit trail; none by default. */
  readonly audit?: (account: Account) => readonly AuditEntry[]
}

/** A new account; its password is available only now. */
export interface CreatedAccount {
  readonly account: Account
  /** The generated password; null if the caller set one. It is not stored. */
  readonly generatedPassword: string | null
}

/** One `@`, no spaces or control characters, a domain; delivery is not checked. */
const EMAIL = /^[^\s@"(),:;<>[\\\]\p{Cc}]{1,64}@[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)*$/u
/** The longest address that SMTP carries (RFC 5321, 4.5.3.1.3). */
const MAX_EMAIL = 254

/**
 * Creates an account, and adds the entries of `audit` to the audit trail. Throws `malformed_request` with the
 * field (also for an e-mail in use), `store_unavailable`.
 */
export async function createAccount(
  store: Store,
  newAccount: NewAccount,
  { now = Date.now, random, hash = hashPassword, audit = () => [] }: CreateAccountOptions = {},
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
 * Changes the plan, and adds the entries of `audit` to the audit trail. Keys above the new plan's limit stay
 * valid; only new ones are refused. Throws `malformed_request` for an unknown account, `store_unavailable`.
 */
export async function setPlan(
  store: Store,
  accountId: string,
  { plan, audit = () => [] }: { readonly plan: PlanName; readonly audit?: AuditEntriesOf<Account> },
): Promise<void> {
  if ((await store.changeAccount(accountId, { plan }, audit)) === null) throw noAccount()
}

/**
 * Disables or enables the account, and adds the entries of `audit` to the audit trail. The keys of a disabled
 * account are refused. Throws `malformed_request` for an unknown account, `store_unavailable`.
 */
export async function setDisabled(
  store: Store,
  accountId: string,
  change: { readonly disabled: boolean; readonly audit?: AuditEntriesOf<Account> },
): Promise<void> {
  const { disabled, audit = () => [] } = change
  if ((await store.changeAccount(accountId, { disabled }, audit)) === null) throw noAccount()
}

/** The name of a plan of the configuration. Throws `malformed_request` that names the plans. */
export function checkedPlan(name: string, plans: Plans): PlanName {
  if (isPlanOf(plans, name)) return name
  throw refused(`There is no plan '${name}': use ${plansText(plans)}`, 'plan')
}

/** `starter, pro or max`. */
export function plansText(plans: Plans): string {
  const names = Object.keys(plans)
  const last = names.pop() ?? 'none'
  return names.length === 0 ? last : `${names.join(', ')} or ${last}`
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

/** Ids and digests are random, so a collision means a broken random source. */
export function unforeseen(kind: string, outcome: string): GatewayError {
  return new GatewayError('bug', `the store refused a new ${kind}: ${outcome}`)
}

/** The account does not exist. */
export function noAccount(): GatewayError {
  return refused('there is no such account', 'account')
}

/** A value that is not accepted; `param` names the field. */
export function refused(message: string, param: string): GatewayError {
  return new GatewayError('malformed_request', message, { param })
}
