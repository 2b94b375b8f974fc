/**
 * From the `store` setting to an open store.
 * Knows the engines' names and nothing of what they do.
 */
import { GatewayError } from '../errors.js'
import { openLmdb } from './lmdb.js'
import { openRedis } from './redis.js'
import { isRedisUrl, parseRedisUrl } from './redis-url.js'
import type { Store, StoreOptions } from './store.js'

const SUPPORTED =
  "'lmdb:PATH' (embedded, one machine), such as 'lmdb:./data', or 'redis://HOST', 'redis+sentinel://HOST/MASTER', 'redis+cluster://HOST' (a fleet; TLS with 'rediss')"

/**
 * Opens the store that `url` names, such as `lmdb:./data`; a relative path starts at the working
 * directory. Rejects with
 * `GatewayError(store_unavailable)` where the engine cannot be opened or is not one of ours; then
 * the message says which are.
 */
export async function openStore(url: string, options: StoreOptions = {}): Promise<Store> {
  // Only the scheme is ever repeated: the rest of a redis address may hold a password.
  if (isRedisUrl(url)) {
    const place = parseRedisUrl(url)
    if (!('problem' in place)) return openRedis(place, options)
    throw refused(`the address ${place.problem}`)
  }
  const colon = url.indexOf(':')
  const scheme = colon < 0 ? '' : url.slice(0, colon)
  const path = url.slice(colon + 1)
  if (scheme === '') throw refused('it names no engine')
  if (scheme !== 'lmdb') throw refused(`'${scheme}:' is not supported`)
  if (path === '') throw refused("'lmdb:' has no path")
  return openLmdb(path, options)
}

function refused(why: string): GatewayError {
  return new GatewayError('store_unavailable', `store: ${why}; supported: ${SUPPORTED}`)
}
