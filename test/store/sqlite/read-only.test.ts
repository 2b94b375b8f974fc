/**
 * Goal: a store that was read-only at the start is written without a restart once it is writable again.
 * Method: a file, or its folder, with modes that refuse writes while the store opens, for a user other than
 * root; both threads write afterwards.
 */
import { putAccount } from '../../helpers/store-changes.js'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, existsSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { openStore } from '../../../src/store/open-store.js'
import type { User } from '../../../src/accounts/account.js'
import type { Store } from '../../../src/store/store.js'
import { anAccount, aUser } from '../contract/sample-records.js'
import { until } from '../../helpers/redis.js'
import { testProgram } from '../../helpers/test-program.js'
import { aRow } from '../ledger/sample-entries.js'
import { ofToday } from '../../helpers/long-suite.js'

const isRoot = process.geteuid?.() === 0
/** Any user id but root's, whom modes do not concern. */
const OTHER = 65_534

const OPENS = `
  import { chmodSync, existsSync } from 'node:fs'
  import { dirname } from 'node:path'
  import { setTimeout as sleep } from 'node:timers/promises'
  import { openStore } from '${testProgram('store/processes/open-store')}'
  const { path, user, modes, row } = JSON.parse(process.env.GIVEN)
  const change = ({ folder, file, log, index }) => {
    chmodSync(path, file)
    for (const [name, mode] of [['-wal', log], ['-shm', index]])
      if (existsSync(path + name)) chmodSync(path + name, mode)
    chmodSync(dirname(path), folder)
  }
  if (modes !== undefined) change(modes)
  const store = await openStore('sqlite:' + path)
  const write = () => store.users.change(user.id, { signedInAtMs: 7 })
  const signedInAtMs = async () => (await store.users.byId(user.id)).signedInAtMs
  const print = (text) => process.stdout.write(text + '\\n')
`

/** Writes a user and closes the file. */
const CLOSED = `${OPENS}
  await store.users.create(user)
  await store.close()`

/** The same without closing the file. */
const KILLED = CLOSED.replace('await store.close()', "process.kill(process.pid, 'SIGKILL')")

/** Makes the files writable after writes were refused, and writes again. */
const BECOMES_WRITABLE = `${OPENS}
  const sums = () => store.ledger.sums({ accountId: user.id, by: 'day', fromMs: 0, toMs: Date.now() })
  print('sums: ' + JSON.stringify(await sums()))
  for (const waitMs of [1100, 0]) {
    await write().catch((error) => print('write: ' + error.message))
    await sleep(waitMs)
  }
  print('user: ' + (await signedInAtMs()))
  change({ folder: 0o700, file: 0o600, log: 0o600, index: 0o600 })
  for (let tries = 0; tries < 1000 && (await signedInAtMs().catch(() => null)) !== 7; tries += 1) {
    await write().catch(() => undefined)
    await sleep(20)
  }
  print('written: ' + (await signedInAtMs()))
  await store.ledger.settle(row)
  print('requests: ' + (await sums())[0].requests)
  await store.close()`

/** Reads a change of another user, whom it cannot follow. */
const SEES_CHANGE = `${OPENS}
  print(String(await signedInAtMs()))
  for (let tries = 0; tries < 1000 && (await signedInAtMs().catch(() => null)) !== 9; tries += 1) {
    await write().catch(() => undefined)
    await sleep(20)
  }
  print(String(await signedInAtMs()))
  await store.close()`

/** Run by another user, if this one is root. */
function optionsOfOther(path: string, { user, modes }: { user: User; modes?: object }) {
  const row = aRow({ accountId: user.id, atMs: Date.now() })
  const env = { ...process.env, GIVEN: JSON.stringify({ path, user, modes, row }) }
  return isRoot ? { env, uid: OTHER, gid: OTHER } : { env }
}

function asOther(script: string, path: string, given: { user: User; modes?: object }) {
  const options = { ...optionsOfOther(path, given), encoding: 'utf8' as const }
  return spawnSync(process.execPath, ['--input-type=module', '-e', script], options)
}

/** The path of a store in a folder of another user. */
function storeOfOther(t: Test): string {
  const folder = join(t.testdir(), 'data')
  mkdirSync(folder)
  for (let each = dirname(folder); each.includes('.tap'); each = dirname(each)) chmodSync(each, 0o755)
  if (isRoot) chownSync(folder, OTHER, OTHER)
  t.teardown(() => existsSync(folder) && chmodSync(folder, 0o700))
  return join(folder, 'sluice.db')
}

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

/** Modes of the folder, the file, its log and the index of the log; a log is left by a killed process. */
const KINDS = {
  'a folder and all its files': { folder: 0o500, file: 0o400, log: 0o400, index: 0o400 },
  'a folder and its file without a log': { folder: 0o500, file: 0o400 },
  'a folder without a log': { folder: 0o500, file: 0o600 },
  'a file without a log': { folder: 0o700, file: 0o400 },
  'a log': { folder: 0o700, file: 0o600, log: 0o400, index: 0o600 },
  'the index of a log': { folder: 0o700, file: 0o600, log: 0o600, index: 0o400 },
}

for (const [what, modes] of ofToday(Object.entries(KINDS), 3)) {
  void t.test(`${what} that become writable, without another connection`, (t) => {
    const path = storeOfOther(t)
    const user = aUser()
    const hasLog = 'log' in modes
    // A process that is killed leaves the log and its index.
    const made = asOther(hasLog ? KILLED : CLOSED, path, { user })
    t.equal(made.signal, hasLog ? 'SIGKILL' : null, made.stderr)
    t.equal(existsSync(`${path}-wal`), hasLog)
    t.equal(existsSync(`${path}-shm`), hasLog)
    const { stdout, stderr } = asOther(BECOMES_WRITABLE, path, { user, modes })
    t.same(
      stdout.split('\n'),
      [
        'sums: []',
        ...Array.from({ length: 2 }, () => 'write: The key store cannot be written: it is read-only.'),
        'user: undefined',
        'written: 7',
        'requests: 1',
        '',
      ],
      stderr,
    )
    t.end()
  })
}

void t.test('another user changes a file that may only be read', { skip: !isRoot }, async (t) => {
  const path = storeOfOther(t)
  const user = aUser()
  t.equal(asOther(CLOSED, path, { user }).status, 0)
  chownSync(path, 0, 0)
  chownSync(dirname(path), 0, 0)
  for (const each of [dirname(path), path]) chmodSync(each, 0o755)
  const reader = spawn(process.execPath, ['--input-type=module', '-e', SEES_CHANGE], {
    ...optionsOfOther(path, { user }),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let printed = ''
  reader.stdout.on('data', (text) => (printed += String(text)))
  await until(() => Promise.resolve(printed.includes('undefined')), 'the reader')
  const writer = await openStore(`sqlite:${path}`)
  await writer.users.change(user.id, { signedInAtMs: 9 })
  await writer.close()
  // A store makes its file private; its owner may have given the group and others the right to read.
  for (const each of [path, `${path}-wal`, `${path}-shm`]) if (existsSync(each)) chmodSync(each, 0o644)
  await once(reader, 'exit')
  t.equal(printed, 'undefined\n9\n')
})
