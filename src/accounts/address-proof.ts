/**
 * Users whose address is not proven. The person who opened the sign-in of such a user may be another one: the
 * owner who got the link of an invitation, or a visitor who signed up with the address of another person. So
 * roles that others give it are pending, until it enters the account by a link of the account, or the address
 * is proven: by the identity provider, by a link that was mailed to it, or by an administrator.
 */
import { highestRole, roleOf, type GatewayRole, type Member, type User } from './account.js'

/**
 * Whether the address is not proven. Users of earlier versions count as proven, except those who were
 * invited and have not signed in.
 */
export function isUnproven({ unproven, passwordHash, subject, signedInAtMs }: User): boolean {
  if (unproven === true) return true
  return passwordHash === '' && subject === undefined && signedInAtMs === undefined
}

/** Whether the role in the account takes effect; else it is pending. */
export function takesEffect(user: User, { accepted }: Pick<Member, 'accepted'>): boolean {
  return accepted === true || !isUnproven(user)
}

/** The user with the roles in the whole gateway that take effect. */
export function withEffectiveRole(user: User): User {
  return isUnproven(user) ? withoutRole(user) : user
}

function withoutRole({ ...user }: User): User {
  delete user.groupRole
  return { ...user, role: null }
}

/** The role in the whole gateway that takes effect; null for none. */
export function gatewayRoleOf(user: User): GatewayRole | null {
  return isUnproven(user) ? null : roleOf(user)
}

/** The states of users in lists. `invited`: has not signed in yet. */
export const USER_STATES = ['active', 'invited', 'unproven', 'disabled'] as const

/** The state of a user in lists. */
export function userState(user: User): (typeof USER_STATES)[number] {
  if (user.disabled) return 'disabled'
  if (isUnproven(user)) return 'unproven'
  return user.signedInAtMs === undefined ? 'invited' : 'active'
}

/** The state of a role in an account. */
export type MemberState = 'active' | 'invited' | 'pending'

/**
 * The state of a member for those who may list users. `pending`: the role waits for proof of the address.
 * `invited`: the user has not signed in yet.
 */
export function memberState(member: Member, user: User | null): MemberState {
  if (user?.signedInAtMs === undefined) return 'invited'
  return takesEffect(user, member) ? 'active' : 'pending'
}

/**
 * The state for those who may not list users: `pending` until the user has entered this account, so that a
 * new user, a user who exists, and one whose address is proven look the same.
 */
export function stateForInviter(member: Member, user: User | null): MemberState {
  return user !== null && hasEntered(user, member) ? 'active' : 'pending'
}

/** Whether the user has signed in since it was given the role, and the role took effect. */
export function hasEntered(user: User, member: Member): boolean {
  const { signedInAtMs } = user
  if (signedInAtMs === undefined || !takesEffect(user, member)) return false
  return member.accepted === true || member.createdAtMs <= signedInAtMs
}

/** Whether the change of a member gives more than it had. */
export function isRaised(before: Member | null, after: Member): boolean {
  const [former, role] = [before === null ? null : roleOf(before), roleOf(after)]
  return role !== former && highestRole([role, former]) === role
}
