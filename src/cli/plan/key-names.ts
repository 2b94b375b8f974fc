/** The names of API keys; recorded requests contain only their ids. */
import type { Config } from '../../config/config.js'
import { GatewayError } from '../../errors.js'
import { openStore } from '../../store/open-store.js'
import { isRedisUrl } from '../../store/redis/connection/parse-address.js'
import type { LosingKey } from './compare-configs.js'

/** A key with its name; null if it has none, was removed, or the store cannot be opened. */
export interface NamedKey extends LosingKey {
  readonly name: string | null
}

/** The keys with their names from the configured store. An unreachable store is not an error. */
export async function withNames(
  { store: url }: Config,
  keys: readonly LosingKey[],
): Promise<NamedKey[]> {
  const unnamed = keys.map((key) => ({ ...key, name: null }))
  if (keys.length === 0) return unnamed
  try {
    const store = await openStore(url, { mustExist: !isRedisUrl(url) })
    try {
      const named = keys.map(async (key) => {
        const found = await store.keyById(key.account_id, key.key_id)
        return { ...key, name: found?.name ?? null }
      })
      return await Promise.all(named)
    } finally {
      await store.close()
    }
  } catch (error) {
    if (error instanceof GatewayError) return unnamed
    throw error
  }
}
