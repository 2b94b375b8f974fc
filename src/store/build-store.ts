/**
 * Makes a store of an engine's parts.
 */
import type { Store } from './store.js'

/** Accounts as an engine keeps them; each method is the one of `Store`. */
export interface AccountTable {
  create(...args: Required<Parameters<Store['createAccount']>>): ReturnType<Store['createAccount']>
  byId: Store['accountById']
  byEmail: Store['accountByEmail']
  list: Store['listAccounts']
  change(...args: Required<Parameters<Store['changeAccount']>>): ReturnType<Store['changeAccount']>
}

/** Keys as an engine keeps them; each method is the one of `Store`. */
export interface KeyTable {
  create(...args: Required<Parameters<Store['createKey']>>): ReturnType<Store['createKey']>
  list: Store['listKeys']
  byId: Store['keyById']
  countLive: Store['countKeys']
  change(...args: Required<Parameters<Store['changeKey']>>): ReturnType<Store['changeKey']>
  revoke(...args: Required<Parameters<Store['revokeKey']>>): ReturnType<Store['revokeKey']>
  remove: Store['removeKeys']
  find: Store['findKey']
}

/** What an engine brings. */
export interface StoreParts extends Pick<
  Store,
  | 'id'
  | 'isNew'
  | 'cache'
  | 'ledger'
  | 'signInTokens'
  | 'auditTrail'
  | 'throttle'
  | 'fleet'
  | 'subscribe'
  | 'probe'
  | 'close'
> {
  readonly accounts: AccountTable
  readonly keys: KeyTable
}

/** The store. */
export function buildStore({ accounts, keys, ...parts }: StoreParts): Store {
  return {
    ...parts,
    createAccount: (account, told = []) => accounts.create(account, told),
    accountById: (id) => accounts.byId(id),
    accountByEmail: (email) => accounts.byEmail(email),
    listAccounts: (query) => accounts.list(query),
    changeAccount: (id, edit, told = () => []) => accounts.change(id, edit, told),
    createKey: (key, maxKeys, told = []) => keys.create(key, maxKeys, told),
    listKeys: (accountId, query) => keys.list(accountId, query),
    keyById: (accountId, keyId) => keys.byId(accountId, keyId),
    countKeys: (accountId) => keys.countLive(accountId),
    changeKey: (accountId, keyId, edit, told = () => []) =>
      keys.change(accountId, keyId, edit, told),
    revokeKey: (accountId, keyId, atMs, told = []) => keys.revoke(accountId, keyId, atMs, told),
    removeKeys: (accountId, ids, beforeMs) => keys.remove(accountId, ids, beforeMs),
    findKey: (digest) => keys.find(digest),
  }
}
