/** Revokes API keys. `auth/check-running-requests.ts` then ends their running requests. */
import type { AuditEntry } from '../store/audit-trail.js'
import type { Store } from '../store/store.js'
import type { Sources } from './accounts.js'
import { refused } from './refusals.js'

/**
 * Revokes the key, and adds the entries of `audit` to the audit trail. Revoking a revoked key succeeds and
 * adds no entries. Throws `malformed_request` for an unknown key, `store_unavailable`.
 */
export async function revokeKey(
  store: Store,
  accountId: string,
  keyId: string,
  { now = Date.now }: Sources = {},
  audit: readonly AuditEntry[] = [],
): Promise<void> {
  if (!(await store.revokeKey({ accountId, id: keyId }, now(), audit))) {
    throw refused('the account has no key with this id', 'key')
  }
}
