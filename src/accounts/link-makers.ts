/**
 * One-time links that set the password of a user: who made one, and what its maker may give at this moment. A
 * link never gives its holder more than that, and ends when its user gets what its maker could not give.
 */
import { isObject } from '../base/json.js'
import type { SignInToken } from '../store/sign-in-tokens.js'
import type { Store } from '../store/store.js'
import { roleOf, type Account, type Member } from './account.js'
import { gatewayRoleOf, isRaised, isUnproven, takesEffect } from './address-proof.js'
import { grants, tokenState } from './admin-tokens.js'
import { LOGIN_KINDS } from './logins/login-records.js'
import { isSelfMade } from './names.js'

/** Who made a link, with the right that it used. */
export interface LinkMaker {
  /** `self`: a user who has lost the password; only the address gets the link. */
  readonly as: 'administrator' | 'owner' | 'token' | 'self'
  /** Of the user, or of the token of the admin API. */
  readonly id: string
}

/** A link in the store. */
export interface Link {
  readonly maker: LinkMaker
  /** The account that the user is invited to. */
  readonly accountId: string
  /** Whether only the user's address got it. */
  readonly isMailed: boolean
}

/** The text of the link in its sign-in token. */
export function writeLink(link: Link): string {
  return JSON.stringify(link)
}

/** Null for a link of an earlier version, whose maker is not known. */
export function readLink({ text }: Pick<SignInToken, 'text'>): Link | null {
  const value: unknown = text === '' ? null : JSON.parse(text)
  if (!isObject(value) || !isObject(value['maker'])) return null
  const { accountId, isMailed, maker } = value
  const { as, id } = maker
  if (as !== 'administrator' && as !== 'owner' && as !== 'token' && as !== 'self') return null
  if (typeof id !== 'string' || typeof accountId !== 'string') return null
  return { maker: { as, id }, accountId, isMailed: isMailed === true }
}

/** Whether the use of the link proves the address. */
export function provesAddress({ maker, isMailed }: Link): boolean {
  return isMailed || maker.as === 'administrator'
}

/** The parts of the store that decide about links. */
export type LinkStore = Pick<
  Store,
  'users' | 'adminTokens' | 'signInTokens' | 'accountById' | 'ancestorsOf' | 'memberOf'
>

/** Whether the maker may give roles in the account at this moment; null: in the whole gateway. */
export async function mayGive(
  store: LinkStore,
  { as, id }: LinkMaker,
  accountId: string | null,
  nowMs: number,
): Promise<boolean> {
  if (as === 'token') return mayTokenGive(store, id, accountId, nowMs)
  const user = await store.users.byId(id)
  if (user === null || user.disabled) return false
  if (as === 'self') return accountId === ''
  if (as === 'administrator') return gatewayRoleOf(user) === 'admin'
  const account = accountId === null ? null : await store.accountById(accountId)
  if (account === null || account.disabled) return false
  const member = await store.memberOf(account.id, user.email)
  return member !== null && roleOf(member) === 'owner' && takesEffect(user, member)
}

async function mayTokenGive(
  store: LinkStore,
  id: string,
  accountId: string | null,
  nowMs: number,
): Promise<boolean> {
  const token = await store.adminTokens.byId(id)
  if (token === null || tokenState(token, nowMs) !== 'live') return false
  if (accountId === null || !grants(token.scopes, 'accounts:write')) return false
  if (token.accountId === null || token.accountId === accountId) return true
  const account = await store.accountById(accountId)
  const above = account === null ? [] : await store.ancestorsOf(account)
  return above.some((each) => each.id === token.accountId)
}

/** A role that a user got: in an account, or in the whole gateway. */
type Gain =
  | { readonly account: Account; readonly before: Member | null; readonly after: Member }
  | { readonly userId: string }

/**
 * To be called after a user got a role. Ends the links whose makers could not give it, and of an unproven
 * user the sessions, known devices and programs, too. What a user gives in an account that she made for
 * herself ends nothing: any visitor can do that.
 */
export async function endWhatCouldNotGive(store: LinkStore, gain: Gain, nowMs: number): Promise<void> {
  const { signInTokens } = store
  if ('account' in gain && (isSelfMade(gain.account.name) || !isRaised(gain.before, gain.after))) return
  const [userId, accountId] = 'account' in gain ? [gain.after.userId, gain.account.id] : [gain.userId, null]
  for (const token of await signInTokens.tokensOf('reset', userId, nowMs)) {
    const link = readLink(token)
    // The maker of a mailed link has not seen it.
    if (link !== null && (link.isMailed || (await mayGive(store, link.maker, accountId, nowMs)))) continue
    await signInTokens.take('reset', token.id, nowMs)
  }
  // A higher role in an account that the user has entered comes from those who let it in.
  if ('account' in gain && gain.before?.accepted === true) return
  const user = await store.users.byId(userId)
  if (user === null || !isUnproven(user)) return
  await signInTokens.end(['session', 'device', ...LOGIN_KINDS], userId, null)
}
