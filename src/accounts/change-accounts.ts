/** Operations on accounts, for the dashboard and the command line. `keys.ts` creates their keys. */
import { GatewayError, malformed } from '../errors.js'
import type { AuditEntriesOf, AuditEntry } from '../store/audit-trail.js'
import type { AccountConflict } from '../store/account-changes.js'
import type { AccountOutcome, Store } from '../store/store.js'
import { comparableEmail, MAX_LEVELS, ownerOf, type Account, type PlanName, type User } from './account.js'
import { randomBase62 } from './key-secret.js'
import { endWhatCouldNotGive } from './link-makers.js'
import { ACCOUNT_NAME, accountNameOf, numberedNames, selfMadeName } from './names.js'
import { hashPassword, newPassword } from './password.js'
import { isPlanOf, type Plans } from './plans.js'
import { noAccount, unforeseen, type Sources } from './sources.js'

/** Data of a new account, and of the user who is made with it as its owner. */
export interface NewAccount {
  /** Absent: made from the e-mail address, with a number if it is taken. */
  readonly name?: string
  /** Whether the user makes it for herself: a name that is made has a form of its own. */
  readonly isSelfMade?: true
  /** The owner's; absent: the account has no member. A user who exists keeps the password. */
  readonly email?: string
  readonly plan: PlanName
  /** The id of its parent. */
  readonly parentId?: string
  /**
   * Null: a password is generated. `none`: the user has no password, and signs in with a link or an identity
   * provider.
   */
  readonly password: string | null | { readonly none: true }
  /** `admin`: the new user administers the gateway. */
  readonly role?: 'owner' | 'admin'
}

/** Options of creating an account. */
export interface CreateAccountOptions extends Sources {
  /** Hashes the password; `hashPassword` by default. */
  readonly hash?: (password: string) => string | Promise<string>
  /** Entries for the audit trail; none by default. */
  readonly audit?: (account: Account) => readonly AuditEntry[]
}

/** A new account; its owner's password is available only now. */
export interface CreatedAccount {
  readonly account: Account
  /** Its owner; null if it has no member. */
  readonly user: User | null
  /** The generated password; null if the caller set one, or the user existed. It is not stored. */
  readonly generatedPassword: string | null
}

/** One `@`, no spaces or control characters, a domain; delivery is not checked. */
const EMAIL = /^[^\s@"(),:;<>[\\\]\p{Cc}]{1,64}@[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)*$/u
/** The longest address that SMTP carries (RFC 5321, 4.5.3.1.3). */
const MAX_EMAIL = 254

/**
 * Creates an account with its owner, and adds the entries of `audit` to the audit trail. Throws
 * `malformed_request` with the field (also for an e-mail or name in use), `store_unavailable`.
 */
export async function createAccount(
  store: Store,
  newAccount: NewAccount,
  { now = Date.now, random, hash = hashPassword, audit = () => [] }: CreateAccountOptions = {},
): Promise<CreatedAccount> {
  const email = newAccount.email === undefined ? null : checkedEmail(newAccount.email)
  if (newAccount.name === undefined && email === null) throw malformed('give it a name', 'name')
  const { plan, parentId } = newAccount
  const id = `acc_${randomBase62(16, random)}`
  const known = email === null ? null : await store.users.byEmail(email)
  if (known !== null && !(await mayOwn(store, newAccount, known))) throw emailTaken()
  const makes = email !== null && known === null
  const generatedPassword = makes && newAccount.password === null ? newPassword(random) : null
  const password = typeof newAccount.password === 'string' ? newAccount.password : generatedPassword
  const createdAtMs = now()
  const login: User | null = makes
    ? {
        ...{ id, email, createdAtMs, disabled: false },
        role: newAccount.role === 'admin' ? 'admin' : null,
        passwordHash: password === null ? '' : await hash(password),
        // A visitor takes any address; who gets the link to set a password is not known yet.
        ...(newAccount.isSelfMade === true || password === null ? { unproven: true } : {}),
      }
    : null
  for (const name of namesToTry(newAccount, email)) {
    const account: Account = {
      ...{ id, name, plan, disabled: false, createdAtMs },
      ...(login === null ? {} : { email: login.email }),
      ...(parentId === undefined ? {} : { parentId }),
    }
    const outcome = await create(store, { account, login, owner: known }, audit(account))
    if (outcome === 'created') return { account, user: login ?? known, generatedPassword }
    if (outcome === 'name_taken' && newAccount.name === undefined) continue
    if (outcome === 'email_taken') throw emailTaken()
    throw conflictError(outcome)
  }
  throw new GatewayError('bug', 'there is always a free name')
}

/**
 * Whether a user who exists may own the new account: of an account with a name of its own, or if the user has
 * no account, as after a creation that was interrupted.
 */
async function mayOwn(store: Store, { name }: NewAccount, user: User): Promise<boolean> {
  return name !== undefined || (await store.users.memberships(user.id)).length === 0
}

function namesToTry({ name, isSelfMade }: NewAccount, email: string | null): Iterable<string> {
  if (name !== undefined) return [checkedAccountName(name)]
  return numberedNames((isSelfMade ? selfMadeName : accountNameOf)(email ?? ''))
}

interface Creation {
  readonly account: Account
  /** The user to create; null: none. */
  readonly login: User | null
  /** A user who exists. */
  readonly owner: User | null
}

async function create(
  store: Store,
  { account, login, owner }: Creation,
  audit: readonly AuditEntry[],
): Promise<AccountOutcome> {
  if (login !== null || owner === null) {
    return store.createAccount(account, audit, login ?? undefined)
  }
  const after = ownerOf(account, owner)
  const result = await store.transact({
    accountId: account.id,
    nowMs: account.createdAtMs,
    decide: () => ({ write: { account, members: [after], audit } }),
  })
  if (result.kind === 'conflict') return result.conflict
  await endWhatCouldNotGive(store, { account, before: null, after }, account.createdAtMs)
  return 'created'
}

function emailTaken(): GatewayError {
  return malformed('an account with this e-mail exists', 'email')
}

/** The error of a rule that refused a change of an account (`store/account-changes.ts`). */
export function conflictError(conflict: AccountConflict): GatewayError {
  switch (conflict) {
    case 'name_taken':
      return malformed('The name is taken: choose another one', 'name')
    case 'no_parent':
      return malformed('There is no account with this name: name an existing parent', 'parent')
    case 'parent_loop':
      return malformed('The parent is the account itself or below it: name another one', 'parent')
    case 'too_deep':
      return malformed(`A tree of accounts has at most ${MAX_LEVELS} levels`, 'parent')
    case 'has_children':
      return malformed('The account has accounts below it: move or remove them first', 'account')
    case 'no_user':
      return malformed('There is no user with this e-mail address', 'email')
    case 'bad_name':
    case 'id_taken':
    case 'account_full':
      return unforeseen('change', conflict)
    default:
      return conflict satisfies never
  }
}

/** The name of an account. Throws `malformed_request`. */
function checkedAccountName(name: string): string {
  if (ACCOUNT_NAME.test(name)) return name
  throw malformed(
    "An account's name has 1 to 63 characters of a-z, 0-9 and '-', and '-' is neither first nor last",
    'name',
  )
}

/**
 * The account with that name, id or e-mail, or null. An e-mail address means the account that was made with
 * it, or the only one that its user is a member of.
 */
export async function findAccount(store: Store, nameIdOrEmail: string): Promise<Account | null> {
  if (!nameIdOrEmail.includes('@')) {
    // An id contains `_`, a name does not.
    return nameIdOrEmail.includes('_')
      ? store.accountById(nameIdOrEmail)
      : ((await store.accountByName(nameIdOrEmail)) ?? store.accountById(nameIdOrEmail))
  }
  const own = await store.accountByEmail(nameIdOrEmail)
  if (own !== null) return own
  const user = await store.users.byEmail(nameIdOrEmail)
  const [only, ...others] = user === null ? [] : await store.users.memberships(user.id)
  return only === undefined || others.length > 0 ? null : store.accountById(only.accountId)
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
  const edit = { plan, updatedAtMs: Date.now() }
  if ((await store.changeAccount(accountId, edit, audit)) === null) throw noAccount()
}

/**
 * Changes the parent (null: none), and adds the entries of `audit` to the audit trail if it differs. What the
 * account has used stays with its old parents. Throws `malformed_request` for an unknown account, and for a
 * parent that does not exist, is below the account, or has too many levels.
 */
export async function setParent(
  store: Store,
  accountId: string,
  { parentId, audit }: { readonly parentId: string | null; readonly audit: AuditEntriesOf<Account> },
): Promise<void> {
  const nowMs = Date.now()
  const result = await store.transact({
    accountId,
    nowMs,
    decide: ({ account }) => {
      if (account === null) return { refuse: 'absent' }
      if ((account.parentId ?? null) === parentId) return { refuse: 'same' }
      const after: Account = { ...account, updatedAtMs: nowMs }
      delete after.parentId
      if (parentId !== null) after.parentId = parentId
      return { write: { account: after, audit: audit(account, after) } }
    },
  })
  if (result.kind === 'conflict') throw conflictError(result.conflict)
  if (result.kind === 'refused' && result.reason === 'absent') throw noAccount()
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
  const edit = { disabled, updatedAtMs: Date.now() }
  if ((await store.changeAccount(accountId, edit, audit)) === null) throw noAccount()
}

/** The name of a plan of the configuration. Throws `malformed_request` that names the plans. */
export function checkedPlan(name: string, plans: Plans): PlanName {
  if (isPlanOf(plans, name)) return name
  throw malformed(`There is no plan '${name}': use ${plansText(plans)}`, 'plan')
}

/** `starter, pro or max`. */
export function plansText(plans: Plans): string {
  const names = Object.keys(plans)
  const last = names.pop() ?? 'none'
  return names.length === 0 ? last : `${names.join(', ')} or ${last}`
}

/** Whether `checkedEmail` accepts it. */
export function isEmail(text: string): boolean {
  const email = comparableEmail(text)
  return email.length <= MAX_EMAIL && EMAIL.test(email)
}

/** The normalised e-mail address. Throws `malformed_request`. */
export function checkedEmail(text: string): string {
  const email = comparableEmail(text)
  if (email.length > MAX_EMAIL) {
    throw malformed(`An e-mail address has at most ${MAX_EMAIL} characters`, 'email')
  }
  if (!EMAIL.test(email)) throw malformed('This is not an e-mail address, such as team@example.com', 'email')
  return email
}
