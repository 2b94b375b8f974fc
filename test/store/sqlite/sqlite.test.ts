/**
 * Goal: the SQLite store passes the suite of every store, and handles damage and a full disk.
 * Method: the suite; then another connection changes the file.
 */
import { putAccount, putKey } from '../../helpers/store-changes.js'
import { existsSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { GatewayError } from '../../../src/errors.js'
import { connect } from '../../../src/store/sqlite/driver.js'
import { openSqlite } from '../../../src/store/sqlite/open-sqlite.js'
import { openStore } from '../../../src/store/open-store.js'
import type { KeyChange, Store } from '../../../src/store/store.js'
import { storeContract } from '../contract/store-contract.js'
import { fullDisk } from '../processes/start-processes.js'
import { aKey, anAccount } from '../contract/sample-records.js'
import { allKeys } from '../../helpers/lists.js'

// The killed writers take long on a busy machine.
t.setTimeout(120_000)
storeContract(t, 'sqlite', (t) => {
  // `testdir` empties the folder at each call.
  if (!existsSync(t.testdirName)) t.testdir()
  return `sqlite:${join(mkdtempSync(join(t.testdirName, 'store-')), 'data')}`
})

void t.test('a damaged record is a failure of the engine, not an unknown key', async (t) => {
  const path = join(t.testdir(), 'store')
  const store = await filled(t, path)
  const { digest } = store.key
  const damages: [string, RegExp][] = [
    ['{', /not JSON/],
    ['[]', /not a JSON object/],
    ['{"v":6}', /'v'/],
    [JSON.stringify({ v: 2, ...store.key, limits: { concurrent: 'many' } }), /'concurrent'/],
    [JSON.stringify({ v: 2, ...store.key, models: 'all' }), /'models'/],
    [JSON.stringify({ v: 2, ...store.key, expiresAtMs: null }), /'expiresAtMs'/],
    [JSON.stringify({ v: 1, ...store.key, name: 7 }), /'name'/],
    [JSON.stringify({ v: 1, ...store.key, createdAtMs: -1 }), /'createdAtMs'/],
    [JSON.stringify({ v: 1, ...store.key, revokedAtMs: null }), /'revokedAtMs'/],
    [JSON.stringify({ v: 1, ...aKey(store.key.accountId) }), /digest/],
    [JSON.stringify({ v: 1, ...store.key, accountId: 'acc_gone' }), /acc_gone/],
  ]
  for (const [text, why] of damages) {
    behind(path, 'keys', { name: digest, text })
    const error = failureOf(() => store.store.findKey(digest))
    t.match(error.cause, { message: why }, 'the cause names the problem')
    t.notMatch(error.message, why, 'the message for clients does not name it')
    t.equal(error.wire.retryAfterSeconds, 1)
  }
  behind(path, 'keys', { name: digest, text: JSON.stringify({ v: 1, ...store.key }) })
  t.same((await store.store.findKey(digest))?.key, store.key, 'a repaired record is read')
})

void t.test("a damaged account fails the account's keys only", async (t) => {
  const path = join(t.testdir(), 'store')
  const { store, key } = await filled(t, path)
  const other = anAccount()
  await putAccount(store, other)
  const fine = aKey(other.id)
  await putKey(store, fine, 5)
  const hash = 'hash-that-must-not-show'
  for (const plan of [['gold'], null, 1]) {
    const account = { ...anAccount({ id: key.accountId }), plan }
    const login = { role: 'owner', passwordHash: hash }
    const text = JSON.stringify({ v: 1, ...account, ...login, order: 1, liveKeys: 1 })
    behind(path, 'accounts', { name: key.accountId, text })
    const error = failureOf(() => store.findKey(key.digest))
    t.match(error.cause, { message: /'plan'/ })
    t.notMatch(String(error.cause), hash, 'the error contains no value of the record')
  }
  t.same((await store.findKey(fine.digest))?.key, fine)
  await t.rejects(putKey(store, aKey(key.accountId), 5), { name: 'GatewayError' })
})

void t.test('a subscriber that falls behind the log is notified that any key may have changed', async (t) => {
  const path = join(t.testdir(), 'store')
  const writer = await openSqlite(path, { changesKept: 8 })
  const reader = await openSqlite(path, { changesKept: 8 })
  t.teardown(() => Promise.all([writer.close(), reader.close()]))
  const ada = anAccount()
  await putAccount(writer, ada)

  const few = await changesDuring(reader, () => create(writer, ada.id, 8))
  t.equal(few.length, 8, 'reports up to eight changes one by one')
  t.notOk(few.some(({ digest }) => digest === null))
  const many = await changesDuring(reader, () => create(writer, ada.id, 9))
  t.same(many, [{ digest: null }], 'reports a change of every key for more changes')
})

void t.test('a full disk fails only the write', async (t) => {
  const path = join(t.testdir(), 'store')
  const { store, key } = await filled(t, path)
  await store.close()
  const { lines, status, stderr } = await fullDisk(`sqlite:${path}`, key.accountId)
  t.equal(status, 0, 'the process continues without unhandled rejections')
  t.notMatch(stderr, /UnhandledPromise|triggerUncaught/)
  const created = lines.filter((line) => line.startsWith('created '))
  const failed = lines.filter((line) => line.startsWith('failed '))
  t.ok(created.length > 10, `${created.length} keys fit on the disk`)
  t.equal(failed.length, 3)
  for (const line of failed) t.match(line, /key store.*changing an account failed: (?!Commit)/)
  t.equal(lines.at(-1), `listed ${created.length + 1}`)

  const again = await openSqlite(path)
  t.teardown(() => again.close())
  const digests = (await allKeys(again, key.accountId)).map(({ digest }) => digest)
  t.same(
    digests,
    [key.digest, ...created.map((line) => line.slice(8))],
    'the store has exactly the acknowledged keys',
  )
})

void t.test('only the owner may read the folder and files', async (t) => {
  const folder = join(t.testdir(), 'deep')
  const path = join(folder, 'store')
  const { store } = await filled(t, path)
  t.equal(statSync(folder).mode & 0o777, 0o700)
  t.same(readdirSync(folder).sort(), ['store', 'store-shm', 'store-wal'])
  for (const name of readdirSync(folder)) {
    t.equal(statSync(join(folder, name)).mode & 0o777, 0o600, name)
  }
  await store.close()
  const log = join(folder, 'store-wal')
  t.ok(!existsSync(log) || statSync(log).size === 0, 'a closed store is one file')
})

void t.test('refuses a file that is no store, with its path', async (t) => {
  const path = t.testdir({ folder: {}, 'a-file': 'x', empty: '' })
  const { store } = await filled(t, join(path, 'good'))
  await store.close()
  const good = readFileSync(join(path, 'good'))
  const newer = Buffer.from(good)
  newer.writeUInt32BE(99, 60)
  writeFileSync(join(path, 'newer'), newer)
  writeFileSync(join(path, 'junk'), Buffer.alloc(65_536, 0x5a))
  const other = connect(join(path, 'other'))
  other.exec('CREATE TABLE things (name TEXT)')
  other.close()
  const sizes = [1, 100, 4_096, 8_191, 8_192, 12_288]
  for (const bytes of sizes) writeFileSync(join(path, `cut-${bytes}`), good.subarray(0, bytes))
  const names = ['folder', 'a-file', 'a-file/below', 'junk', 'newer', 'other']
  names.push(...sizes.map((bytes) => `cut-${bytes}`))
  for (const name of names) {
    await t.rejects(
      openStore(`sqlite:${join(path, name)}`),
      { kind: 'store_unavailable', cause: { message: new RegExp(name) } },
      name,
    )
  }
  const begun = await openStore(`sqlite:${join(path, 'empty')}`)
  await begun.probe()
  await begun.close()
  await t.rejects(openStore(`sqlite:${join(path, 'none')}`, { mustExist: true }), {
    cause: { message: /none' does not exist/ },
  })
})

void t.test('refuses an unknown scheme and lists the supported ones', async (t) => {
  const wrong = ['redis+x://u:hunter2@h', 'mysql://u:hunter2@h', 'lmdb:x', 'sqlite:', '']
  const noFiles = ['sqlite:./data/', 'sqlite://data/sluice.db', 'sqlite::memory:', 'sqlite: ']
  for (const url of [...wrong, ...noFiles]) {
    const error: unknown = await openStore(url).catch((cause: unknown) => cause)
    t.match(error, { kind: 'store_unavailable', message: /sqlite:\.\/data\/sluice\.db/ })
    t.notMatch(String(error), 'hunter2', 'the error contains no password')
  }
  await t.rejects(openStore('lmdb:./data'), { message: /'lmdb:' is no longer supported/ })
})

async function filled(t: Test, path: string) {
  const store = await openSqlite(path)
  t.teardown(() => store.close())
  const account = anAccount()
  const key = aKey(account.id)
  await putAccount(store, account)
  await putKey(store, key, 5)
  return { store, key }
}

/** Replaces the text of a record; `name` is the digest of a key or the id of an account. */
function behind(
  path: string,
  table: 'keys' | 'accounts',
  { name, text }: { name: string; text: string },
): void {
  const db = connect(path)
  try {
    const column = table === 'keys' ? 'digest' : 'id'
    db.prepare(`UPDATE ${table} SET record = ? WHERE ${column} = ?`).run(text, name)
  } finally {
    db.close()
  }
}

function failureOf(action: () => unknown): GatewayError {
  try {
    action()
  } catch (error) {
    if (error instanceof GatewayError && error.kind === 'store_unavailable') return error
    throw error
  }
  throw new Error('nothing failed')
}

async function create(store: Store, accountId: string, count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, () => putKey(store, aKey(accountId), null)))
}

/** The changes that a new subscriber receives at its next poll; the work is one transaction. */
async function changesDuring(store: Store, work: () => Promise<void>): Promise<KeyChange[]> {
  const changes: KeyChange[] = []
  // The timer of the store does not keep the process running.
  const awake = setInterval(() => undefined, 1_000)
  const first = new Promise<void>((resolve) => {
    const stop = store.subscribe((change) => {
      changes.push(change)
      setImmediate(() => {
        stop()
        resolve()
      })
    })
  })
  await work()
  await first
  clearInterval(awake)
  return changes
}
