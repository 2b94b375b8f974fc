/**
 * Goal: `sluice backup` makes a complete copy of the embedded store while other processes write, and a
 * gateway can start on it.
 * Method: the built program while another process writes; then the store is replaced by the copy.
 */
import { putAccount, putKey } from '../helpers/store-changes.js'
import { copyFileSync, existsSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { openSqlite } from '../../src/store/sqlite/open-sqlite.js'
import { ledgerEntry } from '../ledger/build-entry.js'
import type { Store } from '../../src/store/store.js'
import { anAdmission, aRow, budget, places } from '../store/ledger/sample-entries.js'
import { aKey, anAccount } from '../store/contract/sample-records.js'
import { configFolder, sluice, sluiceHere } from './session.js'

void t.test('a backup taken during writes can be restored', async (t) => {
  const { good } = configFolder(t)
  const path = join(dirname(good), 'data', 'sluice.db')
  const copy = join(dirname(good), 'copy.db')
  const store = await openSqlite(path)
  t.teardown(() => store.close())
  const ada = anAccount()
  const key = aKey(ada.id)
  await putAccount(store, ada)
  await putKey(store, key, null)
  let [isOver, written] = [false, 0]
  const writing = (async () => {
    for (; !isOver; written += 1) await store.ledger.settle(ledgerEntry(`during-${written}`))
  })()
  const { status, out, err } = await sluice(['backup', copy, '--config', good])
  isOver = true
  await writing
  // A slow machine prints its progress.
  const errors = err.split('\n').filter((line) => line !== '' && !line.endsWith('so far'))
  t.same({ status, errors }, { status: 0, errors: [] })
  const [, entries = ''] = /1 account, 1 key, (\d+) ledger entries/.exec(out) ?? []
  t.ok(Number(entries) > 0 && Number(entries) <= written, `${entries} of ${written} entries`)
  t.equal(statSync(copy).mode & 0o777, 0o600)
  await store.close()

  for (const end of ['', '-wal', '-shm']) rmSync(`${path}${end}`, { force: true })
  copyFileSync(copy, path)
  const restored = await openSqlite(path)
  t.teardown(() => restored.close())
  t.equal(restored.id, store.id, 'the copy is the same store')
  t.same((await restored.findKey(key.digest))?.key, key)
  for (let at = 0; at < Number(entries); at += 1) {
    if ((await restored.ledger.entry(null, `during-${at}`)) === null) t.fail(`entry ${at} is gone`)
  }
  t.equal(await putKey(restored, aKey(ada.id), null), 'created', 'the copy accepts writes')
})

void t.test('a copy does not charge requests that run, and charges those that were lost', async (t) => {
  const { good } = configFolder(t)
  const path = join(dirname(good), 'data', 'sluice.db')
  const copy = join(dirname(good), 'copy.db')
  const store = await openSqlite(path)
  t.teardown(() => store.close())
  const demands = [
    places(5),
    ...(['usd_day', 'usd_week', 'usd_month'] as const).map((kind) =>
      budget(kind, { limitNanoUsd: 1_000, costNanoUsd: 100 }),
    ),
  ]
  const [ended, running, lost] = [
    anAdmission(demands),
    anAdmission(demands),
    anAdmission(demands, { leaseMs: 0 }),
  ]
  for (const each of [ended, running, lost]) await store.ledger.admit(each)
  await store.ledger.settle(aRow({ requestId: ended.requestId, costNanoUsd: 30 }))
  t.match(await sluiceHere(['backup', copy, '--config', good]), { status: 0, err: '' })
  const left = async ({ ledger }: Pick<Store, 'ledger'>) =>
    (await ledger.limitStates('acc_ada', demands)).map(({ remaining }) => remaining)
  t.same(await left(store), [3, 770, 770, 770])
  await store.ledger.renew([running], 600_000)

  const later = Date.now() + 120_000
  const restored = await openSqlite(copy, { nowMs: () => later })
  t.teardown(() => restored.close())
  t.same((await left(restored)).slice(1), [870, 870, 870], 'the copy holds nothing of running requests')
  t.equal(await restored.ledger.expire(), 1)
  t.equal(await restored.ledger.entry(null, running.requestId), null)
  t.match(await restored.ledger.entry(null, lost.requestId), { outcome: 'lost', status: 500 })
  t.same(await left(restored), [5, 870, 870, 870])
  t.equal(await store.ledger.settle(aRow({ requestId: running.requestId })), 'settled')
})

void t.test('a store that cannot be copied and an existing target are refused', async (t) => {
  const { good, bad } = configFolder(t)
  const copy = join(dirname(good), 'copy.db')
  const missing = await sluiceHere(['backup', copy, '--config', good])
  t.equal(missing.status, 1)
  t.match(missing.err, /sluice\.db' does not exist/)
  const store = await openSqlite(join(dirname(good), 'data', 'sluice.db'))
  await store.close()
  const existing = await sluiceHere(['backup', good, '--config', good])
  t.equal(existing.status, 1)
  t.match(existing.err, /^sluice: the file ".*" exists already: choose another name or remove it first$/m)
  const nowhere = await sluiceHere(['backup', join(dirname(good), 'none', 'copy.db'), '--config', good])
  t.equal(nowhere.status, 1)
  t.match(nowhere.err, /^sluice: the folder ".*none" does not exist: create it first$/m)
  const folder = await sluiceHere(['backup', dirname(good), '--config', good])
  t.same([folder.status, folder.err], [1, `sluice: "${dirname(good)}" is a folder: name a file in it\n`])
  const unwritable = await sluiceHere(['backup', '/proc/copy.db', '--config', good])
  t.equal(unwritable.status, 1)
  t.match(unwritable.err, /^sluice: The copy cannot be written\. \(writing '\/proc\/copy\.db' failed/)
  t.equal((await sluiceHere(['backup', copy, '--config', bad])).status, 1)
  t.equal((await sluiceHere(['backup', '--config', good])).status, 2)
  t.notOk(existsSync(copy), 'no partial copy is left')
})
