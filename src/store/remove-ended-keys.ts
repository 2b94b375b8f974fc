/**
 * Removes keys some time after they were revoked or expired. Ledger entries keep the id of such a key.
 */
import type { ApiKey } from '../accounts/account.js'
import { accountPages, keyPages } from './list-all.js'
import type { Store } from './store.js'

/**
 * How long a key stays after it was revoked or expired: 30 days. A replica, a backup or a process that still
 * has such a key as a good one is far behind by then; each remembers revocations for minutes (`stale_seconds`).
 */
export const KEY_RETENTION_MS = 30 * 86_400_000
/** One process in the fleet looks for keys to remove so often. */
const EVERY_MS = 6 * 3_600_000
/** Between two pages, so that looking through a million keys holds up nobody. */
const PAUSE_MS = 20

/** Whether the key has ended so long ago that it may be removed. */
export function isRemovable({ revokedAtMs, expiresAtMs }: ApiKey, nowMs: number): boolean {
  const beforeMs = nowMs - KEY_RETENTION_MS
  return (revokedAtMs ?? nowMs) < beforeMs || (expiresAtMs ?? nowMs) < beforeMs
}

/** Looks through all keys; answers how many were removed. Throws `store_unavailable`. */
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

/** The same, unless a process of the fleet has done it in the last six hours; null then. */
export async function removeEndedKeysInTurn(store: Store, nowMs: number): Promise<number | null> {
  const turn = { name: 'removal-of-ended-keys', burst: 1, everyMs: EVERY_MS }
  const [waitMs = 0] = await store.throttle.take([turn], nowMs)
  return waitMs > 0 ? null : removeEndedKeys(store, nowMs)
}
