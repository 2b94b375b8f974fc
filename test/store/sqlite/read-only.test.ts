/**
 * Goal: a store that was read-only at the start is written without a restart once it is writable again.
 * Method: a file, or its folder, with modes that refuse writes while the store opens, for a user other than
 * root; both threads write afterwards.
 */
import { putAccount } from '../../helpers/store-changes.js'
import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { openStore } from '../../../src/store/open-store.js'
import type { Store } from '../../../src/store/store.js'
import { anAccount, aUser } from '../contract/sample-records.js'
import { until } from '../../helpers/redis.js'
import { aRow } from '../ledger/sample-entries.js'

const isRoot = process.geteuid?.() === 0
/** Any user id but root's, whom modes do not concern. */
const OTHER = 65_534

/** Writes a user and ends without closing the file. */
const KILLED = `
  import { openStore } from '${new URL('../../../src/store/open-store.js', import.meta.url).href}'
  const store = await openStore(process.env.STORE)
  await store.users.create(JSON.parse(process.env.USER_RECORD))
  process.kill(process.pid, 'SIGKILL')`

/** Opens it as a user for whom modes hold. */
async function openedAsOther(t: Test, path: string): Promise<Store> {
  if (isRoot) {
    for (let folder = dirname(path); folder.includes('.tap'); folder = dirname(folder))
      chmodSync(folder, 0o755)
    process.seteuid?.(OTHER)
    t.teardown(() => process.seteuid?.(0))
  }
  const store = await openStore(`sqlite:${path}`)
  t.teardown(() => store.close())
  return store
}

for (const what of ['file', 'folder'] as const) {
  void t.test(`a ${what} that becomes writable`, async (t) => {
    const folder = join(t.testdir(), 'data')
    mkdirSync(folder)
    const path = join(folder, 'sluice.db')
    const first = await openStore(`sqlite:${path}`)
    const user = aUser()
    await first.users.create(user)
    // With an open log, a folder that cannot be written can be read.
    const files = [path, `${path}-wal`, `${path}-shm`].filter((each) => existsSync(each))
    const change = (mode: number, folderMode: number) => {
      for (const file of files) if (existsSync(file)) chmodSync(file, mode)
      if (what === 'folder') chmodSync(folder, folderMode)
    }
    if (isRoot) for (const each of [folder, ...files]) chownSync(each, OTHER, OTHER)
    change(0o400, 0o500)
    t.teardown(() => existsSync(folder) && chmodSync(folder, 0o700))
    const store = await openedAsOther(t, path)
    t.same(await store.users.byId(user.id), user, 'it is read')
    const write = () => store.users.change(user.id, { signedInAtMs: 7 })
    await t.rejects(write(), { kind: 'store_unavailable', message: /read-only/ })
    await t.rejects(putAccount(store, anAccount()), { kind: 'store_unavailable', message: /read-only/ })
    await sleep(1_100)
    await t.rejects(write(), { kind: 'store_unavailable', message: /read-only/ })

    change(0o600, 0o700)
    const isWritten = async () => (await write().catch(() => null)) !== null
    await until(isWritten, 'a write without a restart')
    t.match(await store.users.byId(user.id), { signedInAtMs: 7 })
    t.match(await first.users.byId(user.id), { signedInAtMs: 7 }, 'another connection reads it')
    const account = anAccount()
    await putAccount(store, account)
    const atMs = Date.now()
    await store.ledger.settle(aRow({ accountId: account.id, atMs }))
    const sums = await store.ledger.sums({ accountId: account.id, by: 'day', fromMs: atMs, toMs: atMs })
    t.match(sums, [{ requests: 1 }], 'the thread adds up usage')
    if (isRoot) process.seteuid?.(0)
    await first.close()
  })
}

void t.test('a folder and all its files that become writable, without another connection', async (t) => {
  const folder = join(t.testdir(), 'data')
  mkdirSync(folder)
  const path = join(folder, 'sluice.db')
  const user = aUser()
  // A process that is killed leaves the log and its index.
  const made = spawnSync(process.execPath, ['--input-type=module', '-e', KILLED], {
    env: { ...process.env, STORE: `sqlite:${path}`, USER_RECORD: JSON.stringify(user) },
  })
  t.equal(made.signal, 'SIGKILL', made.stderr.toString())
  const files = [path, `${path}-wal`, `${path}-shm`]
  if (isRoot) for (const each of [folder, ...files]) chownSync(each, OTHER, OTHER)
  for (const file of files) chmodSync(file, 0o400)
  chmodSync(folder, 0o500)
  t.teardown(() => existsSync(folder) && chmodSync(folder, 0o700))
  const store = await openedAsOther(t, path)
  const write = () => store.users.change(user.id, { signedInAtMs: 7 })
  const sums = () => store.ledger.sums({ accountId: user.id, by: 'day', fromMs: 0, toMs: Date.now() })
  t.same(await sums(), [], 'the thread reads it')
  await t.rejects(write(), { kind: 'store_unavailable', message: /read-only/ })
  await sleep(1_100)
  await t.rejects(write(), { kind: 'store_unavailable', message: /read-only/ })
  t.same(await store.users.byId(user.id), user, 'it is read')

  chmodSync(folder, 0o700)
  for (const file of files) chmodSync(file, 0o600)
  const isWritten = async () => (await write().catch(() => null)) !== null
  await until(isWritten, 'a write without a restart')
  t.match(await store.users.byId(user.id), { signedInAtMs: 7 })
  const atMs = Date.now()
  await store.ledger.settle(aRow({ accountId: user.id, atMs }))
  t.match(await sums(), [{ requests: 1 }], 'the thread adds up usage')
  if (isRoot) process.seteuid?.(0)
})
