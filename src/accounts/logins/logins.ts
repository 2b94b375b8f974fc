/**
 * Sign-ins of programs: a person approves a program in the browser, and it gets a short-lived access token
 * for one account, with a refresh token that renews it. Loaded only if the configuration has `login`.
 *
 * The store has a record of the sign-in, found by the part of its refresh token that stays, and one of each
 * access token. An access token is good while its sign-in is there and its user may use the account, so that
 * the end of a sign-in needs one removal; removed access tokens reach every gateway as changed keys do.
 */
import { namedKeyId } from '../../base/named-key-id.js'
import type { LoginConfig } from '../../config/config.js'
import type { Store } from '../../store/store.js'
import { accessTokenId, roleOf, type Account, type Identity, type Member, type User } from '../account.js'
import { takesEffect } from '../address-proof.js'
import { accountPart, type KeyResult } from '../authentication/authentication-result.js'
import { digestOf, newAccessToken, newRefreshToken, refreshHandle } from '../key-secret.js'
import { endAccess, readAccess, readLogin, type ApprovingSession, type LoginRecord } from './login-records.js'

/** The parts of the store that sign-ins use. */
export type LoginStore = Pick<Store, 'signInTokens' | 'users' | 'accountById' | 'ancestorsOf'>

/** What a program gets. */
export interface LoginTokens {
  readonly accessToken: string
  /** Of the access token. */
  readonly expiresInSeconds: number
  readonly refreshToken: string
  readonly email: string
}

/** Who signs in, and for what. */
interface NewLogin {
  readonly userId: string
  readonly accountId: string
  readonly program: string
  readonly session: ApprovingSession
  /** The record of the approval, which is used up. */
  readonly approvalId: string
}

/**
 * Requests that began before their token expired may run for this time. The token itself is not accepted.
 */
const RUNNING_MS = 3_600_000

/** Settings of sign-ins, and how long a role by a group holds after one. */
export type LoginTimes = Pick<LoginConfig, 'refreshSeconds' | 'tokenSeconds'> & { readonly groupMs: number }

/** Opens a sign-in; null if the user may not use the account, or the session or the approval has ended. */
export async function openLogin(
  store: LoginStore,
  { userId, accountId, program, session, approvalId }: NewLogin,
  times: LoginTimes,
  nowMs: number,
): Promise<LoginTokens | null> {
  const user = await store.users.byId(userId)
  const found = user === null ? null : await accountOf(store, user, accountId)
  if (user === null || found === null) return null
  const refreshToken = newRefreshToken()
  const id = loginIdOf(refreshToken)
  if (id === null) return null
  const endsAtMs = found.isByGroup ? Math.min(nowMs + times.groupMs, session.endsAtMs) : null
  const record: LoginRecord = { account: accountId, program, refresh: digestOf(refreshToken), endsAtMs }
  await store.signInTokens.add({
    ...{ id, kind: 'login', accountId: userId },
    expiresAtMs: atMost(nowMs + times.refreshSeconds * 1_000, endsAtMs),
    text: JSON.stringify(record),
  })
  const access = await addAccessToken(store, { login: id, userId, endsAtMs }, times, nowMs)
  /** Opens a sign-in; null if the user may not use the account, or its session or approval has ended. */
  const isOpen = (await store.signInTokens.find('session', session.id, nowMs)) !== null
  const approval = await store.signInTokens.take('device_code', approvalId, nowMs)
  if (!isOpen || approval === null) {
    await endLogin(store, refreshToken, nowMs)
    return null
  }
  return { ...access, refreshToken, email: user.email }
}

/**
 * Replaces the tokens of a sign-in; null if the refresh token is not valid. One that was used before, or
 * whose user may not use the account any more, ends the sign-in with all its tokens.
 */
export async function renewLogin(
  store: LoginStore,
  refreshToken: string,
  times: LoginTimes,
  nowMs: number,
): Promise<LoginTokens | null> {
  const id = loginIdOf(refreshToken)
  const found = id === null ? null : await store.signInTokens.find('login', id, nowMs)
  if (id === null || found === null) return null
  const user = await store.users.byId(found.accountId)
  const { account: accountId, endsAtMs } = readLogin(found.text)
  const account = user === null ? null : await accountOf(store, user, accountId)
  const next = newRefreshToken(refreshHandle(refreshToken) ?? undefined)
  const used = digestOf(refreshToken)
  const replace = ({ text }: { readonly text: string }) => {
    const record = readLogin(text)
    if (record.refresh !== used) return null
    return {
      text: JSON.stringify({ ...record, refresh: digestOf(next) } satisfies LoginRecord),
      expiresAtMs: atMost(nowMs + times.refreshSeconds * 1_000, endsAtMs),
    }
  }
  // A role by a group that came after the sign-in needs another one.
  const isProven = account?.isByGroup !== true || (endsAtMs !== null && endsAtMs > nowMs)
  const isLive = account !== null && !account.isDisabled && isProven
  if (user === null || !isLive || (await store.signInTokens.change('login', id, replace, nowMs)) === null) {
    await endLogin(store, refreshToken, nowMs)
    return null
  }
  const access = await addAccessToken(store, { login: id, userId: user.id, endsAtMs }, times, nowMs)
  return { ...access, refreshToken: next, email: user.email }
}

/** Ends the sign-in of an access or refresh token, if it exists. */
export async function endLogin(
  store: Pick<Store, 'signInTokens'>,
  token: string,
  nowMs: number,
): Promise<string | null> {
  const access = await store.signInTokens.find('access', digestOf(token), nowMs)
  const id = access === null ? loginIdOf(token) : readAccess(access.text).login
  const login = id === null ? null : await store.signInTokens.take('login', id, nowMs)
  if (login === null || id === null) return null
  await endAccess(store.signInTokens, login.accountId, new Set([id]), nowMs)
  return login.accountId
}

/** The identity of an access token, as the look-up of a key. Rejects with `store_unavailable`. */
export async function lookUpLogin(
  store: LoginStore,
  digest: string,
  settings: LoginConfig,
  nowMs: number,
): Promise<KeyResult> {
  const access = await store.signInTokens.find('access', accessTokenId(digest) ?? '', nowMs)
  if (access === null) return { good: false, reason: 'unknown' }
  const { login: id, untilMs } = readAccess(access.text)
  const login = await store.signInTokens.find('login', id, nowMs)
  const user = login === null ? null : await store.users.byId(login.accountId)
  if (login === null || user === null) return ENDED
  const found = await accountOf(store, user, readLogin(login.text).account)
  if (found === null) return ENDED
  if (found.isDisabled) return { good: false, reason: 'disabled' }
  return { good: true, identity: identityOf(user, found, { settings, digest, untilMs }) }
}

/**
 * Who the programs of a user are in an account, as if one had a token now; null if they may not act in it.
 * Rejects with `store_unavailable`.
 */
export async function programIdentity(
  store: LoginStore,
  user: User,
  accountId: string,
  settings: LoginConfig,
): Promise<Identity | null> {
  const found = await accountOf(store, user, accountId)
  if (found === null || found.isDisabled) return null
  return identityOf(user, found, { settings, digest: null, untilMs: null })
}

function identityOf(
  { email }: User,
  { account, ancestors }: { readonly account: Account; readonly ancestors: readonly Account[] },
  of: {
    readonly settings: LoginConfig
    readonly digest: string | null
    readonly untilMs: number | null
  },
): Identity {
  const { models, limits, labels } = of.settings
  return {
    keyId: namedKeyId('login', email),
    ...accountPart(account, ancestors),
    digest: of.digest,
    expiresAtMs: of.untilMs,
    models,
    allowTools: null,
    limits,
    labels,
    user: email,
  }
}

const ENDED: KeyResult = { good: false, reason: 'revoked' }

/** The accounts in which the programs of a user may act, by name, without disabled ones. */
export function accountsForPrograms(accounts: readonly Account[], members: readonly Member[]): Account[] {
  const ids = new Set(members.filter(isForPrograms).map(({ accountId }) => accountId))
  return accounts.filter(({ id }) => ids.has(id))
}

/** The account with those above it; null if the programs of the user may not act in it. */
async function accountOf(
  store: LoginStore,
  user: User,
  accountId: string,
): Promise<{
  readonly account: Account
  readonly ancestors: readonly Account[]
  readonly isDisabled: boolean
  /** Whether only a group of the identity provider gives the role. */
  readonly isByGroup: boolean
} | null> {
  if (user.disabled) return null
  const members = await store.users.memberships(user.id)
  const member = members.find((each) => each.accountId === accountId)
  if (member === undefined || !takesEffect(user, member) || !isForPrograms(member)) return null
  const account = await store.accountById(accountId)
  if (account === null) return null
  const ancestors = await store.ancestorsOf(account)
  return {
    ...{ account, ancestors, isDisabled: [account, ...ancestors].some(({ disabled }) => disabled) },
    isByGroup: member.groupRole !== undefined && !isForPrograms({ role: member.role }),
  }
}

/** Viewers make no requests. */
function isForPrograms(member: Pick<Member, 'role' | 'groupRole'>): boolean {
  const role = roleOf(member)
  return role === 'owner' || role === 'member'
}

/** A sign-in that gets an access token. */
interface OpenLogin extends Pick<LoginRecord, 'endsAtMs'> {
  readonly login: string
  readonly userId: string
}

async function addAccessToken(
  { signInTokens }: Pick<Store, 'signInTokens'>,
  { login, userId, endsAtMs }: OpenLogin,
  { tokenSeconds }: LoginTimes,
  nowMs: number,
): Promise<Pick<LoginTokens, 'accessToken' | 'expiresInSeconds'>> {
  const token = newAccessToken()
  const untilMs = atMost(nowMs + tokenSeconds * 1_000, endsAtMs)
  await signInTokens.add({
    ...{ id: digestOf(token), kind: 'access', accountId: userId },
    expiresAtMs: untilMs + RUNNING_MS,
    text: JSON.stringify({ login, untilMs }),
  })
  return { accessToken: token, expiresInSeconds: Math.ceil((untilMs - nowMs) / 1_000) }
}

function atMost(ms: number, endsAtMs: number | null): number {
  return endsAtMs === null ? ms : Math.min(ms, endsAtMs)
}

/** The id of the sign-in of a refresh token; null for a text of another form. */
function loginIdOf(refreshToken: string): string | null {
  const handle = refreshHandle(refreshToken)
  return handle === null ? null : digestOf(handle)
}
