/**
 * What a look-up in the store says of a key, reduced to what a request needs.
 */
import { GatewayError } from '../errors.js'
import type { KeyLookup } from '../store/store.js'
import type { Verdict } from './cache.js'

/** Throws where the store answered another question than the one asked: that is no answer. */
export function judge(digest: string, found: KeyLookup | null): Verdict {
  if (found === null) return { good: false, why: 'unknown' }
  const { key, account } = found
  if (key.digest !== digest || key.accountId !== account.id) {
    throw storeUnavailable(new Error('the store answered with another key or account'))
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

/** The error for a store that does not answer; the cause itself if it says so already. */
export function storeUnavailable(cause: unknown): GatewayError {
  if (cause instanceof GatewayError && cause.kind === 'store_unavailable') return cause
  return new GatewayError('store_unavailable', 'The key store does not answer; try again.', {
    retryAfterSeconds: 1,
    cause,
  })
}
