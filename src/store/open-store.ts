/**
 * Opens the store of the `store` setting. Only the code of its engine is loaded.
 */
import { resolve } from 'node:path'
import { GatewayError } from '../errors.js'
import { isRedisUrl, parseRedisUrl, parseSqliteAddress } from './store-address.js'
import type { Store, StoreOptions } from './store.js'

const SUPPORTED =
  "'sqlite:FILE' (embedded, one machine), such as 'sqlite:./data/sluice.db', or 'redis://HOST', 'redis+sentinel://HOST/MASTER', 'redis+cluster://HOST' (a fleet; TLS with 'rediss')"

/**
 * Opens the store at `url`, such as `sqlite:./data/sluice.db`; a relative path starts at the working
 * directory. Rejects with `GatewayError(store_unavailable)` if the engine cannot be opened, or the scheme is
 * unknown; the message then lists the known ones.
 */
export async function openStore(url: string, options: StoreOptions = {}): Promise<Store> {
  // Messages contain the scheme only: the rest of a Redis address may contain a password.
  if (isRedisUrl(url)) {
    const address = parseRedisUrl(url)
    if (!('problem' in address)) {
      const { openRedis } = await import('./redis/open-redis.js')
      return openRedis(address, options)
    }
    throw refused(`the address ${address.problem}`)
  }
  const file = parseSqliteAddress(url)
  if (file !== null) {
    if ('problem' in file) throw refused(`the address ${file.problem}`)
    const { openSqlite } = await import('./sqlite/open-sqlite.js')
    // An absolute path is never a URI of SQLite, such as file:NAME.
    return openSqlite(resolve(file.path), options)
  }
  const colon = url.indexOf(':')
  const scheme = colon < 0 ? '' : url.slice(0, colon)
  if (scheme === '') throw refused('the address has no scheme')
  if (scheme === 'lmdb') throw refused(`'lmdb:' is no longer supported, use 'sqlite:FILE'`)
  throw refused(`'${scheme}:' is not supported`)
}

function refused(why: string): GatewayError {
  return new GatewayError('store_unavailable', `store: ${why}; supported: ${SUPPORTED}`)
}
