/**
 * The roles that groups of an identity provider give (`dashboard.oidc.roles`). They are set at each sign-in;
 * roles that were given by hand are kept beside them.
 */
import type { GroupRolesConfig } from '../config/config.js'
import type { AuditEntry } from '../store/audit-trail.js'
import type { Store } from '../store/store.js'
import { highestRole, roleOf, type AccountRole, type GatewayRole, type Member, type User } from './account.js'
import { memberChange, userChange } from './changes/audit-text.js'
import { isOwnName } from './names.js'

/** What a user's groups give. */
export interface GroupRoles {
  /** In the whole gateway; null for none. */
  readonly gateway: GatewayRole | null
  /** By the id of an account that exists. */
  readonly accounts: ReadonlyMap<string, AccountRole>
}

/** The most groups that are read; providers give a few hundred. */
const MAX_GROUPS = 1_000

/**
 * The roles of these groups. A group gives the role of an account only if the account exists. A pattern does
 * not select accounts that users or tokens of accounts may have made: their makers would read what people of
 * the group do there.
 */
export async function groupRolesOf(
  store: Pick<Store, 'accountByName'>,
  config: GroupRolesConfig | null,
  groups: readonly string[],
): Promise<GroupRoles> {
  const accounts = new Map<string, AccountRole>()
  if (config === null) return { gateway: null, accounts }
  const own = new Set(groups.slice(0, MAX_GROUPS))
  const gateway = highestRole<GatewayRole>([
    config.admin.some((group) => own.has(group)) ? 'admin' : null,
    config.auditor.some((group) => own.has(group)) ? 'auditor' : null,
  ])
  const patterns = Object.entries(config.accounts)
  for (const group of own) {
    const matching = patterns.filter(([pattern]) => matches(pattern, group, isOwnName(group)))
    const role = highestRole(matching.map(([, each]) => each))
    const account = role === null ? null : await store.accountByName(group)
    if (role !== null && account !== null) accounts.set(account.id, role)
  }
  return { gateway, accounts }
}

function matches(pattern: string, group: string, isNamedAlone: boolean): boolean {
  if (!pattern.endsWith('*')) return group === pattern
  return !isNamedAlone && group.startsWith(pattern.slice(0, -1))
}

/** A sign-in of a user with these roles. */
interface GroupSignIn {
  readonly user: User
  readonly roles: GroupRoles
  readonly nowMs: number
  readonly entryOf: (
    what: Pick<AuditEntry, 'accountId' | 'action' | 'target' | 'detail' | 'before' | 'after'>,
  ) => AuditEntry
}

/** Gives the user the roles of its groups, and takes away those of groups that it has left. */
export async function setGroupRoles(
  store: Pick<Store, 'users' | 'transact'>,
  { user, roles, nowMs, entryOf }: GroupSignIn,
): Promise<void> {
  if ((user.groupRole ?? null) !== roles.gateway) {
    await store.users.change(user.id, { groupRole: roles.gateway }, (before, after) => [
      entryOf({
        ...{ accountId: user.id, action: 'user.role', target: user.id },
        ...{ detail: `${user.email}: ${roleOf(after) ?? 'no role'}`, ...userChange(before, after) },
      }),
    ])
  }
  const members = await store.users.memberships(user.id)
  const ids = new Set([...members.map(({ accountId }) => accountId), ...roles.accounts.keys()])
  for (const accountId of ids) {
    const wanted = roles.accounts.get(accountId) ?? null
    const member = members.find((each) => each.accountId === accountId)
    if ((member?.groupRole ?? null) === wanted) continue
    await store.transact({
      accountId,
      nowMs,
      reads: { members: [user.email] },
      decide: ({ account, members: found }) => {
        const before = found.get(user.email) ?? null
        if (account === null) return { refuse: 'absent' }
        const after = withGroupRole(before ?? newMember(accountId, user, nowMs), wanted)
        const isLeft = after.role === null && after.groupRole === undefined
        const audit = [memberEntry(before, isLeft ? null : after)].map(entryOf)
        if (!isLeft) return { write: { members: [{ ...after, updatedAtMs: nowMs }], audit } }
        if (before === null) return { refuse: 'absent' }
        return { write: { removedMembers: [user.email], audit } }
      },
    })
  }
}

function newMember(accountId: string, { id, email }: User, createdAtMs: number): Member {
  return { accountId, userId: id, email, role: null, createdAtMs }
}

function withGroupRole(member: Member, role: AccountRole | null): Member {
  const changed = { ...member }
  delete changed.groupRole
  return role === null ? changed : { ...changed, groupRole: role }
}

function memberEntry(before: Member | null, after: Member | null) {
  const { accountId = '', email = '' } = after ?? before ?? {}
  const action = after === null ? 'member.remove' : before === null ? 'member.create' : 'member.change'
  const role = after === null ? null : roleOf(after)
  const detail = role === null ? email : `${email}: ${role}`
  return { accountId, action, target: email, detail, ...memberChange(before, after) }
}
