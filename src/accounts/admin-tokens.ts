/**
 * Tokens of the admin API: their scopes, creation and revocation, for the API and the command line.
 */
import { DAY_MS } from '../base/time-units.js'
import { malformed, type GatewayError } from '../errors.js'
import type { JsonObject } from '../base/json.js'
import type { AdminToken } from '../store/admin-tokens.js'
import type { AuditEntry } from '../store/audit-trail.js'
import type { Store } from '../store/store.js'
import { digestOf, newAdminSecret, randomBase62 } from './key-secret.js'
import { checkedValue, choiceType, listType, textType } from './changes/field-types.js'
import { isShownName } from './changes/fields.js'
import { invalid } from './changes/refusal.js'
import { unforeseen, type Sources } from './sources.js'

/**
 * What a token may do. `X:write` includes `X:read`; `keys:write` also reads keys and writes denials,
 * `batches:write` also reads batches.
 */
export const SCOPES = [
  'accounts:read',
  'accounts:write',
  'keys:write',
  'usage:read',
  'requests:read',
  'batches:write',
  'audit:read',
  'config:read',
  'config:write',
  'tokens:write',
] as const
/** One of `SCOPES`. */
export type Scope = (typeof SCOPES)[number]

/** Scopes of a token, in requests and options. */
export const SCOPE_LIST = listType(choiceType(SCOPES), { least: 1, most: SCOPES.length })

/** The name of a token. */
export const TOKEN_NAME = textType(isShownName, {
  fix: 'Send 1 to 100 characters without spaces at the ends.',
  schema: { minLength: 1, maxLength: 100 },
})

/** The default lifetime of a token and the longest one. */
export const TOKEN_DAYS = { usual: 90, most: 366 } as const
/** How long an ended token stays in the list. */
const KEPT_MS = 30 * DAY_MS
const PAGE = 500

/** Whether a token with these scopes may do what needs the scope. */
export function grants(scopes: readonly string[], needed: Scope): boolean {
  return scopes.includes(needed) || scopes.includes(needed.replace(/:read$/, ':write'))
}

/** Whether the token works. */
export function tokenState(
  { revokedAtMs, expiresAtMs }: AdminToken,
  nowMs: number,
): 'live' | 'expired' | 'revoked' {
  if (revokedAtMs !== undefined) return 'revoked'
  return expiresAtMs <= nowMs ? 'expired' : 'live'
}

/** A token to create. */
interface NewAdminToken extends Sources {
  readonly name: string
  readonly scopes: readonly string[]
  /** As in `AdminToken`. */
  readonly accountId: string | null
  /** Ms since 1970; absent: in 90 days. */
  readonly expiresAtMs?: number
  readonly createdBy: string
  /** Entries for the audit trail. */
  readonly audit: (token: AdminToken) => readonly AuditEntry[]
}

/**
 * Creates a token and returns its secret, which is not stored. Throws a `Refusal`, `store_unavailable`.
 */
export async function createAdminToken(
  store: Pick<Store, 'adminTokens'>,
  wish: NewAdminToken,
): Promise<{ readonly token: AdminToken; readonly secret: string }> {
  const { now = Date.now, random, audit, accountId, createdBy } = wish
  const nowMs = now()
  const secret = newAdminSecret(random)
  const token: AdminToken = {
    id: `tok_${randomBase62(16, random)}`,
    name: checkedValue(TOKEN_NAME, wish.name, 'name'),
    digest: digestOf(secret),
    lastFour: secret.slice(-4),
    scopes: checkedScopes(wish.scopes, accountId !== null),
    accountId,
    expiresAtMs: checkedExpiry(wish.expiresAtMs, nowMs),
    createdBy,
    createdAtMs: nowMs,
  }
  await removeEndedTokens(store, nowMs)
  if (!(await store.adminTokens.add(token, audit(token)))) {
    throw unforeseen('admin token', 'its id is in use, or there are too many tokens')
  }
  return { token, secret }
}

/** The scopes in the order of `SCOPES`. Throws a `Refusal`. */
function checkedScopes(given: readonly string[], hasAccount: boolean): Scope[] {
  const scopes = checkedValue(SCOPE_LIST, [...given], 'scopes')
  if (hasAccount && scopes.some((scope) => scope.startsWith('config:'))) {
    throw invalid(
      'scopes',
      'A token with an account cannot have config:read or config:write: the configuration belongs to no account.',
      'Send another value.',
    )
  }
  return SCOPES.filter((scope) => scopes.includes(scope))
}

/** The end of a new token. Throws a `Refusal` for one that no token may have. */
export function checkedExpiry(expiresAtMs: number | undefined, nowMs: number): number {
  if (expiresAtMs === undefined) return nowMs + TOKEN_DAYS.usual * DAY_MS
  // A minute of grace for clients that add 366 days to their own clock.
  const mostMs = nowMs + TOKEN_DAYS.most * DAY_MS + 60_000
  if (expiresAtMs > nowMs && expiresAtMs <= mostMs) return expiresAtMs
  const detail = `A token expires in the future, at most ${TOKEN_DAYS.most} days from now.`
  throw invalid('expires_at', detail, 'Send another value.')
}

/** Removes tokens 30 days after they ended. */
async function removeEndedTokens({ adminTokens }: Pick<Store, 'adminTokens'>, nowMs: number): Promise<void> {
  for (let after: string | null = null; ;) {
    const page = await adminTokens.page(after, PAGE)
    const ended = page.items.filter(({ revokedAtMs, expiresAtMs }) => {
      return Math.min(revokedAtMs ?? Infinity, expiresAtMs) < nowMs - KEPT_MS
    })
    await adminTokens.remove(ended.map(({ id }) => id))
    if (page.next === null) return
    after = page.next
  }
}

/**
 * Revokes the token: every gateway refuses it at once. False if there is no such token, or it is revoked
 * already.
 */
export async function revokeAdminToken(
  store: Pick<Store, 'adminTokens'>,
  id: string,
  { nowMs, audit }: { nowMs: number; audit: (token: AdminToken) => readonly AuditEntry[] },
): Promise<boolean> {
  let isRevoked = false
  await store.adminTokens.change(
    id,
    (token) => {
      isRevoked = token.revokedAtMs === undefined
      return isRevoked ? { ...token, revokedAtMs: nowMs } : null
    },
    audit,
  )
  return isRevoked
}

/** The fields of a token for the audit trail, without `null`s. */
export function tokenFields(token: AdminToken, account: string | null): JsonObject {
  return {
    name: token.name,
    scopes: [...token.scopes],
    ...(account === null ? {} : { account }),
    expires_at: new Date(token.expiresAtMs).toISOString(),
  }
}

/** There is no token with this id. */
export function noToken(): GatewayError {
  return malformed("there is no live token with this id: 'sluice admin-tokens list' shows all", 'token')
}
