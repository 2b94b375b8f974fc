/** Reads all pages of a store's lists. */
import type { Account, ApiKey } from '../../src/accounts/account.js'
import { everyAccount, everyKey } from '../../src/store/list-all.js'
import type { Store } from '../../src/store/store.js'

/** Every account, the oldest first. */
export async function allAccounts(store: Pick<Store, 'listAccounts'>): Promise<Account[]> {
  const accounts: Account[] = []
  for await (const account of everyAccount(store)) accounts.push(account)
  return accounts
}

/** Every key of the account, the oldest first. */
export async function allKeys(store: Pick<Store, 'listKeys'>, accountId: string): Promise<ApiKey[]> {
  const keys: ApiKey[] = []
  for await (const key of everyKey(store, accountId)) keys.push(key)
  return keys
}
