/**
 * From the `store` setting to an open store. Only the engine that the setting names is loaded.
 */
import { GatewayError } from '../errors.js'
import { isRedisUrl, parseRedisUrl } from './redis/connection/address.js'
import type { Store, StoreOptions } from './store.js'

const SUPPORTED =
  "'sqlite:FILE' (embedded, one machine), such as 'sqlite:./data/sluice.db', or 'redis://HOST', 'redis+sentinel://HOST/MASTER', 'redis+cluster://HOST' (a fleet; TLS with 'rediss')"

/**
 * Opens the store that `url` names, such as `sqlite:./data/sluice.db`; a relative path starts at the working
 * directory. Rejects with
 * `GatewayError(store_unavailable)` where the engine cannot be opened or is not one of ours; then
 * the message says which are.
 */
export async function openStore(url: string, options: StoreOptions = {}): Promise<Store> {
  // Only the scheme is ever repeated: the rest of a redis address may hold a password.
  if (isRedisUrl(url)) {
    const place = parseRedisUrl(url)
    if (!('problem' in place)) {
      const { openRedis } = await import('./redis/store.js')
      return openRedis(place, options)
    }
    throw refused(`the address ${place.problem}`)
  }
  const colon = url.indexOf(':')
  const scheme = colon < 0 ? '' : url.slice(0, colon)
  const path = url.slice(colon + 1)
  if (scheme === '') throw refused('it names no engine')
  if (scheme === 'lmdb') throw refused(`'lmdb:' is no longer supported, use 'sqlite:FILE'`)
  if (scheme !== 'sqlite') throw refused(`'${scheme}:' is not supported`)
  if (path === '') throw refused("'sqlite:' names no file")
  const { openSqlite } = await import('./sqlite/store.js')
  return openSqlite(path, options)
}

function refused(why: string): GatewayError {
  return new GatewayError('store_unavailable', `store: ${why}; supported: ${SUPPORTED}`)
}
