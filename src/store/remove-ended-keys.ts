/**
 * Removes keys 30 days after they were revoked or expired. Ledger entries keep the ids of removed keys.
 */
import type { ApiKey } from '../accounts/account.js'
import { accountPages, keyPages } from './list-all.js'
import type { Store } from './store.js'

/**
 * How long a key stays after it was revoked or expired. A replica or a process that has an older state of the
 * key is minutes behind, not days (`stale_seconds`).
 */
export const KEY_RETENTION_MS = 30 * 86_400_000
/** How often one process of the fleet removes keys. */
const EVERY_MS = 6 * 3_600_000
/** Pause between two pages, so that a scan of a million keys does not delay requests. */
const PAUSE_MS = 20

/** Whether the key ended more than `KEY_RETENTION_MS` ago. */
export function isRemovable({ revokedAtMs, expiresAtMs }: ApiKey, nowMs: number): boolean {
  const beforeMs = nowMs - KEY_RETENTION_MS
  return (revokedAtMs ?? nowMs) < beforeMs || (expiresAtMs ?? nowMs) < beforeMs
}

/** Scans all keys and returns the number of removed ones. Throws `store_unavailable`. */
export async function removeEndedKeys(
  store: Pick<Store, 'listAccounts' | 'listKeys' | 'removeKeys'>,
  nowMs: number,
  pauseMs = PAUSE_MS,
): Promise<number> {
  let count = 0
  for await (const accounts of accountPages(store)) {
    for (const { id } of accounts) {
      for await (const keys of keyPages(store, id)) {
        const ended = keys.filter((key) => isRemovable(key, nowMs)).map((key) => key.id)
        if (ended.length > 0) count += await store.removeKeys(id, ended, nowMs - KEY_RETENTION_MS)
      }
      if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }
  return count
}

/** The same, unless a process of the fleet did it in the last six hours; null then. */
export async function removeEndedKeysInTurn(store: Store, nowMs: number): Promise<number | null> {
  const turn = { name: 'removal-of-ended-keys', burst: 1, everyMs: EVERY_MS }
  const [waitMs = 0] = await store.throttle.take([turn], nowMs)
  return waitMs > 0 ? null : removeEndedKeys(store, nowMs)
}
