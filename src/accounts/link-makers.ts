/**
 * One-time links that set the password of a user: who made one, and what its maker may give at this moment. A
 * link never gives its holder more than that, and ends when its user gets what its maker could not give
 * (`ended-sign-ins.ts`).
 */
import { isObject } from '../base/json.js'
import type { SignInToken } from '../store/sign-in-tokens.js'
import type { Store } from '../store/store.js'
import { roleOf, type Account } from './account.js'
import { gatewayRoleOf, takesEffect } from './address-proof.js'
import { grants, tokenState } from './admin-tokens.js'

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

/**
 * Whether the maker may give roles in the account, which may not exist yet, at this moment; null: in the
 * whole gateway.
 */
export async function mayGive(
  store: LinkStore,
  { as, id }: LinkMaker,
  where: Account | string | null,
  nowMs: number,
): Promise<boolean> {
  if (as === 'token') return mayTokenGive(store, id, where, nowMs)
  const user = await store.users.byId(id)
  if (user === null || user.disabled) return false
  if (as === 'self') return where === ''
  if (as === 'administrator') return gatewayRoleOf(user) === 'admin'
  const account = typeof where === 'string' ? await store.accountById(where) : where
  if (account === null || account.disabled) return false
  const member = await store.memberOf(account.id, user.email)
  return member !== null && roleOf(member) === 'owner' && takesEffect(user, member)
}

async function mayTokenGive(
  store: LinkStore,
  id: string,
  where: Account | string | null,
  nowMs: number,
): Promise<boolean> {
  const token = await store.adminTokens.byId(id)
  if (token === null || tokenState(token, nowMs) !== 'live') return false
  if (where === null || !grants(token.scopes, 'accounts:write')) return false
  if (token.accountId === null) return true
  const account = typeof where === 'string' ? await store.accountById(where) : where
  const above = account === null ? [] : [account, ...(await store.ancestorsOf(account))]
  return above.some((each) => each.id === token.accountId)
}
