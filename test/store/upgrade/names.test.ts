/**
 * Goal: accounts of an earlier version get names, users and unique names of keys by the documented rule, in
 * both engines, also if processes are killed at any moment of it; a second start changes nothing.
 * Method: stores with records of the earlier version; other processes open them and are killed (SIGKILL)
 * after some statements and writes (all with SLUICE_LONG=1), and in Redis at random moments.
 */
import { endKey, putAccount, putKey } from '../../helpers/store-changes.js'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { openStore } from '../../../src/store/open-store.js'
import { connect } from '../../../src/store/sqlite/driver.js'
import type { Store } from '../../../src/store/store.js'
import { allAccounts, allKeys } from '../../helpers/lists.js'
import { dice } from '../../helpers/seeded-random.js'
import { redisMissing, startRedis, type RedisServer } from '../../helpers/redis.js'
import { aKey, anAccount } from '../contract/sample-records.js'
import { dumpRedis, restoreRedis, restoreSqlite } from './dump.js'
import { recordingOf } from './scene.js'
import { anotherDay, IS_LONG } from '../../helpers/long-suite.js'
import { testProgram } from '../../helpers/test-program.js'

const KILLED = testProgram('store/upgrade/killed-migration')
/** Points of the migration at which a process is killed, unless it is at all. */
const SOME = 4
const TIMEOUT_MS = IS_LONG ? 500_000 : 120_000
const PROCESS = testProgram('store/processes/store-process')
/** Stores do not look into it. */
const HASH = '$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA'
/** The addresses, in order of creation, with the names that the rule gives. */
const NAMED = [
  ['Ada.Lovelace@example.com', 'ada-lovelace'],
  ['ada_lovelace@example.org', 'ada-lovelace-2'],
  ['--@example.com', 'account'],
  ['ADA+lovelace@example.net', 'ada-lovelace-3'],
  ['ü@example.com', 'account-2'],
  [`${'x'.repeat(60)}@example.com`, 'x'.repeat(55)],
  [`${'y'.repeat(54)}.z@example.com`, 'y'.repeat(54)],
  ['grace@example.com', 'grace'],
] as const

t.setTimeout(2 * TIMEOUT_MS)

/** Makes the accounts with keys; resolves with their ids in order. */
async function fill(store: Store): Promise<string[]> {
  const ids: string[] = []
  for (const [at, [email]] of NAMED.entries()) {
    const account = anAccount({ email, name: `new-${at}` })
    ids.push(account.id)
    await putAccount(store, account)
    for (const name of ['one', 'two', 'three', 'four', 'five']) {
      await putKey(store, aKey(account.id, { name }), null)
    }
    const [first] = await allKeys(store, account.id)
    if (first !== undefined) await endKey(store, first, 5)
  }
  return ids
}

/** The record of the earlier version. */
function former(id: string, at: number, liveKeys: number): string {
  const [email = ''] = NAMED[at] ?? []
  const role = at === 0 ? 'admin' : 'owner'
  const own = { id, email, plan: 'pro', role, passwordHash: HASH, disabled: false }
  return JSON.stringify({ v: 1, ...own, createdAtMs: 1_700_000_000_000, order: at + 1, liveKeys })
}

/** All keys get one name, as the earlier version allowed. */
function formerKey(text: string): string {
  return text.replace(/"name":"\w+"/, '"name":"ci"')
}

async function check(t: Test, store: Store, ids: readonly string[]): Promise<void> {
  const accounts = await allAccounts(store)
  t.same(
    accounts.map(({ id, name }) => [id, name]),
    NAMED.map(([, name], at) => [ids[at], name]),
  )
  for (const [at, account] of accounts.entries()) {
    const [email = ''] = NAMED[at] ?? []
    t.same(await store.accountByName(account.name), account)
    const user = await store.users.byEmail(email)
    const role = at === 0 ? 'admin' : null
    t.match(user, { id: account.id, role, passwordHash: HASH, disabled: false })
    const [member, ...others] = await store.membersOf(account.id)
    t.match([member, others.length], [{ role: 'owner', email: email.toLowerCase() }, 0])
    t.match(await store.users.memberships(account.id), [{ accountId: account.id }])
    const keys = await allKeys(store, account.id)
    t.same(
      keys.map(({ name }) => name),
      ['ci', 'ci (4)', 'ci (3)', 'ci (2)', 'ci'],
      'the newest live key keeps the name, the revoked one has its own',
    )
    t.equal(await store.countKeys(account.id), 4)
    for (const key of keys) {
      t.same((await store.findKey(key.digest))?.key, key)
      if (key.revokedAtMs === undefined) t.same(await store.keyByName(account.id, key.name), key)
    }
  }
  t.equal((await store.users.list({ after: null, limit: 100 })).items.length, NAMED.length)
}

/** Makes a store of the earlier version with the accounts; resolves with their ids in order. */
async function formerSqlite(t: Test, path: string): Promise<string[]> {
  const source = join(t.testdir(), 'source')
  const store = await openStore(`sqlite:${source}`)
  const ids = await fill(store)
  await store.close()
  const current = connect(source)
  const keys = current.prepare('SELECT digest, id, account_id, record FROM keys ORDER BY place').all()
  current.close()
  restoreSqlite(path, readFileSync(recordingOf('v0.1.0', 'sqlite').dump, 'utf8'))
  const db = connect(path)
  db.exec('DELETE FROM keys; DELETE FROM accounts')
  const addAccount = db.prepare('INSERT INTO accounts (id, email, record) VALUES (?, ?, ?)')
  for (const [at, id] of ids.entries()) {
    addAccount.run(id, (NAMED[at]?.[0] ?? '').toLowerCase(), former(id, at, 4))
  }
  const addKey = db.prepare('INSERT INTO keys (digest, id, account_id, record) VALUES (?, ?, ?, ?)')
  for (const { digest = '', id = '', account_id = '', record } of keys) {
    addKey.run(digest, id, account_id, formerKey(String(record)))
  }
  db.close()
  return ids
}

/** The same in Redis. */
async function formerRedis(redis: RedisServer, url: string): Promise<string[]> {
  const store = await openStore(url)
  const ids = await fill(store)
  await store.close()
  const lost = ((await redis.ask('keys', 'sluice:{accounts}:*')) as string[]).filter(
    (key) => !/:(?:order|last)$/.test(key),
  )
  const users = (await redis.ask('keys', 'sluice:{acc_*}:*')) as string[]
  const added = users.filter((key) => /:(?:user|accounts|members|names)$/.test(key))
  await redis.ask('del', ...lost, ...added, 'sluice:{users}:emails')
  for (const [at, id] of ids.entries()) {
    const hash = `sluice:{${id}}:account`
    await redis.ask('hset', hash, 'account', former(id, at, 0))
    await redis.ask('set', `sluice:email:${(NAMED[at]?.[0] ?? '').toLowerCase()}`, id)
    const fields = (await redis.ask('hkeys', hash)) as string[]
    for (const field of fields.filter((each) => each.startsWith('key:'))) {
      const text = String(await redis.ask('hget', hash, field))
      await redis.ask('hset', hash, field, formerKey(text))
    }
  }
  return ids
}

/** Opens the store in another process, which kills itself after these steps; its steps, if it does not. */
async function killedAfter(url: string, steps: number | null): Promise<number | null> {
  const args = steps === null ? [url] : [url, String(steps)]
  const child = fork(KILLED, args, { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  let out = ''
  child.stdout?.on('data', (bytes: Buffer) => (out += bytes.toString()))
  const [, signal] = (await once(child, 'close')) as [number | null, string | null]
  return signal === 'SIGKILL' ? null : Number(out)
}

/** All numbers of steps before the last, or some of them. */
function pointsIn(steps: number): number[] {
  const all = Array.from({ length: steps }, (_, at) => at)
  if (IS_LONG) return all
  return all.filter((at) => at === steps - 1 || at % Math.ceil(steps / SOME) === 0)
}

void t.test(
  'sqlite, killed at every statement',
  { skip: anotherDay(0, 3), timeout: TIMEOUT_MS },
  async (t) => {
    const base = join(t.testdir(), 'former', 'store')
    const ids = await formerSqlite(t, base)
    const copy = (name: string): string => {
      const path = join(dirname(base), name)
      copyFileSync(base, path)
      return path
    }
    const steps = (await killedAfter(`sqlite:${copy('whole')}`, null)) ?? 0
    t.ok(steps > 100, `${steps} statements`)
    for (const at of pointsIn(steps)) {
      const path = copy(`killed-${at}`)
      t.equal(await killedAfter(`sqlite:${path}`, at), null, `killed after ${at} statements`)
      const db = connect(path)
      t.same(db.prepare('PRAGMA integrity_check').get(), { integrity_check: 'ok' })
      const { user_version: version } = db.prepare('PRAGMA user_version').get() ?? {}
      t.equal(version, at === steps - 1 ? 10 : 6, 'all of it, or nothing')
      db.close()
      const again = await openStore(`sqlite:${path}`)
      await check(t, again, ids)
      await again.close()
    }
  },
)

void t.test(
  'redis, killed after every write',
  { skip: redisMissing() || anotherDay(1, 3), timeout: TIMEOUT_MS },
  async (t) => {
    const redis = await startRedis(t)
    const url = `${redis.url()}?timeout_ms=5000`
    const ids = await formerRedis(redis, url)
    const dump = await dumpRedis(redis)
    const restore = async (): Promise<void> => {
      await redis.ask('flushall')
      await restoreRedis(redis, dump)
    }
    const steps = (await killedAfter(url, null)) ?? 0
    t.ok(steps > 30, `${steps} writes`)
    for (const at of pointsIn(steps)) {
      await restore()
      t.equal(await killedAfter(url, at), null, `killed after ${at} writes`)
      const again = await openStore(url)
      await check(t, again, ids)
      await again.close()
    }
  },
)

void t.test(
  'redis, with processes that are killed',
  { skip: redisMissing() || anotherDay(2, 3), timeout: 120_000 },
  async (t) => {
    const redis = await startRedis(t)
    const url = `${redis.url()}?timeout_ms=5000`
    const ids = await formerRedis(redis, url)
    const random = dice(7)
    let killed = 0
    for (let round = 0; round < 4; round += 1) {
      const child = fork(PROCESS, [url], { stdio: 'ignore' })
      const ended = once(child, 'exit')
      // The connection of the child is seen before it changes anything.
      while (String(await redis.ask('client', 'list')).split('\n').length < 3) {
        if (child.exitCode !== null) break
        await delay(2)
      }
      await delay(random() * 60)
      if (child.kill('SIGKILL')) killed += 1
      await ended
    }
    t.equal(killed, 4)
    const opened = await openStore(url)
    t.teardown(() => opened.close())
    await check(t, opened, ids)
    const before = await redis.ask('hgetall', 'sluice:{accounts}:ids')
    await (await openStore(url)).close()
    t.same(await redis.ask('hgetall', 'sluice:{accounts}:ids'), before, 'a second start changes nothing')
    await redis.ask('hset', `sluice:{${ids[0] ?? ''}}:account`, 'account', '{"v":9}')
    await redis.ask('del', 'sluice:{accounts}:named')
    await (await openStore(url)).close()
    t.pass('a damaged record does not keep the store from opening')
  },
)
