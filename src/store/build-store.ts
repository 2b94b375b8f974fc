/**
 * Builds a `Store` from the parts of an engine.
 */
import type { Store } from './store.js'

/** The accounts of an engine; each method implements one of `Store`. */
export interface AccountTable {
  create(...args: Parameters<Store['createAccount']>): ReturnType<Store['createAccount']>
  byId: Store['accountById']
  byName: Store['accountByName']
  byEmail: Store['accountByEmail']
  list: Store['listAccounts']
  listByName: Store['accountsByName']
  ancestorsOf: Store['ancestorsOf']
  childrenOf: Store['childrenOf']
  membersOf: Store['membersOf']
  memberOf: Store['memberOf']
  change(...args: Required<Parameters<Store['changeAccount']>>): ReturnType<Store['changeAccount']>
}

/** The keys of an engine; each method implements one of `Store`. */
export interface KeyTable {
  create(...args: Required<Parameters<Store['createKey']>>): ReturnType<Store['createKey']>
  list: Store['listKeys']
  byId: Store['keyById']
  byName: Store['keyByName']
  countLive: Store['countKeys']
  change(...args: Required<Parameters<Store['changeKey']>>): ReturnType<Store['changeKey']>
  revoke(...args: Required<Parameters<Store['revokeKey']>>): ReturnType<Store['revokeKey']>
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
    createAccount: (account, auditEntries, login) => accounts.create(account, auditEntries, login),
    accountById: (id) => accounts.byId(id),
    accountByName: (name) => accounts.byName(name),
    accountByEmail: (email) => accounts.byEmail(email),
    listAccounts: (query) => accounts.list(query),
    accountsByName: (query) => accounts.listByName(query),
    ancestorsOf: (account) => accounts.ancestorsOf(account),
    childrenOf: (accountId) => accounts.childrenOf(accountId),
    membersOf: (accountId) => accounts.membersOf(accountId),
    memberOf: (accountId, email) => accounts.memberOf(accountId, email),
    changeAccount: (id, edit, auditEntries = () => []) => accounts.change(id, edit, auditEntries),
    createKey: (key, maxKeys, auditEntries = []) => keys.create(key, maxKeys, auditEntries),
    listKeys: (accountId, query) => keys.list(accountId, query),
    keyById: (accountId, keyId) => keys.byId(accountId, keyId),
    keyByName: (accountId, name) => keys.byName(accountId, name),
    countKeys: (accountId) => keys.countLive(accountId),
    changeKey: (key, edit, auditEntries = () => []) => keys.change(key, edit, auditEntries),
    revokeKey: (key, atMs, auditEntries = []) => keys.revoke(key, atMs, auditEntries),
    removeKeys: (accountId, ids, beforeMs) => keys.remove(accountId, ids, beforeMs),
    findKey: (digest) => keys.find(digest),
  }
}
