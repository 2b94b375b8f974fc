/**
 * Who may use which route of the dashboard's API: the table of docs/reference/access.md, which a test
 * compares with this one, and the account that a request is about.
 */
import { roleOf, type Account, type AccountRole, type GatewayRole } from '../../../accounts/account.js'
import { GatewayError } from '../../../errors.js'
import type { Store } from '../../../store/store.js'
import type { AccountSession, Session } from '../sign-in/sessions.js'

/** `own`: only keys that the user made. */
type Permission = 'yes' | 'own' | 'no'

/** A row of the table. */
interface Access {
  /** What the route is about: the signed-in user, one account, or the whole gateway. */
  readonly of: 'user' | 'account' | 'gateway'
  readonly may: Readonly<Record<GatewayRole | AccountRole, Permission>>
}

function row(of: Access['of'], ...may: readonly Permission[]): Access {
  const [admin = 'no', auditor = 'no', owner = 'no', member = 'no', viewer = 'no'] = may
  return { of, may: { admin, auditor, owner, member, viewer } }
}

/** The rows, by the name that routes have as their credential. */
export const ACCESS = {
  /** The user's own sign-in, and what every user may know. */
  session: row('user', 'yes', 'yes', 'yes', 'yes', 'yes'),
  usage: row('account', 'yes', 'yes', 'yes', 'yes', 'yes'),
  'read keys': row('account', 'yes', 'yes', 'yes', 'own', 'no'),
  'make keys': row('account', 'yes', 'no', 'yes', 'yes', 'no'),
  'change keys': row('account', 'yes', 'no', 'yes', 'own', 'no'),
  'read account': row('account', 'yes', 'yes', 'yes', 'no', 'no'),
  'change members': row('account', 'yes', 'no', 'yes', 'no', 'no'),
  'read gateway': row('gateway', 'yes', 'yes', 'no', 'no', 'no'),
  admin: row('gateway', 'yes', 'no', 'no', 'no', 'no'),
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

/**
 * The session with the account of the request and what the user may do. Throws `not_found` for an account of
 * which the user has no role, and `forbidden` for a role that is too low.
 */
export async function authorize(
  store: Pick<Store, 'accountById' | 'accountByName'>,
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
  const member = session.members.find(({ accountId }) => accountId === account.id)
  const role = member === undefined ? null : roleOf(member)
  if (role === null && gatewayRole === null) throw notFound()
  const permission = higher(granted, role === null ? 'no' : may[role])
  if (permission === 'no') throw tooLow(gatewayRole)
  return { ...session, account, isAll: false, permission }
}

/** The account with this name or id that the user may see. */
async function accountNamed(
  store: Pick<Store, 'accountById' | 'accountByName'>,
  { user, accounts }: Session,
  named: string,
): Promise<Account> {
  const own = accounts.find(({ id, name }) => id === named || name === named)
  if (own !== undefined) return own
  if (roleOf(user) === null) throw notFound()
  const found = (await store.accountByName(named)) ?? (await store.accountById(named))
  if (found === null) throw notFound()
  return found
}

/** The permission that allows more. */
export function higher(one: Permission, other: Permission): Permission {
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
