/**
 * From the `store` setting to an open store.
 * Knows the engines' names and nothing of what they do.
 */
import { GatewayError } from '../errors.js'
import { openLmdb } from './lmdb.js'
import type { Store } from './store.js'

const SUPPORTED = "'lmdb:PATH' (embedded, one machine), such as 'lmdb:./data'"

/**
 * Opens the store that `url` names, such as `lmdb:./data`; a relative path starts at the working
 * directory. Rejects with `GatewayError(store_unavailable)` where the engine cannot be opened or
 * is not one of ours; then the message says which are.
 */
export async function openStore(url: string): Promise<Store> {
  const colon = url.indexOf(':')
  const scheme = colon < 0 ? '' : url.slice(0, colon)
  const path = url.slice(colon + 1)
  if (scheme !== 'lmdb') {
    // Only the scheme is repeated: the rest of a redis URL may hold a password.
    const named = scheme === '' ? 'it names no engine' : `'${scheme}:' is not supported`
    throw new GatewayError('store_unavailable', `store: ${named}; supported: ${SUPPORTED}`)
  }
  if (path === '') {
    throw new GatewayError('store_unavailable', `store: 'lmdb:' has no path; write ${SUPPORTED}`)
  }
  return openLmdb(path)
}
