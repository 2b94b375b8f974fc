/** Revokes API keys. `auth/check-running-requests.ts` then ends their running requests. */
import type { AuditEntry } from '../store/audit-trail.js'
import type { Store } from '../store/store.js'
import type { Sources } from './accounts.js'
import type { KeyReference } from './account.js'
import { refused } from './refusals.js'

/** Options of revoking a key. */
export interface RevokeOptions extends Pick<Sources, 'now'> {
  /** Entries for the audit trail; none by default. */
  readonly audit?: readonly AuditEntry[]
}

/**
 * Revokes the key, and adds the entries of `audit` to the audit trail. Revoking a revoked key succeeds and
 * adds no entries. Throws `malformed_request` for an unknown key, `store_unavailable`.
 */
export async function revokeKey(
  store: Store,
  key: KeyReference,
  { now = Date.now, audit = [] }: RevokeOptions = {},
): Promise<void> {
  if (!(await store.revokeKey(key, now(), audit))) {
    throw refused('the account has no key with this id', 'key')
  }
}
