/**
 * Goal: `sluice backup` makes a complete copy of the embedded store while other processes write, and a
 * gateway can start on it.
 * Method: the built program while another process writes; then the store is replaced by the copy.
 */
import { copyFileSync, existsSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { openSqlite } from '../../src/store/sqlite/store.js'
import { ledgerEntry } from '../ledger/build-entry.js'
import { aKey, anAccount } from '../store/contract/sample-records.js'
import { configFolder, sluice } from './session.js'

void t.test('a backup taken during writes can be restored', async (t) => {
  const { good } = configFolder(t)
  const path = join(dirname(good), 'data', 'sluice.db')
  const copy = join(dirname(good), 'copy.db')
  const store = await openSqlite(path)
  t.teardown(() => store.close())
  const ada = anAccount()
  const key = aKey(ada.id)
  await store.createAccount(ada)
  await store.createKey(key, null)
  let [isOver, written] = [false, 0]
  const writing = (async () => {
    for (; !isOver; written += 1) await store.ledger.settle(ledgerEntry(`during-${written}`))
  })()
  const { status, out, err } = await sluice(['backup', copy, '--config', good])
  isOver = true
  await writing
  t.same([status, err], [0, ''])
  const [, entries = ''] = /1 accounts, 1 keys, (\d+) ledger entries/.exec(out) ?? []
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
  t.equal(await restored.createKey(aKey(ada.id), null), 'created', 'the copy accepts writes')
})

void t.test('a store that cannot be copied and an existing target are refused', async (t) => {
  const { good, bad } = configFolder(t)
  const copy = join(dirname(good), 'copy.db')
  const missing = await sluice(['backup', copy, '--config', good])
  t.equal(missing.status, 1)
  t.match(missing.err, /sluice\.db' does not exist/)
  const store = await openSqlite(join(dirname(good), 'data', 'sluice.db'))
  await store.close()
  const existing = await sluice(['backup', good, '--config', good])
  t.equal(existing.status, 1)
  t.match(
    existing.err,
    /^sluice: the file ".*" exists already: choose another name or remove it first$/m,
  )
  const nowhere = await sluice(['backup', join(dirname(good), 'none', 'copy.db'), '--config', good])
  t.equal(nowhere.status, 1)
  t.match(nowhere.err, /^sluice: the folder ".*none" does not exist: create it first$/m)
  const folder = await sluice(['backup', dirname(good), '--config', good])
  t.same(
    [folder.status, folder.err],
    [1, `sluice: "${dirname(good)}" is a folder: name a file in it\n`],
  )
  const unwritable = await sluice(['backup', '/proc/copy.db', '--config', good])
  t.equal(unwritable.status, 1)
  t.match(
    unwritable.err,
    /^sluice: The copy cannot be written\. \(writing '\/proc\/copy\.db' failed/,
  )
  t.equal((await sluice(['backup', copy, '--config', bad])).status, 1)
  t.equal((await sluice(['backup', '--config', good])).status, 2)
  t.notOk(existsSync(copy), 'no partial copy is left')
})
