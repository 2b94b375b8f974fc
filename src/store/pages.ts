/**
 * Reads whole lists of a store, a page at a time, so that no list is ever held at once.
 */
import type { Account, ApiKey } from '../accounts/account.js'
import type { Page, PageQuery, Store } from './store.js'

const PAGE_ITEMS = 500

/** Every account, the oldest first. Throws `store_unavailable`. */
export function everyAccount(store: Pick<Store, 'listAccounts'>): AsyncGenerator<Account> {
  return every((query) => store.listAccounts(query))
}

/** Every key of the account, the oldest first, revoked ones included. Throws `store_unavailable`. */
export function everyKey(
  store: Pick<Store, 'listKeys'>,
  accountId: string,
): AsyncGenerator<ApiKey> {
  return every((query) => store.listKeys(accountId, query))
}

async function* every<Item>(
  read: (query: PageQuery) => Promise<Page<Item>>,
): AsyncGenerator<Item> {
  for (let after: string | null = null; ;) {
    const page: Page<Item> = await read({ order: 'oldest_first', after, limit: PAGE_ITEMS })
    yield* page.items
    if (page.next === null) return
    after = page.next
  }
}
