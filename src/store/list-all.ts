/**
 * Reads whole lists of a store page by page; no list is ever in memory as a whole.
 */
import type { Account, ApiKey, User } from '../accounts/account.js'
import type { Page, PageQuery, Store } from './store.js'

const PAGE_ITEMS = 500

/** Every account, the oldest first. Throws `store_unavailable`. */
export async function* everyAccount(store: Pick<Store, 'listAccounts'>): AsyncGenerator<Account> {
  for await (const page of accountPages(store)) yield* page
}

/** Every key of the account, the oldest first, revoked ones included. Throws `store_unavailable`. */
export async function* everyKey(store: Pick<Store, 'listKeys'>, accountId: string): AsyncGenerator<ApiKey> {
  for await (const page of keyPages(store, accountId)) yield* page
}

/** Every user in the order of the e-mail addresses, in lists of at most 500. */
export async function* userPages({ users }: Pick<Store, 'users'>): AsyncGenerator<readonly User[]> {
  for (let after: string | null = null; ;) {
    const page: Page<User> = await users.list({ after, limit: PAGE_ITEMS })
    yield page.items
    if (page.next === null) return
    after = page.next
  }
}

/** Every account, in lists of at most 500. */
export function accountPages(store: Pick<Store, 'listAccounts'>): AsyncGenerator<readonly Account[]> {
  return pages((query) => store.listAccounts(query))
}

/** Every key of the account, in lists of at most 500. */
export function keyPages(
  store: Pick<Store, 'listKeys'>,
  accountId: string,
): AsyncGenerator<readonly ApiKey[]> {
  return pages((query) => store.listKeys(accountId, query))
}

async function* pages<Item>(
  read: (query: PageQuery) => Promise<Page<Item>>,
): AsyncGenerator<readonly Item[]> {
  for (let after: string | null = null; ;) {
    const page: Page<Item> = await read({ order: 'oldest_first', after, limit: PAGE_ITEMS })
    yield page.items
    if (page.next === null) return
    after = page.next
  }
}
