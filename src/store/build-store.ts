/**
 * Builds a `Store` from the parts of an engine.
 */
import type { Store } from './store.js'

/** The accounts of an engine; each method implements one of `Store`. */
export interface AccountTable {
  byId: Store['accountById']
  byName: Store['accountByName']
  byEmail: Store['accountByEmail']
  list: Store['listAccounts']
  listByName: Store['accountsByName']
  ancestorsOf: Store['ancestorsOf']
  childrenOf: Store['childrenOf']
  membersOf: Store['membersOf']
  memberOf: Store['memberOf']
}

/** The keys of an engine; each method implements one of `Store`. */
export interface KeyTable {
  list: Store['listKeys']
  byId: Store['keyById']
  byName: Store['keyByName']
  countLive: Store['countKeys']
  remove: Store['removeKeys']
  find: Store['findKey']
}

/** The parts of an engine. */
interface StoreParts extends Pick<
  Store,
  | 'id'
  | 'isNew'
  | 'cache'
  | 'ledger'
  | 'users'
  | 'directory'
  | 'transact'
  | 'signInTokens'
  | 'adminTokens'
  | 'auditTrail'
  | 'throttle'
  | 'providerObjects'
  | 'denials'
  | 'dimensionValues'
  | 'sealedRecords'
  | 'fleet'
  | 'subscribe'
  | 'probe'
  | 'close'
> {
  readonly accounts: AccountTable
  readonly keys: KeyTable
}

export function buildStore({ accounts, keys, ...parts }: StoreParts): Store {
  return {
    ...parts,
    accountById: (id) => accounts.byId(id),
    accountByName: (name) => accounts.byName(name),
    accountByEmail: (email) => accounts.byEmail(email),
    listAccounts: (query) => accounts.list(query),
    accountsByName: (query) => accounts.listByName(query),
    ancestorsOf: (account) => accounts.ancestorsOf(account),
    childrenOf: (accountId) => accounts.childrenOf(accountId),
    membersOf: (accountId) => accounts.membersOf(accountId),
    memberOf: (accountId, email) => accounts.memberOf(accountId, email),
    listKeys: (accountId, query) => keys.list(accountId, query),
    keyById: (accountId, keyId) => keys.byId(accountId, keyId),
    keyByName: (accountId, name) => keys.byName(accountId, name),
    countKeys: (accountId) => keys.countLive(accountId),
    removeKeys: (accountId, ids, beforeMs) => keys.remove(accountId, ids, beforeMs),
    findKey: (digest) => keys.find(digest),
  }
}
