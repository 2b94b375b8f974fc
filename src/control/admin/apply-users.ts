/** The users of the members that a document gives roles: new ones are written with their roles. */
import type { Account, User } from '../../accounts/account.js'
import type { ChangeContext } from '../../accounts/changes/decide.js'
import { userToBe } from '../../accounts/members.js'
import type { AccountState, AccountWrites } from '../../store/account-changes.js'
import type { ApplyOptions, Group } from './group-documents.js'
import { userCreation } from './members.js'

/** The account that a group makes. */
export function newAccountOf(
  { id, name, parent }: Group,
  parents: ReadonlyMap<string, string>,
  nowMs: number,
): Account {
  const [parentId] = [...parents].find(([, each]) => each === parent) ?? []
  const above = parentId === undefined ? {} : { parentId }
  return { id, name, plan: '', disabled: false, createdAtMs: nowMs, ...above }
}

/** The roles that a change gives and takes. */
export function rolesOf({ members = [], removedMembers = [] }: AccountWrites, state: AccountState) {
  const before = (email: string) => state.members.get(email) ?? null
  return [
    ...members.map((after) => ({ before: before(after.email), after })),
    ...removedMembers.map((email) => ({ before: before(email), after: null })),
  ]
}

/** The change with those new users who get a role in it. */
export function withUsers(
  writes: AccountWrites,
  made: ReadonlyMap<string, User>,
  context: ChangeContext,
): AccountWrites {
  const users = (writes.members ?? []).flatMap(({ userId }) => made.get(userId) ?? [])
  const entries = users.map((user) => userCreation(user, context))
  return { ...writes, users, audit: [...entries, ...writes.audit] }
}

/** The users of the wanted members by address, and the new ones by id, which are written with the members. */
export async function usersOf(
  { store, now }: ApplyOptions,
  { members }: Group,
): Promise<{ readonly users: ReadonlyMap<string, string>; readonly made: ReadonlyMap<string, User> }> {
  const users = new Map<string, string>()
  const made = new Map<string, User>()
  for (const { name: email } of members) {
    const { user, isNew } = await userToBe(store, { email, now })
    users.set(email, user.id)
    if (isNew) made.set(user.id, user)
  }
  return { users, made }
}
