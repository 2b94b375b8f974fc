/**
 * One-time links with which a user sets a password: the only place that makes and uses them, for the
 * dashboard and the admin API. With `smtp`, only the user's address gets the link.
 */
import { createHash } from 'node:crypto'
import type { Account, Member, User } from '../../accounts/account.js'
import { gatewayRoleOf, isUnproven } from '../../accounts/address-proof.js'
import {
  mayGive,
  provesAddress,
  readLink,
  writeLink,
  type Link,
  type LinkMaker,
} from '../../accounts/link-makers.js'
import { displayNameOf, isSelfMade } from '../../accounts/names.js'
import type { Snapshot } from '../../config/config.js'
import { GatewayError } from '../../errors.js'
import { isLoopback } from '../../http/private-addresses.js'
import type { Mail } from '../../observe/mails.js'
import type { AuditEntry } from '../../store/audit-trail.js'
import type { AddedSignIn, SignInToken } from '../../store/sign-in-tokens.js'
import type { Store } from '../../store/store.js'
import { assertMayHavePassword, providerOf } from './bound-users.js'
import { newSignInSecret, signInTokenIdOf } from './sessions.js'

/** What links depend on. */
export interface LinkParts {
  readonly store: Store
  readonly snapshot: () => Snapshot
  /** Ms since 1970. */
  readonly now: () => number
  /** Queues a mail for the server of `smtp`; without it the mail is dropped. */
  readonly mail: (mail: Mail) => void
}

/** A link to make. */
export interface LinkOrder {
  readonly maker: LinkMaker
  readonly user: User
  /** The account that the user is invited to; null: the whole gateway, by an administrator. */
  readonly account: Account | null
  /** The origin of the dashboard as the maker sees it. */
  readonly origin: string
  /** When the right of the maker ends, at the latest; absent: it has no end. */
  readonly endsAtMs?: number
  /** Entries for the audit trail, stored with the link. */
  readonly auditEntries?: readonly AuditEntry[]
}

/** A new link. */
export interface NewLink {
  /** Null: it was mailed to the user's address. */
  readonly url: string | null
  readonly expiresAtMs: number
}

/** A link that is not written yet: a change writes it with what it is for. */
export interface DraftLink {
  /** Null: it has no effect. */
  readonly write: AddedSignIn | null
  /** To be called when it is written: queues the mail, and returns what its maker sees. */
  readonly written: (account: Account | null) => NewLink
}

/** Lifetime of a link. */
const LINK_MS = 86_400_000
/** Mails to one address, over all makers. */
const MAILS = { burst: 5, everyMs: 600_000 } as const

/**
 * Makes a link, which replaces the former one of the account. For a user with a proven address the link has
 * no effect, unless its maker may replace the password: a maker who may not list users cannot tell the
 * difference, also by using it. The secret follows `#`, so that it reaches no server and no log. Throws
 * `rate_limited` if the address got too many mails.
 */
export async function makeLink(parts: LinkParts, order: LinkOrder): Promise<NewLink> {
  const { store } = parts
  const { auditEntries = [] } = order
  const { write, written } = await draftLink(parts, order)
  if (write !== null) await store.signInTokens.add(write.token, { auditEntries, replaces: write.replaces })
  else for (const entry of auditEntries) await store.auditTrail.add(entry)
  return written(order.account)
}

/** The same, written by the caller, without audit entries. */
export async function draftLink(
  parts: LinkParts,
  order: Omit<LinkOrder, 'auditEntries'>,
): Promise<DraftLink> {
  const { snapshot, now, mail } = parts
  const { maker, user, account, origin, endsAtMs = Infinity } = order
  const { smtp, dashboard } = snapshot().config
  const expiresAtMs = Math.min(now() + LINK_MS, endsAtMs)
  if (smtp !== null) await countMail(parts, user.email)
  const secret = newSignInSecret()
  const setsPassword = await maySetPassword(parts, maker, user)
  let write: AddedSignIn | null = null
  if (setsPassword || smtp === null) {
    const text = writeLink({ maker, accountId: account?.id ?? '', isMailed: smtp !== null })
    const token = { id: signInTokenIdOf(secret), kind: 'reset', accountId: user.id } as const
    write = { token: { ...token, expiresAtMs, text }, replaces: await formerLinks(parts, order) }
  }
  // A request may name any host, which would get the secret of a mail.
  const isLocal = URL.canParse(origin) && isLoopback(new URL(origin).hostname)
  const trusted = smtp === null || isLocal ? origin : ''
  const base = `${dashboard.publicUrl ?? trusted}/dashboard/`
  const url = `${base}reset#${secret}`
  return {
    write,
    written(named) {
      if (smtp === null) return { url, expiresAtMs }
      const link = setsPassword ? { url, expiresAtMs } : { url: base, expiresAtMs: null }
      mail(mailOf({ maker, user, account: named }, link))
      return { url: null, expiresAtMs }
    },
  }
}

/** Whether a link of the maker may set the password of the user. */
async function maySetPassword(
  { store, snapshot }: Pick<LinkParts, 'store' | 'snapshot'>,
  { as, id }: LinkMaker,
  user: User,
): Promise<boolean> {
  if (user.disabled || providerOf(user, snapshot().config.dashboard) !== null) return false
  if (as === 'administrator' || as === 'self' || isUnproven(user)) return true
  const token = as === 'token' ? await store.adminTokens.byId(id) : null
  return token?.accountId === null && gatewayRoleOf(user) === null
}

/** An administrator's link replaces all links of the user, others those of their account. */
async function formerLinks(
  { store, now }: LinkParts,
  { maker, user, account }: Pick<LinkOrder, 'maker' | 'user' | 'account'>,
): Promise<SignInToken[]> {
  const tokens = await store.signInTokens.tokensOf('reset', user.id, now())
  return tokens.filter((token) => {
    const link = readLink(token)
    const isOther = link !== null && link.accountId !== (account?.id ?? '')
    return !isOther || maker.as === 'administrator'
  })
}

async function countMail({ store, now }: LinkParts, email: string): Promise<void> {
  const name = createHash('sha256').update(`link mail ${email}`).digest('hex')
  const [waitMs = 0] = await store.throttle.take([{ name, ...MAILS }], now())
  if (waitMs <= 0) return
  const seconds = Math.ceil(waitMs / 1000)
  const message = `Too many mails to this address; try again in ${seconds} s.`
  throw new GatewayError('rate_limited', message, { retryAfterSeconds: seconds })
}

function mailOf(
  { maker, user, account }: Pick<LinkOrder, 'maker' | 'user' | 'account'>,
  { url, expiresAtMs }: { readonly url: string; readonly expiresAtMs: number | null },
): Mail {
  const whole =
    account === null ? 'an API gateway' : `the account "${displayNameOf(account)}" of an API gateway`
  const end = expiresAtMs === null ? '' : new Date(expiresAtMs).toISOString()
  const what =
    expiresAtMs === null
      ? 'Sign in to use it:'
      : `Set a password with this link, which works once, until ${end}:`
  const isLost = maker.as === 'self'
  const text = [
    isLost ? 'A new password was requested for this address.' : `You have access to ${whole}.`,
    '',
    what,
    url,
    ...(url.startsWith('/') ? ['(Add this to the address of the gateway.)'] : []),
    '',
    'If you did not expect this mail, ignore it.',
    '',
  ].join('\n')
  const subject = account === null ? 'the gateway' : `the account ${displayNameOf(account)}`
  return { to: user.email, subject: isLost ? 'A new password' : `Access to ${subject}`, text }
}

/** A link that may be used now. */
interface UsableLink {
  /** Of its sign-in token. */
  readonly id: string
  readonly user: User
  readonly provesAddress: boolean
  /** False if the user keeps its password; the reply does not show it. */
  readonly setsPassword: boolean
  /** The roles that take effect. */
  readonly accepted: readonly Member[]
  /** The roles that become pending: their makers let another person in. */
  readonly suspended: readonly Member[]
}

/** Who uses a link. */
interface LinkUse {
  readonly secret: string
  /** Whether the person has the sign-in of the user already. */
  readonly isSignInOf: (user: User) => Promise<boolean>
}

/**
 * The link with the secret; null if it does not exist, or its maker may not make it any more. Only the links
 * of administrators and mailed ones give all that the user has; others the roles that the maker may give, and
 * whether one of these is null does not depend on what the user was before. Throws `forbidden` for a user
 * whom the identity provider signs in, if the link proves the address.
 */
export async function usableLink(
  parts: Pick<LinkParts, 'store' | 'snapshot' | 'now'>,
  { secret, isSignInOf }: LinkUse,
): Promise<UsableLink | null> {
  const { store, now } = parts
  const id = signInTokenIdOf(secret)
  const token = await store.signInTokens.find('reset', id, now())
  const link = token === null ? null : readLink(token)
  const user = token === null ? null : await store.users.byId(token.accountId)
  if (link === null || user === null) return null
  if (provesAddress(link)) {
    assertMayHavePassword(parts, user)
    if (user.disabled || !(await mayGive(store, link.maker, link.accountId, now()))) return null
    const accepted = await store.users.memberships(user.id)
    return { id, user, provesAddress: true, setsPassword: true, accepted, suspended: [] }
  }
  if (!(await mayGive(store, link.maker, link.accountId, now()))) return null
  const account = await store.accountById(link.accountId)
  const { accepted, others } = await splitRoles(store, link, await store.users.memberships(user.id), now())
  const isInvited = accepted.some(({ accountId }) => accountId === account?.id)
  if (account === null || account.disabled || !isInvited) return null
  // Asked for every user: the answer takes the same time.
  const hasSignIn = (await isSignInOf(user)) && user.passwordHash !== ''
  const setsPassword = await maySetUnproven(parts, { link, user, account, others, hasSignIn })
  const suspended = hasSignIn || !isUnproven(user) ? [] : others
  return { id, user, provesAddress: false, setsPassword, accepted, suspended }
}

/** Whether a link that does not prove the address sets the password of the user. */
async function maySetUnproven(
  parts: Pick<LinkParts, 'store' | 'snapshot'>,
  {
    link,
    user,
    account,
    others,
    hasSignIn,
  }: {
    readonly link: Link
    readonly user: User
    readonly account: Account
    readonly others: readonly Member[]
    readonly hasSignIn: boolean
  },
): Promise<boolean> {
  if (!(await maySetPassword(parts, link.maker, user))) return false
  // Only a token of the whole gateway may, and none reaches more than its own rights.
  if (!isUnproven(user)) return others.length === 0
  // Otherwise every visitor could take the sign-in of another one, with an account of her own.
  return hasSignIn || user.passwordHash === '' || !isSelfMade(account.name)
}

/** The roles that the maker of the link may give at this moment, and the others. */
async function splitRoles(
  store: Store,
  { maker }: Link,
  roles: readonly Member[],
  nowMs: number,
): Promise<{ readonly accepted: readonly Member[]; readonly others: readonly Member[] }> {
  const accepted: Member[] = []
  const others: Member[] = []
  for (const role of roles) {
    const list = (await mayGive(store, maker, role.accountId, nowMs)) ? accepted : others
    list.push(role)
  }
  return { accepted, others }
}
