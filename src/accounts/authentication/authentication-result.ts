/**
 * Converts the result of a key lookup: the identity of the key's requests, or the reason for refusing them.
 */
import type { Account, Identity } from '../account.js'
import { GatewayError, type ErrorKind } from '../../errors.js'
import type { KeyLookup } from '../../store/store.js'

/** How an authentication ended: the label of `sluice_auth_total`. */
export type AuthResult =
  | 'ok'
  | 'missing'
  | 'malformed'
  | 'unknown'
  | 'revoked'
  | 'expired'
  | 'disabled'
  | 'throttled'
  | 'store_unavailable'
  | 'identity_unavailable'
  | TokenRefusal

/** Why a token of a workload is refused. */
type TokenRefusal = Extract<ErrorKind, `jwt_${string}`>

/** The result of a lookup, reduced to the values that requests need. */
export type KeyResult =
  | { readonly good: true; readonly identity: Identity }
  | { readonly good: false; readonly reason: 'unknown' | 'revoked' | 'disabled' }
  /** A token whose account or identity is refused. */
  | { readonly good: false; readonly reason: 'refused'; readonly error: GatewayError }

/** What begins the digest of a token; that of a key is hex. */
export const TOKEN_DIGEST = 'jwt:'

export function isTokenDigest(digest: string): boolean {
  return digest.startsWith(TOKEN_DIGEST)
}

/** A signature that does not fit: counts as a wrong key of its address, since checking it takes time. */
export class WrongSignature extends GatewayError {
  constructor(cause: unknown) {
    super('jwt_invalid', 'The token is not valid: its signature is wrong.', { cause })
  }
}

/** Throws `GatewayError(store_unavailable)` if the store returned another key than the requested one. */
export function resultOfLookup(digest: string, lookup: KeyLookup | null): KeyResult {
  if (lookup === null) return { good: false, reason: 'unknown' }
  const { key, account, ancestors = [] } = lookup
  if (key.digest !== digest || key.accountId !== account.id) {
    throw storeUnavailable(new Error('The store returned another key or account'))
  }
  if (key.revokedAtMs !== undefined) return { good: false, reason: 'revoked' }
  if (account.disabled || ancestors.some(({ disabled }) => disabled))
    return { good: false, reason: 'disabled' }
  return {
    good: true,
    identity: {
      keyId: key.id,
      ...accountPart(account, ancestors),
      digest,
      ...(key.imported === true ? { imported: true } : {}),
      expiresAtMs: key.expiresAtMs ?? null,
      models: key.models ?? null,
      allowTools: key.allowTools ?? null,
      limits: key.limits ?? null,
      ...(key.raises === undefined ? {} : { raises: key.raises }),
      labels: key.labels ?? {},
    },
  }
}

/** What the identity of a request has from its account and those above it, the parent first. */
export function accountPart(
  account: Account,
  ancestors: readonly Account[],
): Pick<Identity, 'accountId' | 'email' | 'plan' | 'accountLimits' | 'accountPath'> {
  const { id, email, plan } = account
  const path = [account, ...ancestors]
  const names = path.map(({ name }) => name)
  const accountLimits = path.flatMap((each) => {
    const { limits, raises } = each
    if (limits === undefined) return []
    return [{ id: each.id, name: each.name, limits, ...(raises === undefined ? {} : { raises }) }]
  })
  return {
    accountId: id,
    plan,
    accountPath: names.reverse().join('/'),
    ...(email === undefined ? {} : { email }),
    ...(accountLimits.length === 0 ? {} : { accountLimits }),
  }
}

/** The error for a store that does not reply; `cause` itself if it is already that error. */
export function storeUnavailable(cause: unknown): GatewayError {
  if (cause instanceof GatewayError && cause.kind === 'store_unavailable') return cause
  return new GatewayError('store_unavailable', 'The key store does not answer; try again.', {
    retryAfterSeconds: 1,
    cause,
  })
}

/** The key is right and its account is disabled, so that it does not count as a wrong key. */
export class AccountDisabled extends GatewayError {
  constructor() {
    super('unauthenticated', 'The account that this API key belongs to is disabled.')
  }
}
