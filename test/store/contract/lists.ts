/**
 * The tests of every engine for lists: pages, the removal of ended keys, capacity, and the id of the store.
 */
import { editAccount, editKey, endKey, putAccount, putKey } from '../../helpers/store-changes.js'
import type { Test } from 'tap'
import { GatewayError } from '../../../src/errors.js'
import {
  KEY_RETENTION_MS,
  removeEndedKeys,
  removeEndedKeysInTurn,
} from '../../../src/store/remove-ended-keys.js'
import { openStore } from '../../../src/store/open-store.js'
import type { Page, PageQuery, Store, StoreOptions } from '../../../src/store/store.js'
import { allKeys } from '../../helpers/lists.js'
import type { NewUrl } from './store-contract.js'
import { aKey, anAccount, anEntry } from './sample-records.js'

async function opened(t: Test, url: string, options: StoreOptions = {}): Promise<Store> {
  const store = await openStore(url, options)
  t.teardown(() => store.close())
  return store
}

type Read<Item> = (query: PageQuery) => Promise<Page<Item>>

/** All items in pages of `limit`; `between` runs before each further page. */
async function walked<Item>(
  read: Read<Item>,
  { order, limit }: Pick<PageQuery, 'order' | 'limit'>,
  between: () => Promise<unknown> = () => Promise.resolve(),
): Promise<{ items: Item[]; pages: number }> {
  const items: Item[] = []
  for (let after: string | null = null, pages = 1; ; pages += 1) {
    const page: Page<Item> = await read({ order, after, limit })
    if (page.items.length > limit) throw new Error('the page is longer than its limit')
    items.push(...page.items)
    if (page.next === null) return { items, pages }
    if (!/^[A-Za-z0-9_-]{1,100}$/.test(page.next)) throw new Error('the cursor has another form')
    after = page.next
    await between()
  }
}

/** Pages of keys and accounts. */
export async function lists(t: Test, newUrl: NewUrl): Promise<void> {
  const store = await opened(t, await newUrl(t))
  const accounts = Array.from({ length: 7 }, (_, at) => anAccount({ createdAtMs: 99 - at }))
  for (const account of accounts) await putAccount(store, account)
  const [ada, bob] = accounts
  if (ada === undefined || bob === undefined) throw new Error('no accounts')
  const keys = Array.from({ length: 7 }, (_, at) => aKey(ada.id, { createdAtMs: 99 - at }))
  for (const key of keys) await putKey(store, key, null)
  await putKey(store, aKey(bob.id), null)

  const read = (query: PageQuery) => store.listKeys(ada.id, query)
  const readAccounts = (query: PageQuery) => store.listAccounts(query)
  for (const [limit, pages] of [
    [1, 7],
    [2, 4],
    [7, 1],
    [1_000, 1],
  ] as const) {
    const up = await walked(read, { order: 'oldest_first', limit })
    t.same(up, { items: keys, pages }, `keys, ${limit} at a time, in order of creation`)
    const down = await walked(read, { order: 'newest_first', limit })
    t.same(down, { items: [...keys].reverse(), pages }, 'newest first')
    t.same(await walked(readAccounts, { order: 'oldest_first', limit }), { items: accounts, pages })
    const newest = { items: [...accounts].reverse(), pages }
    t.same(await walked(readAccounts, { order: 'newest_first', limit }), newest)
  }
  const none = { items: [], next: null }
  const first = { order: 'oldest_first', after: null, limit: 5 } as const
  for (const badName of ['acc_unknown', '', '\0', '*']) t.same(await store.listKeys(badName, first), none)
  for (const after of ['', 'x', '-1', '1.5', '1 2', '\0', '9'.repeat(99), '(1', '+inf', "1' OR 1"]) {
    t.same(await store.listKeys(ada.id, { ...first, after }), none, `no cursor: ${after.slice(0, 9)}`)
    t.same(await store.listAccounts({ ...first, after }), none)
  }

  let made = 0
  const grown = await walked(read, { order: 'oldest_first', limit: 3 }, () => {
    made += 1
    return made > 2 ? Promise.resolve() : putKey(store, aKey(ada.id), null)
  })
  t.equal(new Set(grown.items.map(({ id }) => id)).size, 9, 'keys that were created meanwhile are at the end')
  const down = await walked(read, { order: 'newest_first', limit: 3 }, () =>
    putKey(store, aKey(ada.id), null),
  )
  t.equal(down.items.length, 9, 'newest first, they are absent: no key is skipped or repeated')
}

/** Removes ended keys and no others. */
export async function removal(t: Test, newUrl: NewUrl): Promise<void> {
  const store = await opened(t, await newUrl(t))
  const ada = anAccount()
  const bob = anAccount()
  for (const account of [ada, bob]) await putAccount(store, account)
  const live = aKey(ada.id)
  const revoked = aKey(ada.id)
  const lately = aKey(ada.id)
  const expired = aKey(ada.id, { expiresAtMs: 900 })
  const later = aKey(ada.id, { expiresAtMs: 5_000 })
  const both = aKey(ada.id, { expiresAtMs: 5_000 })
  const his = aKey(bob.id)
  const all = [live, revoked, lately, expired, later, both, his]
  for (const key of all)
    await putKey(store, key, null, [anEntry(key.accountId, { action: 'key.create', target: key.id })])
  for (const [{ accountId, id }, atMs] of [
    [revoked, 999],
    [lately, 1_000],
    [both, 10],
    [his, 1],
  ] as const) {
    await endKey(store, { accountId, id }, atMs)
  }
  t.equal((await store.findKey(revoked.digest))?.key.revokedAtMs, 999)
  t.equal((await store.findKey(live.digest))?.key.id, live.id)
  t.equal(await store.countKeys(ada.id), 3)

  const changed: (string | null)[] = []
  const stop = store.subscribe(({ digest }) => changed.push(digest))
  const ids = [...all.map(({ id }) => id), revoked.id, 'key_none', '\0', '']
  t.equal(await store.removeKeys('acc_unknown', ids, 1_000), 0)
  t.equal(await store.removeKeys(ada.id, [], 1_000), 0)
  t.equal(await store.removeKeys(ada.id, ids, 1_000), 3, 'removes keys that ended before the time')
  t.equal(await store.removeKeys(ada.id, ids, 1_000), 0, 'once')
  const left = (await allKeys(store, ada.id)).map(({ id }) => id)
  t.same(
    left,
    [live, lately, later].map(({ id }) => id),
    'other keys keep their order',
  )
  for (const { digest, id } of [revoked, expired, both]) {
    t.equal(await store.findKey(digest), null, 'its digest is unknown')
    t.equal(await store.keyById(ada.id, id), null)
    t.equal(await endKey(store, { accountId: ada.id, id }, 1), false)
    t.equal(
      await editKey(store, { accountId: ada.id, id }, { expiresAtMs: 9_999 }),
      null,
      'a removed key cannot change',
    )
  }
  t.equal((await store.findKey(his.digest))?.key.revokedAtMs, 1, 'the key of another account stays')
  t.equal((await store.findKey(live.digest))?.key.id, live.id)
  t.equal(await store.countKeys(ada.id), 2, 'a removed expired key does not count')
  t.equal(await putKey(store, aKey(ada.id), 2), 'plan_limit')
  t.equal(await putKey(store, aKey(ada.id), 3), 'created')
  const page = await store.auditTrail.page({ accountId: ada.id, after: null, limit: 100 })
  t.equal(page.length, 6, 'the audit entries of the keys stay')
  for (let tries = 0; tries < 50 && !changed.includes(revoked.digest); tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  t.ok(changed.includes(revoked.digest), 'processes that have the key in their cache are notified')
  stop()
}

/** The periodic removal: one process removes all keys that ended 30 days ago. */
export async function retention(t: Test, newUrl: NewUrl): Promise<void> {
  const store = await opened(t, await newUrl(t))
  const nowMs = Date.now()
  const owners = Array.from({ length: 3 }, () => anAccount())
  for (const owner of owners) {
    await putAccount(store, owner)
    const old = aKey(owner.id)
    const recent = aKey(owner.id)
    for (const key of [old, recent, aKey(owner.id)]) await putKey(store, key, 5)
    await endKey(store, old, nowMs - KEY_RETENTION_MS - 1)
    await endKey(store, recent, nowMs - KEY_RETENTION_MS + 60_000)
  }
  const turns = [0, 1].map(() => removeEndedKeysInTurn(store, nowMs))
  const removed = await Promise.all(turns)
  t.same(removed.sort(), [3, null].sort(), 'one of two processes removes the keys')
  for (const { id } of owners) t.equal((await allKeys(store, id)).length, 2)
  t.equal(await removeEndedKeys(store, nowMs, 0), 0, 'a second run removes nothing')
}

/** The capacity of an account does not affect other accounts. */
export async function bounds(t: Test, newUrl: NewUrl): Promise<void> {
  const small = { keysPerAccount: 5, auditEntriesPerAccount: 4, auditEntries: 10 }
  const store = await opened(t, await newUrl(t), { capacity: small })
  const ada = anAccount()
  const bob = anAccount()
  for (const account of [ada, bob]) await putAccount(store, account)
  const keys = Array.from({ length: 5 }, () => aKey(ada.id))
  for (const key of keys) {
    t.equal(await putKey(store, key, null), 'created')
    await endKey(store, key, 10)
  }
  t.equal(await putKey(store, aKey(ada.id), null), 'account_full', 'revoked keys count')
  t.equal(await putKey(store, aKey(ada.id), 3), 'account_full')
  t.equal(await putKey(store, aKey(bob.id), 3), 'created', 'another account has room')
  t.equal(await store.removeKeys(ada.id, [keys[0]?.id ?? ''], 11), 1)
  t.equal(await putKey(store, aKey(ada.id), null), 'created', 'a removed key frees its place')
  t.equal(await putKey(store, aKey(ada.id), null), 'account_full')

  const own = async (accountId: string | null): Promise<string[]> => {
    const page = await store.auditTrail.page({ accountId, after: null, limit: 100 })
    return page.map(({ id }) => id).reverse()
  }
  const his = [
    anEntry(bob.id, { action: 'key.create', target: 'k' }),
    anEntry(bob.id, { action: 'key.revoke', target: 'k' }),
  ]
  for (const entry of his) await store.auditTrail.add(entry)
  const hers = Array.from({ length: 30 }, () =>
    anEntry(ada.id, { action: 'session.sign-in', target: ada.id }),
  )
  for (const entry of hers) await store.auditTrail.add(entry)
  t.same(
    await own(ada.id),
    hers.slice(-4).map(({ id }) => id),
    'keeps the newest entries of an account',
  )
  t.same(
    await own(bob.id),
    his.map(({ id }) => id),
    'keeps the entries of other accounts',
  )
  t.same(
    await own(null),
    [...his, ...hers.slice(-4)].map(({ id }) => id),
    'keeps them in the list of all accounts',
  )
  const more = Array.from({ length: 3 }, () => anEntry(ada.id, { action: 'account.plan', target: ada.id }))
  await editAccount(store, ada.id, { plan: 'max' }, () => more)
  t.same(
    await own(ada.id),
    [...hers.slice(-1), ...more].map(({ id }) => id),
    'the same for the entries of changes',
  )

  const others = Array.from({ length: 12 }, (_, at) =>
    anEntry(`acc_${at}`, { action: 'session.sign-in', target: 'x' }),
  )
  for (const entry of others) await store.auditTrail.add(entry)
  t.same(
    await own(null),
    others.slice(-10).map(({ id }) => id),
    'removes the oldest of all accounts beyond the total',
  )
  t.same(await own(ada.id), [])
  t.same(await own('acc_1'), [])
}

/** Refuses a store that was emptied or replaced. */
export async function identity(t: Test, newUrl: NewUrl): Promise<void> {
  const url = await newUrl(t)
  const other = await newUrl(t)
  const store = await openStore(url)
  t.equal(store.isNew, true)
  t.match(store.id, /^[\w-]{1,100}$/)
  const again = await opened(t, url, { expectedId: store.id })
  t.same([again.id, again.isNew], [store.id, false], 'every process reads the same id')
  await store.close()
  for (let tries = 0; tries < 2; tries += 1) {
    const error: unknown = await openStore(other, { expectedId: again.id }).catch((e: unknown) => e)
    t.ok(error instanceof GatewayError && error.kind === 'store_unavailable')
    const { cause } = error as GatewayError
    t.match(cause, { message: /the store is empty.*sluice store accept/ }, 'no store is created')
  }
  const made = await opened(t, other)
  t.equal(made.isNew, true)
  t.not(made.id, again.id)
  const error: unknown = await openStore(other, { expectedId: again.id }).catch((e: unknown) => e)
  t.match((error as GatewayError).cause, { message: /another store/ })
}
