/**
 * Who may use which route of the dashboard's API: the table of docs/reference/access.md, which a test
 * compares with this one, and the account that a request is about.
 */
import { roleOf, type Account, type AccountRole, type GatewayRole } from '../../../accounts/account.js'
import { GatewayError } from '../../../errors.js'
import type { Store } from '../../../store/store.js'
import type { AccountSession, Session } from '../../sign-in/sessions.js'

/** `own`: only keys that the user made. */
type Permission = 'yes' | 'own' | 'no'

/** A row of the table. */
interface Access {
  /** What the route is about: the signed-in user, one account, or the whole gateway. */
  readonly of: 'user' | 'account' | 'gateway'
  readonly may: Readonly<Record<GatewayRole | SessionRole, Permission>>
}

/** The role in an account; `above`: an owner of an account above it, who is no owner of this one. */
type SessionRole = AccountRole | 'above'

function row(of: Access['of'], ...may: readonly Permission[]): Access {
  const [admin = 'no', auditor = 'no', owner = 'no', above = 'no', member = 'no', viewer = 'no'] = may
  return { of, may: { admin, auditor, owner, above, member, viewer } }
}

/** The rows, by the name that routes have as their credential. */
export const ACCESS = {
  /** The user's own sign-in, and what every user may know. */
  session: row('user', 'yes', 'yes', 'yes', 'yes', 'yes', 'yes'),
  usage: row('account', 'yes', 'yes', 'yes', 'yes', 'yes', 'yes'),
  'read keys': row('account', 'yes', 'yes', 'yes', 'yes', 'own', 'no'),
  'make keys': row('account', 'yes', 'no', 'yes', 'no', 'yes', 'no'),
  'change keys': row('account', 'yes', 'no', 'yes', 'yes', 'own', 'no'),
  'read account': row('account', 'yes', 'yes', 'yes', 'yes', 'no', 'no'),
  'change limits': row('account', 'yes', 'no', 'yes', 'yes', 'no', 'no'),
  'change members': row('account', 'yes', 'no', 'yes', 'no', 'no', 'no'),
  'read gateway': row('gateway', 'yes', 'yes', 'no', 'no', 'no', 'no'),
  admin: row('gateway', 'yes', 'no', 'no', 'no', 'no', 'no'),
} as const satisfies Record<string, Access>

/** The name of a row. */
export type AccessName = keyof typeof ACCESS

interface AccessRequest {
  readonly session: Session
  readonly name: AccessName
  readonly isRead: boolean
  /** The query parameter `account`: a name, an id, or `all`; undefined: the user's account. */
  readonly account: string | undefined
}

/** The parts of the store that decide about access. */
export type AccessStore = Pick<Store, 'accountById' | 'accountByName' | 'ancestorsOf'>

/**
 * The session with the account of the request and what the user may do. Throws `not_found` for an account of
 * which the user has no role, and `forbidden` for a role that is too low.
 */
export async function authorize(
  store: AccessStore,
  { session, name, isRead, account: named }: AccessRequest,
): Promise<AccountSession> {
  const { of, may }: Access = ACCESS[name]
  const gatewayRole = roleOf(session.user)
  const granted = gatewayRole === null ? 'no' : may[gatewayRole]
  if (of !== 'account') {
    const permission = of === 'user' ? 'yes' : granted
    if (permission === 'no') throw tooLow(gatewayRole)
    return { ...session, isAll: false, permission }
  }
  if (named === 'all') {
    // A key's id is enough to change it: the account of the change is that of the key.
    const isOfAll = isRead || name === 'change keys'
    if (gatewayRole === null || !isOfAll) throw notFound()
    if (granted === 'no') throw tooLow(gatewayRole)
    return { ...session, isAll: true, permission: granted }
  }
  const account = named === undefined ? session.account : await accountNamed(store, session, named)
  if (account === null) throw notFound()
  const roles = await rolesIn(store, session, account)
  if (roles.length === 0 && gatewayRole === null) throw notFound()
  const permission = roles.map((role) => may[role]).reduce(higher, granted)
  if (permission === 'no') throw tooLow(gatewayRole)
  return { ...session, account, isAll: false, permission }
}

/** The account with this name or id. Accounts of the user need no read. */
async function accountNamed(
  store: AccessStore,
  { user, accounts, members }: Session,
  named: string,
): Promise<Account | null> {
  const own = accounts.find(({ id, name }) => id === named || name === named)
  if (own !== undefined) return own
  // Others see only accounts below their own, if they own one.
  if (roleOf(user) === null && !members.some((member) => roleOf(member) === 'owner')) return null
  return (await store.accountByName(named)) ?? (await store.accountById(named))
}

/** The user's roles in the account; empty for none. */
async function rolesIn(
  store: Pick<Store, 'ancestorsOf'>,
  { members }: Pick<Session, 'members'>,
  account: Account,
): Promise<SessionRole[]> {
  const own = members.find(({ accountId }) => accountId === account.id)
  const role = own === undefined ? null : roleOf(own)
  const roles: SessionRole[] = role === null ? [] : [role]
  const owned = new Set(members.filter((each) => roleOf(each) === 'owner').map((each) => each.accountId))
  if (role === 'owner' || owned.size === 0) return roles
  const above = await store.ancestorsOf(account)
  return above.some(({ id }) => owned.has(id)) ? [...roles, 'above'] : roles
}

/** What the user may do of a row of the table in the account of the session. */
export async function permissionIn(
  store: Pick<Store, 'ancestorsOf'>,
  session: Pick<Session, 'user' | 'members' | 'account'>,
  name: AccessName,
): Promise<Permission> {
  const { may }: Access = ACCESS[name]
  const gatewayRole = roleOf(session.user)
  const roles = await rolesIn(store, session, session.account)
  return roles.map((role) => may[role]).reduce(higher, gatewayRole === null ? 'no' : may[gatewayRole])
}

/** The permission that allows more. */
function higher(one: Permission, other: Permission): Permission {
  if (one === 'yes' || other === 'yes') return 'yes'
  return one === 'own' || other === 'own' ? 'own' : 'no'
}

function tooLow(role: GatewayRole | null): GatewayError {
  const message =
    role === 'auditor'
      ? 'Auditors read everything and change nothing.'
      : 'Your role does not allow this. Ask an owner of the account or an administrator.'
  return new GatewayError('forbidden', message)
}

/** The error for an unknown object and for one of another account: the same text for both. */
export function notFound(): GatewayError {
  return new GatewayError('not_found', 'Not found in this account.')
}
