/**
 * Keys that a rotation replaced, and that have expired since. A rotation may exceed the plan's number of keys for a
 * time, after which the old key counts no more.
 */
import type { Store } from '../store/store.js'

/** Keys of one page of the list. */
const PAGE = 100

/**
 * Revokes keys that were replaced and have expired since, so that they no longer count for the plan; how many.
 */
export async function revokeReplacedKeys(
  store: Pick<Store, 'listKeys' | 'revokeKey'>,
  accountId: string,
  nowMs: number,
): Promise<number> {
  let count = 0
  for (let after: string | null = null; ;) {
    const page = await store.listKeys(accountId, { order: 'newest_first', after, limit: PAGE })
    for (const { id, replacedBy, expiresAtMs, revokedAtMs } of page.items) {
      if (replacedBy === undefined || revokedAtMs !== undefined) continue
      if (expiresAtMs === undefined || expiresAtMs > nowMs) continue
      await store.revokeKey(accountId, id, expiresAtMs)
      count += 1
    }
    if (page.next === null) return count
    after = page.next
  }
}
