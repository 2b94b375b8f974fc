/**
 * The names of the Redis keys of accounts and API keys. Layout: docs/explanation/redis-store.md.
 *
 * All of an account is in one slot of a Cluster (`{acc_…}`), so that one script can change it. In the
 * account's hash: `account` (its record), `live` (keys that are not revoked), `gen` (changes so far), for
 * each key `key:DIGEST` (its record), `id:KEY_ID` (its digest) and, once revoked, `revoked:DIGEST` (when),
 * `place` (the last position in the order of keys), `removed-before` (keys that ended before that time may
 * have been removed), `purged` (the account and its keys were removed) and `ends` (sign-ins that its last
 * change ends and that may not have ended yet). The pointers `key:DIGEST` and `key-id:ID` name the account;
 * they exist as long as the key. A user is in the slot of its id, which is that of its account if both were
 * made together.
 */
import { loadScript } from '../connection/script.js'

/** The last file of each script describes its keys, arguments and reply. */
export const KEY_SCRIPTS = {
  createPointer: loadScript('keys/create-pointer'),
  deletePointer: loadScript('keys/delete-pointer'),
  accountTree: loadScript('keys/account-tree'),
  changeAccount: loadScript('keys/leave-audit-entries', 'keys/key-order', 'keys/change-account'),
  listAccount: loadScript('keys/list-account'),
  listKeys: loadScript('keys/key-order', 'keys/list-keys'),
  endKeys: loadScript('keys/free-name', 'keys/end-keys'),
  removeKeys: loadScript('keys/key-order', 'keys/remove-keys'),
}

const PREFIX = 'sluice:'

/** The id of the store: an emptied store gets another one. */
export const STORE_KEY = `${PREFIX}store`
/** Written and read to check that the store works. */
export const PROBE_KEY = `${PREFIX}probe`
/** The accounts in order of creation, and the last position. */
export const ORDER_KEYS = [`${PREFIX}{accounts}:order`, `${PREFIX}{accounts}:last`] as const

/**
 * The names of all accounts, in one slot: names by id, ids by name, the names in order, parents by id, and
 * the accounts that are being removed. An account exists if it has a name here. The sets of children are
 * beside them (`childrenKey`).
 */
export const TREE_KEYS = [
  `${PREFIX}{accounts}:names`,
  `${PREFIX}{accounts}:ids`,
  `${PREFIX}{accounts}:by-name`,
  `${PREFIX}{accounts}:parents`,
  `${PREFIX}{accounts}:closing`,
] as const

/** The position of the last account that has got a name from an earlier version's record. */
export const NAMED_KEY = `${PREFIX}{accounts}:named`

/** Held by the process that moves or purges an account. */
export const MOVE_KEY = `${PREFIX}{accounts}:move`

/** The ids of the accounts whose parent it is. */
export function childrenKey(id: string): string {
  return `${PREFIX}{accounts}:children:${id}`
}

/** The e-mail addresses of all users in order; those without a pointer to a user do not exist. */
export const USER_EMAILS_KEY = `${PREFIX}{users}:emails`

/**
 * A user: `user` is its record, `with` the account with whose change it is made (it exists once it is a
 * member of it), `ends` as in an account.
 */
export function userKey(id: string): string {
  return `${PREFIX}{${id}}:user`
}

/** The ids of the accounts that the user is or was a member of. */
export function userAccountsKey(id: string): string {
  return `${PREFIX}{${id}}:accounts`
}

/** The records of an account's members by their e-mail addresses. */
export function membersKey(id: string): string {
  return `${PREFIX}{${id}}:members`
}

/** The digests of an account's keys by their names (`hasName`). */
export function namesKey(id: string): string {
  return `${PREFIX}{${id}}:names`
}

/** All of an account but the order of its keys, their names and the members. */
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

/** The pointer of an e-mail to its user. */
export function emailKey(email: string): string {
  return `${PREFIX}email:${email}`
}

export function notificationChannel(storeId: string): string {
  return `${PREFIX}news:${storeId}`
}

/** The keys of an account that `KEY_SCRIPTS.changeAccount` writes. */
export function keysOfAccount(id: string): string[] {
  const own = [
    ...[accountKey, orderKey, formerOrderKey, membersKey],
    ...[namesKey, userKey, userAccountsKey, pendingAuditKey],
  ]
  return own.map((name) => name(id))
}
