/**
 * The names of the Redis keys of accounts and API keys. Layout: docs/explanation/redis-store.md.
 *
 * All of an account is in one slot of a Cluster (`{acc_…}`), so that one script can change it. In the
 * account's hash: `account` (its record), `live` (keys that are not revoked), `gen` (changes so far), for
 * each key `key:DIGEST` (its record), `id:KEY_ID` (its digest) and, once revoked, `revoked:DIGEST` (when),
 * `place` (the last position in the order of keys) and `removed-before` (keys that ended before that time may
 * have been removed). The pointers `key:DIGEST` and `key-id:ID` name the account; they exist as long as the
 * key.
 */
import { loadScript } from '../connection/script.js'

/** The last file of each script describes its keys, arguments and reply. */
export const KEY_SCRIPTS = {
  createPointer: loadScript('keys/create-pointer'),
  deletePointer: loadScript('keys/delete-pointer'),
  putAccount: loadScript('keys/leave-audit-entries', 'keys/put-account'),
  listAccount: loadScript('keys/list-account'),
  replaceAccount: loadScript('keys/leave-audit-entries', 'keys/replace-account'),
  putKey: loadScript('keys/leave-audit-entries', 'keys/key-order', 'keys/put-key'),
  listKeys: loadScript('keys/key-order', 'keys/list-keys'),
  replaceKey: loadScript('keys/leave-audit-entries', 'keys/replace-key'),
  revokeKey: loadScript('keys/leave-audit-entries', 'keys/revoke-key'),
  endKeys: loadScript('keys/end-keys'),
  removeKeys: loadScript('keys/key-order', 'keys/remove-keys'),
}

const PREFIX = 'sluice:'

/** The id of the store: an emptied store gets another one. */
export const STORE_KEY = `${PREFIX}store`
/** Written and read to check that the store works. */
export const PROBE_KEY = `${PREFIX}probe`
/** The accounts in order of creation, and the last position. */
export const ORDER_KEYS = [`${PREFIX}{accounts}:order`, `${PREFIX}{accounts}:last`] as const

/** All of an account but the order of its keys. */
export function accountKey(id: string): string {
  return `${PREFIX}{${id}}:account`
}

/** Audit entries of its changes, records by id, until they are moved to the audit trail. */
export function pendingAuditKey(id: string): string {
  return `${PREFIX}{${id}}:told`
}

/** The digests of an account's keys by their position in the order of creation. */
export function orderKey(id: string): string {
  return `${PREFIX}{${id}}:key-order`
}

/** The same in earlier versions: a list. */
export function formerOrderKey(id: string): string {
  return `${PREFIX}{${id}}:keys`
}

/** The pointer of a digest to its account. */
export function digestKey(digest: string): string {
  return `${PREFIX}key:${digest}`
}

/** The pointer of a key's id to its account. */
export function idKey(id: string): string {
  return `${PREFIX}key-id:${id}`
}

/** The pointer of an e-mail to its account. */
export function emailKey(email: string): string {
  return `${PREFIX}email:${email}`
}

/** The channel of notifications. */
export function notificationChannel(storeId: string): string {
  return `${PREFIX}news:${storeId}`
}
