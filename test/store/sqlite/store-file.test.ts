/**
 * Goal: the store's file is found through a symbolic link and is private to its user. If it is removed or
 * replaced while it is open, the store is unavailable.
 * Method: stores in temporary folders, whose files are moved.
 */
import { putAccount } from '../../helpers/store-changes.js'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openSqlite } from '../../../src/store/sqlite/open-sqlite.js'
import type { Store } from '../../../src/store/store.js'
import { ledgerEntry } from '../../ledger/build-entry.js'
import { until } from '../../helpers/redis.js'
import { anAccount } from '../contract/sample-records.js'

async function opened(t: Test, path: string): Promise<Store> {
  const store = await openSqlite(path)
  t.teardown(() => store.close())
  return store
}

void t.test('opens a file through a symbolic link, also one without a target', async (t) => {
  const folder = t.testdir()
  mkdirSync(join(folder, 'disk'))
  symlinkSync(join('disk', 'target'), join(folder, 'link'))
  const [ada, bob] = [anAccount(), anAccount()]
  const first = await opened(t, join(folder, 'link'))
  t.equal(await putAccount(first, ada), 'created')
  await first.close()
  const second = await opened(t, join(folder, 'link'))
  t.equal(await putAccount(second, bob), 'created')
  const direct = await opened(t, join(folder, 'disk', 'target'))
  t.same(await direct.accountById(ada.id), ada)
  t.same(await direct.accountById(bob.id), bob)
})

void t.test('makes an existing file private before it has content', async (t) => {
  const path = join(t.testdir(), 'store')
  writeFileSync(path, '')
  chmodSync(path, 0o666)
  await (await opened(t, path)).close()
  t.equal(statSync(path).mode & 0o777, 0o600)
  chmodSync(path, 0o644)
  await opened(t, path)
  for (const end of ['', '-wal', '-shm']) t.equal(statSync(path + end).mode & 0o777, 0o600, end)
})

void t.test('a file that was moved away is unavailable until it is back', async (t) => {
  const folder = t.testdir()
  const path = join(folder, 'store')
  const store = await opened(t, path)
  await store.ledger.settle(ledgerEntry('before'))
  renameSync(path, join(folder, 'aside'))
  await failsWith(store, /store' was removed while the gateway runs/)
  await t.rejects(store.ledger.settle(ledgerEntry('during')), { message: /lost its data/ })
  await t.rejects(putAccount(store, anAccount()), { message: /lost its data/ })
  t.throws(() => store.findKey('0'.repeat(64)), { message: /lost its data/ }, 'not unknown')
  renameSync(join(folder, 'aside'), path)
  await until(async () => (await failure(store)) === null, 'the file is back')
  await store.ledger.settle(ledgerEntry('after'))
  t.equal((await store.ledger.entry(null, 'after'))?.requestId, 'after')
})

void t.test('the background thread creates no file in the place of one that was moved', async (t) => {
  const folder = t.testdir()
  const path = join(folder, 'store')
  const store = await opened(t, path)
  await store.ledger.settle(ledgerEntry('before'))
  renameSync(path, join(folder, 'aside'))
  const all = { accountId: null, after: null, limit: 10 }
  await t.rejects(store.ledger.entries(all), {
    kind: 'store_unavailable',
    cause: { message: /store' was removed or replaced while it was open/ },
  })
  t.notOk(existsSync(path))
  renameSync(join(folder, 'aside'), path)
  const { entries } = await store.ledger.entries(all)
  t.match(entries, [{ requestId: 'before' }])
})

void t.test('a file that was replaced by a copy is unavailable', async (t) => {
  const folder = t.testdir()
  const path = join(folder, 'store')
  const store = await opened(t, path)
  copyFileSync(path, join(folder, 'copy'))
  renameSync(join(folder, 'copy'), path)
  await failsWith(store, /store' was replaced while the gateway runs/)
})

/** The reason why the store fails; null if it works. */
async function failure(store: Store): Promise<string | null> {
  try {
    await store.probe()
    return null
  } catch (error) {
    return error instanceof Error && error.cause instanceof Error ? error.cause.message : ''
  }
}

async function failsWith(store: Store, reason: RegExp): Promise<void> {
  await until(async () => reason.test((await failure(store)) ?? ''), String(reason))
}
