/**
 * Goal: in an outage of the store, a key that any worker of the gateway has used is served by all of them,
 * also after a rolling restart and a restart of the gateway; a revoked key is refused, also if it was revoked
 * while the gateway did not run. Nothing on disk shows the keys. Refusals of valid keys get their entries.
 * Method: the real program with two workers, or four with SLUICE_LONG=1; Redis is killed, the file of the
 * embedded store is moved away.
 */
import { readdirSync, readFileSync, renameSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { digestOf } from '../../src/accounts/key-secret.js'
import { revokeKey } from '../helpers/keys.js'
import { openStore } from '../../src/store/open-store.js'
import { freePort } from '../helpers/free-port.js'
import { redisMissing, startRedis } from '../helpers/redis.js'
import {
  EMAIL,
  get,
  hasAllWorkers,
  makeKey,
  startServe,
  until,
  type Program,
  type Served,
} from '../process/program.js'
import { anotherDay, IS_LONG } from '../helpers/long-suite.js'

const WORKERS = IS_LONG ? 4 : 2
const KEYS = 8
/** Of each key in the outage: enough to reach every worker. */
const REQUESTS = 12
/** Within this time, every process receives a change (`Store.subscribe`). */
const CHANGE_MS = 1_000

t.setTimeout(400_000)

/** A store that can go away and come back. */
interface Outage {
  readonly url: string
  begin(): Promise<unknown>
  end(): Promise<unknown>
}

async function redisOutage(t: Test): Promise<Outage> {
  const redis = await startRedis(t)
  return { url: redis.url(), begin: () => redis.kill(), end: () => redis.start() }
}

/** The folder of the store is known when the gateway has started. */
function fileOutage(url: string): Outage {
  const path = url.slice('sqlite:'.length)
  const move = (from: string, to: string): Promise<void> => {
    renameSync(from, to)
    // The engine looks four times a second.
    return new Promise((resolve) => setTimeout(resolve, 600))
  }
  return { url, begin: () => move(path, `${path}.away`), end: () => move(`${path}.away`, path) }
}

const missing = redisMissing()

for (const [name, skip] of [
  ['SQLite', anotherDay(1, 4)],
  ['Redis', anotherDay(3, 4) || missing],
] as const) {
  void t.test(name, { timeout: 180_000, ...(skip === false ? {} : { skip }) }, async (t) => {
    const redis = name === 'Redis' ? await redisOutage(t) : null
    const [port, opsPort] = [await freePort(), await freePort()]
    const settings = { server: `workers: ${WORKERS}, drain_ms: 500`, port, opsPort }
    const served = await startServe(t, {
      ...settings,
      ...(redis === null ? {} : { store: redis.url }),
    })
    const outage = redis ?? fileOutage(`sqlite:${join(dirname(served.file), 'data', 'sluice.db')}`)
    const keys: string[] = []
    while (keys.length < KEYS) keys.push(await makeKey(outage.url))
    const [revoked = '', revokedLater = '', ...used] = keys
    const unused = await makeKey(outage.url)
    // A worker that receives the creation of a key after its first use drops it from the shared file.
    await sleep(CHANGE_MS)
    for (const key of keys) t.equal(await status(served, key), 200)
    await revoke(outage.url, revoked)
    // The system chooses the worker of a connection: the one that receives the change last may serve late.
    let refusals = 0
    await until(
      async () => {
        const all = Array.from({ length: 4 }, () => status(served, revoked))
        refusals = (await Promise.all(all)).includes(200) ? 0 : refusals + 1
        return refusals === 5
      },
      20_000,
      200,
    )
    await outage.begin()
    await allServed(t, served, used)
    await neverServed(t, served, revoked)
    t.equal(await status(served, unused), 503, 'no client has used it')
    await outage.end()
    await until(async () => (await status(served, unused)) === 200, 30_000, 100)

    await hasEntry(t, outage.url, unused)

    await t.test('after a rolling restart', async (t) => {
      served.program.child.kill('SIGUSR2')
      await until(() => served.program.out().includes('rolling restart done'), 120_000)
      await outage.begin()
      await allServed(t, served, used)
      await neverServed(t, served, revoked)
      await outage.end()
      await until(async () => (await status(served, unused)) === 200, 30_000, 100)
    })

    await t.test('after a restart of the gateway', async (t) => {
      served.program.child.kill('SIGTERM')
      await served.program.ended
      await revoke(outage.url, revokedLater)
      const program = served.again()
      await ready(program, opsPort)
      await outage.begin()
      await allServed(t, served, used)
      await neverServed(t, served, revoked)
      await neverServed(t, served, revokedLater)
      await outage.end()
    })

    const folder = join(dirname(served.file), name === 'Redis' ? 'spool' : 'data/spool')
    const texts = readdirSync(folder)
      .filter((file) => file.startsWith('known-keys'))
      .map((file) => readFileSync(join(folder, file), 'latin1'))
    t.ok(texts.length > 0, 'the keys are on the disk')
    const shown = [EMAIL, 'gpt-', ...keys, ...keys.map(digestOf)]
    t.notOk(
      texts.some((text) => shown.some((part) => text.includes(part))),
      'sealed',
    )
  })
}

async function ready(program: Program, opsPort: number): Promise<void> {
  await until(() => program.out().includes('"sluice serves"'))
  await until(async () => hasAllWorkers(await get(`http://127.0.0.1:${opsPort}/readyz`)))
}

async function status(served: Served, secret: string): Promise<number> {
  const reply = await served.chat({}, secret)
  await reply.arrayBuffer()
  return reply.status
}

async function allServed(t: Test, served: Served, keys: readonly string[]): Promise<void> {
  const counts = new Map<number, number>()
  for (let count = 0; count < REQUESTS; count += 1) {
    for (const each of await Promise.all(keys.map((key) => status(served, key))))
      counts.set(each, (counts.get(each) ?? 0) + 1)
  }
  t.same([...counts], [[200, keys.length * REQUESTS]], 'every worker serves every key')
}

async function neverServed(t: Test, served: Served, secret: string): Promise<void> {
  const statuses = await Promise.all(Array.from({ length: REQUESTS }, () => status(served, secret)))
  t.notOk(statuses.includes(200), `a revoked key is refused: ${[...new Set(statuses)].join(' ')}`)
}

async function revoke(url: string, secret: string): Promise<void> {
  const store = await openStore(url)
  const found = await store.findKey(digestOf(secret))
  if (found === null) throw new Error('there is no such key')
  await revokeKey(store, found.key)
  await store.close()
}

/** The entry of the refused request arrives when the store is back. */
async function hasEntry(t: Test, url: string, secret: string): Promise<void> {
  const store = await openStore(url)
  const found = await store.findKey(digestOf(secret))
  const query = { accountId: null, status: 503, after: null, limit: 1_000 }
  const isThere = async (): Promise<boolean> => {
    const { entries } = await store.ledger.entries(query)
    return entries.some(({ keyId, outcome }) => keyId === found?.key.id && outcome === 'store_unavailable')
  }
  await until(isThere, 60_000, 500)
  await store.close()
  t.pass('the refusal has an entry with its status')
}
