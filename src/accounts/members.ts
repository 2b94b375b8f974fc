/** Creates users, and makes them members of accounts; for the dashboard and the command line. */
import type { AuditEntry } from '../store/audit-trail.js'
import { userPages } from '../store/list-all.js'
import type { AddedSignIn } from '../store/sign-in-tokens.js'
import type { Store, UserEdit } from '../store/store.js'
import type { Account, AccountRole, Member, User } from './account.js'
import { checkedEmail } from './changes/change-accounts.js'
import { conflictRefusal } from './changes/decide.js'
import { invalid, noAccount, Refusal } from './changes/refusal.js'
import { allSignIns, EndedSignIns } from './ended-sign-ins.js'
import { randomBase62 } from './key-secret.js'
import type { LinkStore } from './link-makers.js'
import { hashPassword, newPassword } from './password.js'
import type { Sources } from './sources.js'

/** Data of a new user. */
interface NewUser extends Sources {
  readonly email: string
  readonly role?: User['role']
  /** Null: a password is generated. `none`: the user signs in with a link or an identity provider. */
  readonly password: string | null | { readonly none: true }
  /** Hashes the password; `hashPassword` by default. */
  readonly hash?: (password: string) => string | Promise<string>
  /** Entries for the audit trail; none by default. */
  readonly audit?: (user: User) => readonly AuditEntry[]
  /** An invitation, written with the user. */
  readonly link?: (user: User) => Promise<AddedSignIn | null>
}

/** Creates a user. Throws `malformed_request` with the field (also for an e-mail in use). */
export async function createUser(
  store: Pick<Store, 'users'>,
  newUser: NewUser,
): Promise<{ readonly user: User; readonly generatedPassword: string | null }> {
  const { now = Date.now, random, hash = hashPassword, audit = () => [], link } = newUser
  const email = checkedEmail(newUser.email)
  const generatedPassword = newUser.password === null ? newPassword(random) : null
  const password = typeof newUser.password === 'string' ? newUser.password : generatedPassword
  const invited = invitedUser(email, { now, ...(random === undefined ? {} : { random }) })
  const { unproven, ...proven } = { ...invited, role: newUser.role ?? null }
  // Who sets a password by a link or at the provider is decided then.
  const proof = password === null ? { unproven } : { passwordHash: await hash(password) }
  const user: User = { ...proven, ...proof }
  const outcome = await store.users.create(user, audit(user), await link?.(user))
  if (outcome === 'created') return { user, generatedPassword }
  throw invalid('email', 'A user with this e-mail address exists.', 'Use another address.')
}

/** A new user without a role and a password, which is not stored. */
function invitedUser(email: string, { now = Date.now, random }: Sources): User & { readonly unproven: true } {
  const id = `usr_${randomBase62(16, random)}`
  const none = { role: null, passwordHash: '', disabled: false }
  return { id, email, ...none, createdAtMs: now(), unproven: true }
}

/** The stored user with the address, or a new one, which a change has to write. */
export async function userToBe(
  store: Pick<Store, 'users'>,
  { email: text, ...sources }: Pick<NewUser, 'email' | 'now'>,
): Promise<{ readonly user: User; readonly isNew: boolean }> {
  const email = checkedEmail(text)
  const known = await store.users.byEmail(email)
  return known === null ? { user: invitedUser(email, sources), isNew: true } : { user: known, isNew: false }
}

/**
 * Makes a change with the user of the address (`userToBe`). If another process makes the user meanwhile, the
 * change is made with that one.
 */
export async function withUser<Result>(
  store: Pick<Store, 'users'>,
  wanted: Pick<NewUser, 'email' | 'now'>,
  change: (user: User, isNew: boolean) => Promise<Result>,
): Promise<Result> {
  const { user, isNew } = await userToBe(store, wanted)
  try {
    return await change(user, isNew)
  } catch (error) {
    const isTaken = isNew && error instanceof Refusal && error.field === 'email'
    const made = isTaken ? await store.users.byEmail(user.email) : null
    if (made === null) throw error
    return change(made, false)
  }
}

/** The user with the address; a new one, without a password, if there is none. */
export async function ensureUser(
  store: Pick<Store, 'users'>,
  { audit, ...wanted }: Pick<NewUser, 'email' | 'now' | 'audit'>,
): Promise<{ readonly user: User; readonly isNew: boolean }> {
  return withUser(store, wanted, async (user, isNew) => {
    const outcome = isNew ? await store.users.create(user, audit?.(user)) : 'created'
    if (outcome === 'created') return { user, isNew }
    throw conflictRefusal(outcome, user.email)
  })
}

/**
 * Writes the record of an existing user again, without a change: the request then takes as long as one that
 * makes a user, so that its reply does not tell whether the address had one.
 */
export async function writeAsIfMade({ users }: Pick<Store, 'users'>, userId: string): Promise<void> {
  await users.change(userId, {})
}

/** A change of what a user may do in the whole gateway. */
interface UserChange {
  readonly edit: Pick<UserEdit, 'role' | 'disabled'>
  readonly nowMs: number
  /** Entries for the audit trail, if anything differs. */
  readonly audit: (before: User, after: User) => readonly AuditEntry[]
  /** An invitation, written with the change. */
  readonly link?: AddedSignIn | null
}

/**
 * Changes the role in the gateway, or disables or enables the user; null if the user does not exist. Ends the
 * links whose makers could not give the role, and the sign-ins and programs of a disabled user.
 */
export async function changeUser(
  store: LinkStore,
  userId: string,
  { edit, nowMs, audit, link = null }: UserChange,
): Promise<User | null> {
  const gains = edit.role !== undefined && edit.role !== null
  const signIns = new EndedSignIns(store, null, nowMs)
  if (gains) await signIns.read(userId)
  return store.users.change(
    userId,
    edit,
    (before, after) => {
      const isSame = before.role === after.role && before.disabled === after.disabled
      return isSame ? [] : audit(before, after)
    },
    (_, after) => ({
      ends: [...(gains ? signIns.withGain(userId) : []), ...(after.disabled ? [allSignIns(userId)] : [])],
      link,
    }),
  )
}

/** A user to free of its identity. */
interface Unbinding extends Pick<UserChange, 'audit'> {
  /** Why the user is not in the state that is meant; null: it is. */
  readonly check?: (user: User) => Error | null
}

/**
 * Frees the user of its identity at an identity provider, and ends its sessions and links; null if the user
 * does not exist. A user who is bound to none stays unchanged.
 */
export async function unbindUser(
  store: Pick<Store, 'users' | 'signInTokens'>,
  userId: string,
  { audit, check = () => null }: Unbinding,
): Promise<User | null> {
  const known = await store.users.byId(userId)
  if (known === null) return null
  const failed = check(known)
  if (failed !== null) throw failed
  if (known.subject === undefined) return known
  const refusals: Error[] = []
  const free = (stored: User): UserEdit | null => {
    const refusal = check(stored)
    if (refusal === null) return { issuer: null, subject: null, groupRole: null }
    refusals.push(refusal)
    return null
  }
  const user = await store.users.change(
    userId,
    free,
    (before, after) =>
      audit(before, after).map((entry) => ({
        ...entry,
        detail: `${before.email}: ${before.issuer ?? ''} ${before.subject ?? ''}`,
      })),
    () => ({ ends: [allSignIns(userId)] }),
  )
  const [refusal] = refusals
  if (user === null && refusal !== undefined) throw refusal
  return user
}

/** An identity of an identity provider, with the address that the provider has verified. */
interface BoundIdentity {
  readonly issuer: string
  readonly subject: string
  readonly email: string
}

/**
 * The user who is bound to the identity, with any address; null if there is none. All users are read
 * only at the first sign-in of an identity, and after its address has changed.
 */
export async function userOfIdentity(
  { users }: Pick<Store, 'users'>,
  { issuer, subject, email }: BoundIdentity,
): Promise<User | null> {
  const isBound = (user: User) => user.subject === subject && user.issuer === issuer
  const named = await users.byEmail(email)
  if (named !== null && isBound(named)) return named
  for await (const page of userPages({ users })) {
    const bound = page.find(isBound)
    if (bound !== undefined) return bound
  }
  return null
}

/** A role to give by hand. */
interface NewMember {
  readonly account: Account
  readonly user: User
  readonly role: AccountRole
  readonly nowMs: number
  /** Entries for the audit trail; `before` is null for a new member. */
  readonly audit: (before: Member | null, after: Member) => readonly AuditEntry[]
  /** An invitation, written with the role. */
  readonly link?: AddedSignIn | null
  /** Entries about the user, who is new and written with the role; absent: the user exists. */
  readonly made?: readonly AuditEntry[]
}

/**
 * Gives the user the role in the account; a role that a group gives stays beside it. The role of an unproven
 * user is pending (`address-proof.ts`).
 */
export async function setMember(
  store: LinkStore & Pick<Store, 'transact'>,
  { account, user, role, nowMs, audit, link = null, made }: NewMember,
): Promise<Member> {
  const { email } = user
  const signIns = new EndedSignIns(store, account, nowMs)
  if (made === undefined) await signIns.read(user.id)
  const result = await store.transact<Member | null>({
    accountId: account.id,
    reads: { members: [email] },
    nowMs,
    decide: ({ account: stored, members }) => {
      if (stored === null) return { refuse: null }
      const before = members.get(email) ?? null
      if (before?.role === role) return { refuse: before }
      const started = { accountId: account.id, userId: user.id, email, createdAtMs: nowMs }
      const after = before === null ? { ...started, role } : { ...before, role, updatedAtMs: nowMs }
      return {
        write: {
          ...(made === undefined ? {} : { users: [user] }),
          ...(link === null ? {} : { link }),
          members: [after],
          ends: signIns.withRoles([{ before, after }]),
          audit: [...(made ?? []), ...audit(before, after)],
        },
      }
    },
  })
  if (result.kind === 'conflict') throw conflictRefusal(result.conflict, account.name)
  // Another process gave the role meanwhile.
  if (result.kind === 'refused' && result.reason !== null && link !== null) {
    await store.signInTokens.add(link.token, { replaces: link.replaces })
  }
  const [member] = result.kind === 'refused' ? [result.reason] : (result.writes.members ?? [])
  if (!member) throw noAccount()
  return member
}

/** A change of whether users have entered accounts. */
interface Acceptance {
  readonly isAccepted: boolean
  readonly nowMs: number
  /** Entries for the audit trail; none by default. */
  readonly audit?: (member: Member) => readonly AuditEntry[]
}

/**
 * Notes whether the user has entered the accounts of these roles: those of an unproven user take effect then,
 * and are pending otherwise.
 */
export async function setAccepted(
  store: Pick<Store, 'transact'>,
  roles: readonly Member[],
  { isAccepted, nowMs, audit = () => [] }: Acceptance,
): Promise<void> {
  for (const { accountId, email } of roles) {
    await store.transact({
      accountId,
      reads: { members: [email] },
      nowMs,
      decide: ({ members }) => {
        const before = members.get(email)
        if (before === undefined || (before.accepted === true) === isAccepted) return { refuse: 'same' }
        const after: Member = { ...before }
        delete after.accepted
        if (isAccepted) after.accepted = true
        return { write: { members: [after], audit: audit(after) } }
      },
    })
  }
}

/**
 * Takes every role in the account from the user with this address, and ends the sessions of one who has no
 * other role. False if it is not a member.
 */
export async function removeMember(
  store: LinkStore & Pick<Store, 'transact'>,
  {
    account,
    email,
    nowMs,
    audit,
  }: Pick<NewMember, 'account' | 'nowMs'> & {
    readonly email: string
    readonly audit: (before: Member) => readonly AuditEntry[]
  },
): Promise<boolean> {
  const found = await store.memberOf(account.id, email)
  const signIns = new EndedSignIns(store, account, nowMs)
  if (found !== null) await signIns.read(found.userId)
  const result = await store.transact({
    accountId: account.id,
    reads: { members: [email] },
    nowMs,
    decide: ({ members }) => {
      const before = members.get(email)
      if (before === undefined) return { refuse: 'absent' }
      const ends = signIns.withRoles([{ before, after: null }])
      return { write: { removedMembers: [email], ends, audit: audit(before) } }
    },
  })
  if (result.kind === 'conflict') throw conflictRefusal(result.conflict, account.name)
  return result.kind === 'written'
}
