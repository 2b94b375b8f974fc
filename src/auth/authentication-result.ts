/**
 * The result of looking a key up: the identity that its requests run as, or the reason for refusing it.
 */
import type { Identity } from '../accounts/account.js'
import { GatewayError } from '../errors.js'
import type { KeyLookup } from '../store/store.js'

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

/** The result of a lookup, reduced to what a request needs. */
export type KeyResult =
  | { readonly good: true; readonly identity: Identity }
  | { readonly good: false; readonly why: 'unknown' | 'revoked' | 'disabled' }

/** Throws `GatewayError(store_unavailable)` if the store returned another key than the requested one. */
export function resultOfLookup(digest: string, found: KeyLookup | null): KeyResult {
  if (found === null) return { good: false, why: 'unknown' }
  const { key, account } = found
  if (key.digest !== digest || key.accountId !== account.id) {
    throw storeUnavailable(new Error('The store returned another key or account'))
  }
  if (key.revokedAtMs !== undefined) return { good: false, why: 'revoked' }
  if (account.disabled) return { good: false, why: 'disabled' }
  return {
    good: true,
    identity: {
      keyId: key.id,
      accountId: account.id,
      plan: account.plan,
      digest,
      expiresAtMs: key.expiresAtMs ?? null,
      models: key.models ?? null,
      limits: key.limits ?? null,
      labels: key.labels ?? {},
    },
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

/** The error for a key whose account is disabled. */
export function accountDisabled(): GatewayError {
  return new GatewayError('forbidden', 'The account that this API key belongs to is disabled.')
}
