/**
 * Creates and changes accounts: each in one transaction with its entry of the audit trail. `decide.ts`
 * decides, `change-keys.ts` creates their keys.
 */
import { GatewayError } from '../../errors.js'
import type { JsonObject, JsonValue } from '../../base/json.js'
import type { AccountConflict, AccountWrites } from '../../store/account-changes.js'
import type { AuditEntry } from '../../store/audit-trail.js'
import type { AddedSignIn, EndedTokens } from '../../store/sign-in-tokens.js'
import type { Store } from '../../store/store.js'
import {
  comparableEmail,
  firstOwnerOf,
  ownerOf,
  type Account,
  type Member,
  type PlanName,
  type User,
} from '../account.js'
import { EndedSignIns, sessionsOf } from '../ended-sign-ins.js'
import { randomBase62 } from '../key-secret.js'
import { accountNameOf, numberedNames, selfMadeName } from '../names.js'
import { hashPassword, newPassword } from '../password.js'
import type { Plans } from '../plans.js'
import type { Sources } from '../sources.js'
import { accountChange, parentName, type ParentNames } from './audit-text.js'
import { accountBeyond } from './bounds.js'
import { limitsAbove } from './limits-above.js'
import type { Changing } from './change-keys.js'
import { changeEntry, conflictRefusal, decideAccount, entriesByAction, type Actor } from './decide.js'
import { checkedValue, patchedObject, type Fields, readFields } from './field-types.js'
import {
  accountFields,
  accountNameFault,
  accountValues,
  emailFault,
  planType,
  surplusLabels,
} from './fields.js'
import { invalid, noAccount, Refusal } from './refusal.js'

/** Data of a new account, and of the user who is made with it as its owner. */
export interface NewAccount {
  /** Absent: made from the e-mail address, with a number if it is taken. */
  readonly name?: string
  /** Whether the user makes it for herself: a name that is made has a form of its own. */
  readonly isSelfMade?: true
  /** The owner's; absent: the account has no member. A user who exists keeps the password. */
  readonly email?: string
  readonly plan: PlanName
  /** The id and the name of its parent. */
  readonly parentId?: string
  readonly parentName?: string
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
  /** Who creates it, for the audit trail. */
  readonly actor?: Actor
  /** Other entries for the audit trail, in place of that of an actor. */
  readonly audit?: (account: Account) => readonly AuditEntry[]
  /** The invitation of its owner, written with the account; null: the owner needs none. Called once. */
  readonly link?: (owner: User, account: Account) => Promise<AddedSignIn | null>
}

/** A new account; its owner's password is available only now. */
export interface CreatedAccount {
  readonly account: Account
  /** Its owner; null if it has no member. */
  readonly user: User | null
  /** The generated password; null if the caller set one, or the user existed. It is not stored. */
  readonly generatedPassword: string | null
}

/**
 * Creates an account with its owner, or neither. Throws a `Refusal` (also for an e-mail address or name in
 * use), `store_unavailable`.
 */
export async function createAccount(
  store: Store,
  newAccount: NewAccount,
  { now = Date.now, random, hash = hashPassword, actor, audit, link: linkOf }: CreateAccountOptions = {},
): Promise<CreatedAccount> {
  const email = newAccount.email === undefined ? null : checkedEmail(newAccount.email)
  if (newAccount.name === undefined && email === null)
    throw invalid('name', 'The account has no name.', 'Add one.')
  const { plan, parentId } = newAccount
  const id = `acc_${randomBase62(16, random)}`
  const known = email === null ? null : await store.users.byEmail(email)
  if (known !== null && !(await mayOwn(store, newAccount, known))) throw conflictRefusal('email_taken', '')
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
  const owner = login ?? known
  let link: AddedSignIn | null | undefined
  for (const name of namesToTry(newAccount, email)) {
    const account: Account = {
      ...{ id, name, plan, disabled: false, createdAtMs },
      ...(login === null ? {} : { email: login.email }),
      ...(parentId === undefined ? {} : { parentId }),
    }
    const parents = new Map(parentId === undefined ? [] : [[parentId, newAccount.parentName ?? parentId]])
    const entries = actor === undefined ? [] : [accountCreation(account, parents, actor)]
    if (link === undefined && owner !== null) link = await linkOf?.(owner, account)
    const conflict = await create(
      store,
      { account, login, owner: known, link: link ?? null },
      audit?.(account) ?? entries,
    )
    if (conflict === null) return { account, user: owner, generatedPassword }
    if (conflict === 'name_taken' && newAccount.name === undefined) continue
    const refusal = conflictRefusal(conflict, name)
    if (conflict !== 'name_taken') throw refusal
    const { detail, fix = '' } = refusal
    throw new Refusal('name_taken', detail, { field: 'name', fix })
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
  readonly link: AddedSignIn | null
}

async function create(
  store: Store,
  { account, login, owner, link }: Creation,
  audit: readonly AuditEntry[],
): Promise<AccountConflict | null> {
  const members: Member[] = []
  if (login !== null) members.push(firstOwnerOf(account, login))
  else if (owner !== null) members.push(ownerOf(account, owner))
  const { id: accountId, createdAtMs: nowMs } = account
  const signIns = new EndedSignIns(store, account, nowMs)
  if (owner !== null) await signIns.read(owner.id)
  const write: AccountWrites = {
    ...{ account, members, audit, link },
    ends: signIns.withRoles(members.map((after) => ({ before: null, after }))),
    ...(login === null ? {} : { users: [login] }),
  }
  const result = await store.transact<AccountConflict>({
    ...{ accountId, nowMs },
    decide: (state) => (state.account === null ? { write } : { refuse: 'id_taken' }),
  })
  if (result.kind === 'conflict') return result.conflict
  return result.kind === 'refused' ? result.reason : null
}

/** The audit entry of a new account. */
function accountCreation(account: Account, parents: ParentNames, actor: Actor): AuditEntry {
  const { id: accountId, name, createdAtMs: nowMs } = account
  const what = { action: 'account.create', target: accountId, detail: account.email ?? name }
  const change = accountChange(null, account, parents)
  return changeEntry({ nowMs, actor, accountId, account: name }, { ...what, ...change })
}

/** The name of an account. Throws a `Refusal`. */
function checkedAccountName(name: string): string {
  const fault = accountNameFault(name)
  if (fault !== null) throw invalid('name', ...fault)
  return name
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

/** Repetitions of a change that another one overtook. */
const MAX_TRIES = 20

/**
 * Changes those values of the account's fields that are given: `display_name`, `plan`, `parent` (a name or
 * null), `labels`, `limits`, `disabled`. Keys above a new plan's number stay valid. Throws a `Refusal` or
 * `store_unavailable`.
 */
export async function changeAccount(
  changing: Changing,
  { id, name }: Pick<Account, 'id' | 'name'>,
  settings: JsonObject,
): Promise<Account> {
  const fields = accountFields(name, changing.plans)
  const read = readFields(fields, settings, { isPatch: true })
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const changed = await changedOnce(changing, { id, name }, { fields, read })
    if (changed !== 'again') return changed
  }
  throw new GatewayError(
    'store_unavailable',
    'Other changes of this account are made all the time: try again.',
  )
}

/** The checked change of an account. */
interface AccountPatch {
  readonly fields: Fields
  readonly read: JsonObject
}

async function changedOnce(
  changing: Changing,
  { id: accountId, name }: Pick<Account, 'id' | 'name'>,
  { fields, read }: AccountPatch,
): Promise<Account | 'again'> {
  const { store, plans, nowMs, actor } = changing
  const found = await store.accountById(accountId)
  const above = found?.parentId === undefined ? null : await store.accountById(found.parentId)
  const wanted = typeof read['parent'] === 'string' ? await store.accountByName(read['parent']) : null
  if (typeof read['parent'] === 'string' && wanted === null) throw conflictRefusal('no_parent', '')
  const known = [above, wanted].filter((each) => each !== null)
  const parents = new Map(known.map((each) => [each.id, each.name]))
  const parent = 'parent' in read ? wanted : above
  const most = parent === null ? [] : await limitsAbove({ store, plans }, parent)
  const result = await store.transact<Refusal | 'again' | { readonly unchanged: Account }>({
    ...{ accountId, nowMs },
    decide({ account }) {
      if (account === null) return { refuse: noAccount() }
      if (account.parentId !== undefined && !parents.has(account.parentId)) return { refuse: 'again' }
      const before = accountValues(account, parentName(account, parents))
      const values = patchedObject(fields, before, read)
      const refusal = surplusLabels(values) ?? accountBeyond(null, { values, before, most })
      if (refusal !== null) return { refuse: refusal }
      const context = { nowMs, actor, accountId, account: name }
      const { kind, item } = decideAccount(account, values, parents, context)
      if (kind === 'unchanged') return { refuse: { unchanged: account } }
      const audit = entriesByAction(account, item, parents, context)
      return { write: { account: item, ends: endsOf(account, item), audit } }
    },
  })
  if (result.kind === 'conflict') throw conflictRefusal(result.conflict, name)
  if (result.kind === 'written' && result.writes.account !== undefined) return result.writes.account
  if (result.kind === 'written') throw noAccount()
  if (result.reason === 'again') return 'again'
  if (result.reason instanceof Error) throw result.reason
  return result.reason.unchanged
}

/** The sign-ins that end with a change of an account: those of its user when it is disabled. */
export function endsOf(before: Account | null, after: Account): EndedTokens[] {
  return after.disabled && before?.disabled !== true ? [sessionsOf(after.id)] : []
}

/** The name of a plan of the configuration. Throws a `Refusal` that names the plans. */
export function checkedPlan(name: JsonValue, plans: Plans): PlanName {
  return checkedValue(planType(plans), name, 'plan')
}

/** The normalised e-mail address. Throws a `Refusal`. */
export function checkedEmail(text: string): string {
  const fault = emailFault(text)
  if (fault !== null) throw invalid('email', ...fault)
  return comparableEmail(text)
}
