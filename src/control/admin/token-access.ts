/**
 * What an admin token may do: whether it is valid, how many requests it may send, and which accounts it sees:
 * all, or with an account of its own this one and those below it. The others do not exist for it.
 */
import { invalid, type Refusal } from '../../accounts/changes/refusal.js'
import { grants, tokenState, type Scope } from '../../accounts/admin-tokens.js'
import { digestOf, isAdminSecret } from '../../accounts/key-secret.js'
import type { Account } from '../../accounts/account.js'
import type { AdminToken } from '../../store/admin-tokens.js'
import { ownNameStart } from '../../accounts/names.js'
import { headerOf, type HttpRequest } from '../../http/message.js'
import { notFound, Problem } from '../problem-details.js'
import type { AdminRoute } from './route.js'
import type { AdminServices } from './services.js'

/** Requests of one token: 50 at once, then 50 a second, over all gateways of the store. */
const RATE = { burst: 50, everyMs: 20 } as const
/** The time of a token's last use is written at most once in this time. */
const USE_MS = 60_000

/**
 * The live token of the request's `authorization`. Throws `unauthenticated`. Notes the time of the use, at
 * most once a minute.
 */
export async function authenticated({ store, now }: AdminServices, req: HttpRequest): Promise<AdminToken> {
  const secret = /^bearer +(\S+) *$/i.exec(headerOf(req, 'authorization') ?? '')?.[1] ?? ''
  const token = isAdminSecret(secret) ? await store.adminTokens.byDigest(digestOf(secret)) : null
  const nowMs = now()
  if (token === null || !(await works(store, token, nowMs))) throw unauthenticated()
  if (nowMs - (token.lastUsedAtMs ?? 0) >= USE_MS) {
    const used = await store.adminTokens.change(token.id, (stored) => {
      const isOlder = nowMs - (stored.lastUsedAtMs ?? 0) >= USE_MS
      return isOlder && stored.revokedAtMs === undefined ? { ...stored, lastUsedAtMs: nowMs } : null
    })
    if (used === null || tokenState(used, nowMs) !== 'live') throw unauthenticated()
  }
  return token
}

/** Whether the token is still live: a request may take long. */
export async function isLive(
  { store, now }: Pick<AdminServices, 'store' | 'now'>,
  { id }: AdminToken,
): Promise<boolean> {
  const stored = await store.adminTokens.byId(id)
  return stored !== null && (await works(store, stored, now()))
}

/** A token of a purged account has ended with it, also if its record does not tell so yet. */
async function works(
  store: Pick<AdminServices['store'], 'accountById'>,
  token: AdminToken,
  nowMs: number,
): Promise<boolean> {
  if (tokenState(token, nowMs) !== 'live') return false
  return token.accountId === null || (await store.accountById(token.accountId)) !== null
}

/** Counts a request of the token. Throws `rate_limited` if it has sent too many. */
export async function takeTurn({ store, now }: AdminServices, { id }: AdminToken): Promise<void> {
  const [waitMs = 0] = await store.throttle.take([{ name: `admin:${id}`, ...RATE }], now())
  if (waitMs <= 0) return
  const detail = 'This token has sent more than 50 requests in a second.'
  const fix = 'Wait for the time of the header Retry-After, then send the request again.'
  const seconds = String(Math.ceil(waitMs / 1000))
  throw new Problem('rate_limited', detail, { fix }, ['retry-after', seconds])
}

function unauthenticated(): Problem {
  return new Problem(
    'unauthenticated',
    // `Bearer sat_…` would be redacted as a token.
    'No valid admin token was given: send one as "Authorization: Bearer <token>".',
    { fix: 'Create a token with `sluice admin-tokens create`.' },
    ['www-authenticate', 'Bearer'],
  )
}

/** Throws `insufficient_scope` if the token lacks the scope. */
export function assertScope({ scopes, needsAll }: AdminRoute, token: AdminToken): void {
  const needed = scopes ?? []
  const missing = needed.filter((scope) => !grants(token.scopes, scope))
  const isAllowed = needsAll === true ? missing.length === 0 : missing.length < needed.length
  if (isAllowed || needed.length === 0) return
  throw insufficient(missing[0] ?? 'accounts:read')
}

function insufficient(scope: Scope): Problem {
  const fix = `Use a token with the scope ${scope}.`
  const detail = `This token lacks the scope ${scope}.`
  return new Problem('insufficient_scope', detail, { required_scope: scope, fix }, [
    'www-authenticate',
    'Bearer error="insufficient_scope"',
  ])
}

/** Whether the token sees the account. */
export async function sees(
  { store }: Pick<AdminServices, 'store'>,
  token: AdminToken,
  account: Account,
): Promise<boolean> {
  const { accountId } = token
  if (accountId === null || accountId === account.id) return true
  const above = await store.ancestorsOf(account)
  return above.some(({ id }) => id === accountId)
}

/** Why a token of the account may not make an account with this name; null: it may. */
export function misnamed(own: Account | null, name: string): Refusal | null {
  const start = own === null ? '' : ownNameStart(own.name)
  if (own === null || (name.startsWith(start) && name.length > start.length)) return null
  return invalid(
    'name',
    `The name of an account that a token of "${own.name}" makes starts with "${start}".`,
    `Use a name such as "${start}${name}".`,
  )
}

/** The account with the name, if the token sees it. Throws `not_found`. */
export async function accountNamed(
  services: Pick<AdminServices, 'store'>,
  token: AdminToken,
  name: string,
): Promise<Account> {
  const account = await services.store.accountByName(name)
  if (account === null || !(await sees(services, token, account))) throw notFound()
  return account
}

/** Throws `forbidden` for the account of the token itself: it changes only accounts below it. */
export function assertNotOwn({ accountId }: AdminToken, { id }: Account): void {
  if (accountId !== id) return
  throw new Problem('forbidden', 'A token does not change its own account.', {
    fix: 'Use a token of an account above, or one without an account.',
  })
}
