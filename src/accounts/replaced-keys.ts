/**
 * Revokes replaced keys that have expired. A rotation may exceed the plan's number of keys for a time;
 * afterwards the old key no longer counts.
 */
import type { Store } from '../store/store.js'

/** Number of keys in one page of the list. */
const PAGE = 100

/** Revokes expired replaced keys, so that they no longer count for the plan. Resolves to their number. */
export async function revokeReplacedKeys(
  store: Pick<Store, 'listKeys' | 'revokeKey'>,
  accountId: string,
  nowMs: number,
): Promise<number> {
  let count = 0
  for (let cursor: string | null = null; ;) {
    const page = await store.listKeys(accountId, {
      order: 'newest_first',
      after: cursor,
      limit: PAGE,
    })
    for (const { id, replacedBy, expiresAtMs, revokedAtMs } of page.items) {
      if (replacedBy === undefined || revokedAtMs !== undefined) continue
      if (expiresAtMs === undefined || expiresAtMs > nowMs) continue
      await store.revokeKey({ accountId, id }, expiresAtMs)
      count += 1
    }
    if (page.next === null) return count
    cursor = page.next
  }
}
