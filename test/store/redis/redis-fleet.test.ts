/**
 * Goal: acknowledged changes survive kill -9 of the server, a failover and a move of slots.
 * Method: a server killed under writes (`SLUICE_KILLS` times, 3), a primary killed under three sentinels, and
 * a Cluster of three primaries with a replica each, of which a slot is moved and the primary of one killed.
 */
import { editAccount, endKey, putAccount, putKey } from '../../helpers/store-changes.js'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { ApiKey } from '../../../src/accounts/account.js'
import { openStore } from '../../../src/store/open-store.js'
import type { Demand } from '../../../src/store/ledger.js'
import type { Store } from '../../../src/store/store.js'
import {
  giveUpAfter,
  type RedisServer,
  redisMissing,
  startRedis,
  startRedisCluster,
  startSentinels,
  until,
} from '../../helpers/redis.js'
import { anAdmission, aRow, NOON, places, requests, tokens } from '../ledger/sample-entries.js'
import { aKey, anAccount } from '../contract/sample-records.js'
import { anotherDay } from '../../helpers/long-suite.js'
import { allAccounts, allKeys } from '../../helpers/lists.js'
import { opened } from '../contract/record-changes.js'

const KILLS = Number(process.env['SLUICE_KILLS'] ?? '3')
const missing = redisMissing()
t.setTimeout(300_000 + KILLS * 2_000)
/** A long time limit: a busy machine must not fail the test. */
const PATIENT = '?timeout_ms=9000'

/** Keys that were acknowledged, and those whose revocation was. */
interface Acknowledged {
  readonly keys: ApiKey[]
  readonly revoked: ApiKey[]
  failures: number
}

/**
 * Creates and revokes keys and settles entries until `stop` or the end of the test. Failed changes are not
 * counted.
 */
function writer(t: Test, store: Store, accountId: string) {
  const done: Acknowledged & { rows: string[] } = { keys: [], revoked: [], rows: [], failures: 0 }
  let stopped = false
  t.teardown(() => {
    stopped = true
  })
  const run = async (): Promise<void> => {
    for (let round = 0; !stopped; round += 1) {
      const key = aKey(accountId)
      const row = aRow({ accountId })
      try {
        if ((await putKey(store, key, null)) === 'created') done.keys.push(key)
        if ((await store.ledger.settle(row)) === 'settled') done.rows.push(row.requestId)
        if (round % 2 === 0) {
          await endKey(store, { accountId, id: key.id }, 1)
          done.revoked.push(key)
        }
      } catch {
        done.failures += 1
        await delay(20)
      }
    }
  }
  const running = Promise.all([run(), run(), run(), run()])
  return {
    done,
    async stop(): Promise<void> {
      stopped = true
      await running
    },
  }
}

/** The counts that `nothingLost` compares. */
function enough({ done }: ReturnType<typeof writer>): Promise<void> {
  const { keys, revoked } = done
  return until(() => Promise.resolve(keys.length > 10 && revoked.length > 5), 'writes')
}

/** Checked by a store without cached keys. */
async function nothingLost(t: Test, url: string, done: ReturnType<typeof writer>['done']) {
  const store = await opened(t, url)
  let [lost, valid, unaccounted] = [0, 0, 0]
  for (const { digest } of done.keys) if ((await store.findKey(digest)) === null) lost += 1
  for (const { digest } of done.revoked) {
    if ((await store.findKey(digest))?.key.revokedAtMs === undefined) valid += 1
  }
  for (const id of done.rows) if ((await store.ledger.entry(null, id)) === null) unaccounted += 1
  const { keys, revoked, rows, failures } = done
  const counts = `${keys.length} keys, ${revoked.length} revocations, ${rows.length} rows, ${failures} failures`
  t.ok(keys.length > 10 && revoked.length > 5, counts)
  t.same({ lost, valid, unaccounted }, { lost: 0, valid: 0, unaccounted: 0 })
}

void t.test(
  'kill -9 of the server loses no acknowledged write',
  { skip: missing || anotherDay(0, 3) },
  async (t) => {
    const server = await startRedis(t)
    const store = await opened(t, server.url() + PATIENT)
    const account = anAccount()
    await putAccount(store, account)
    const writing = writer(t, store, account.id)
    for (let kill = 0; kill < KILLS; kill += 1) {
      await delay(50 + ((kill * 37) % 100))
      await server.kill()
      await server.start()
      await until(() => store.probe().then(() => true), 'the store')
    }
    await enough(writing)
    await writing.stop()
    await nothingLost(t, server.url() + PATIENT, writing.done)
  },
)

void t.test(
  'a failover by Sentinel loses nothing',
  { skip: missing || anotherDay(1, 3), timeout: 120_000 },
  async (t) => {
    const { url, primary, giveUp } = await startSentinels(t)
    const store = await opened(t, url + PATIENT)
    const account = anAccount()
    await putAccount(store, account)
    const writing = writer(t, store, account.id)
    await enough(writing)
    const before = writing.done.keys.length
    await giveUp(1_000)
    const killedMs = performance.now()
    await primary.kill()
    await until(() => store.probe().then(() => true), 'the new primary')
    t.ok(before > 0, `back after ${Math.round(performance.now() - killedMs)} ms`)
    await delay(300)
    await writing.stop()
    // The new primary has no replica: only a store that waits for none can write.
    const bare = `${url + PATIENT}&wait_replicas=0`
    const rows = { ...writing.done, rows: [] }
    await nothingLost(t, bare, rows)
  },
)

void t.test(
  'a Cluster moves slots and fails over',
  { skip: missing || anotherDay(2, 3), timeout: 120_000 },
  async (t) => {
    const { url, servers } = await startRedisCluster(t)
    const patient = url + PATIENT
    const store = await opened(t, patient)
    const accounts = [anAccount(), anAccount(), anAccount(), anAccount()]
    for (const account of accounts) t.equal(await putAccount(store, account), 'created')
    t.same(await allAccounts(store), accounts)
    const [ada] = accounts
    if (ada === undefined) throw new Error('no account')
    const outcomes = await Promise.all(Array.from({ length: 40 }, () => putKey(store, aKey(ada.id), 5)))
    t.equal(outcomes.filter((outcome) => outcome === 'created').length, 5, 'the limit is exact')
    const received: (string | null)[] = []
    store.subscribe(({ digest }) => received.push(digest))
    const [first] = await allKeys(store, ada.id)
    const other = await opened(t, patient)
    await endKey(other, { accountId: ada.id, id: first?.id ?? '' }, 1)
    await until(() => Promise.resolve(received.includes(first?.digest ?? '')), 'the notifications')
    await editAccount(store, ada.id, { plan: 'pro' })
    t.equal((await other.findKey(first?.digest ?? ''))?.account.plan, 'pro')
    await ledgerOf(
      t,
      store,
      accounts.map(({ id }) => id),
    )

    await hotAccount(
      t,
      patient,
      accounts.map(({ id }) => id),
    )
    await oneSlot(t, servers, ada.id)

    const writing = writer(t, store, ada.id)
    const slot = Number(await servers[0]?.ask('cluster', 'keyslot', `sluice:{${ada.id}}:account`))
    t.equal(await moveSlot(servers, slot), 'moved')
    await enough(writing)
    await writing.stop()
    t.equal(writing.done.failures, 0, 'no command fails while a slot moves')
    await nothingLost(t, patient, writing.done)

    const after = writer(t, store, ada.id)
    await enough(after)
    await giveUpAfter(servers, 1_500)
    const owner = (await mastersOf(servers)).find((each) => owns(each, slot))
    const killedMs = performance.now()
    await owner?.server.kill()
    await until(async () => (await store.findKey(first?.digest ?? '')) !== null, 'a primary')
    const backMs = Math.round(performance.now() - killedMs)
    // Alone the new primary acknowledges no change of a key; the killed one comes back as its replica.
    await owner?.server.start()
    await giveUpAfter(servers)
    const { length } = after.done.keys
    await until(() => Promise.resolve(after.done.keys.length > length + 10), 'writes again')
    await after.stop()
    // Whether a change fails meanwhile depends on what was in flight; what counts is that no acknowledged one
    // is lost.
    t.comment(`a primary killed: ${after.done.failures} failures, reads again after ${backMs} ms`)
    await nothingLost(t, patient, { ...after.done, rows: [] })
  },
)

/** Checks own and shared limits of concurrent requests, and the entries of several accounts. */
async function ledgerOf(t: Test, { ledger }: Store, accountIds: readonly string[]): Promise<void> {
  const own: Demand[] = [requests(30), tokens(10_000, 100)]
  const demands = [
    ...own,
    places(20, 'model:m'),
    requests(25, { subject: 'upstream:u', shared: true }),
    { kind: 'concurrent', subject: 'model:m', shared: true, limit: 20 } as const,
  ]
  const admissions = Array.from({ length: 60 }, (_, at) =>
    anAdmission(demands, { accountId: accountIds[at % 2] ?? '' }),
  )
  const results = await Promise.all(admissions.map((each) => ledger.admit(each)))
  const admitted = admissions.filter((_, at) => results[at]?.admitted)
  t.ok(admitted.length <= 20, `${admitted.length} of 20 at once, over two accounts`)
  const again = await ledger.admit(admitted[0] ?? anAdmission(demands))
  t.ok(again.admitted, 'the same request again is admitted and takes nothing')
  await ledger.renew(admitted, 60_000)
  const rows = admitted.map(({ requestId, accountId }) => aRow({ requestId, accountId }))
  for (const row of rows) t.equal(await ledger.settle(row), 'settled')
  const [, used, , , free] = await ledger.limitStates(accountIds[0] ?? '', demands)
  t.equal(free?.remaining, 20, 'shared slots are free again')
  t.ok((used?.remaining ?? 0) < 10_000, 'the tokens used are charged')
  const more = [tokens(10_000, 100), { ...tokens(500, 300, 'model:m'), shared: true }]
  const left = async (): Promise<number[]> =>
    (await ledger.limitStates(accountIds[1] ?? '', more)).map(({ remaining }) => remaining)
  const [before = 0] = await left()
  const raise = await ledger.raise(accountIds[0] ?? '', more)
  t.equal(await ledger.raise(accountIds[1] ?? '', more), null, 'the other slot has no room')
  t.ok(((await left())[0] ?? 0) >= before, 'nothing is taken in its own slot')
  if (raise !== null) await ledger.lower(accountIds[0] ?? '', raise)
  t.equal((await left())[1], 500, 'the amount is returned in each slot')
  const { entries: found } = await ledger.entries({ accountId: null, after: null, limit: 100 })
  t.same(found.map(({ requestId }) => requestId).sort(), rows.map((row) => row.requestId).sort())
  let exported = 0
  for await (const batch of ledger.export(0)) exported += batch.length
  t.equal(exported, rows.length)
}

/**
 * Four fifths of all requests are of one account, and so of one node: its limit is exact, the others are
 * served.
 */
async function hotAccount(t: Test, url: string, accountIds: readonly string[]): Promise<void> {
  const store = await openStore(url, { nowMs: () => NOON })
  t.teardown(() => store.close())
  const [hot = ''] = accountIds
  const limit = [requests(100, { subject: 'key:hot' })]
  const admissions = Array.from({ length: 400 }, (_, at) => {
    const accountId = at % 5 === 0 ? (accountIds[1 + ((at / 5) % 3)] ?? '') : hot
    return anAdmission(limit, { accountId })
  })
  const results = await Promise.all(admissions.map((each) => store.ledger.admit(each)))
  const admitted = admissions.filter((_, at) => results[at]?.admitted)
  const ofHot = admitted.filter(({ accountId }) => accountId === hot).length
  t.equal(ofHot, 100, '100 of 320 concurrent requests')
  t.equal(admitted.length - ofHot, 80, 'all requests of the other accounts')
  const settled = await Promise.all(
    admitted.map(({ requestId, accountId }) => store.ledger.settle(aRow({ requestId, accountId }))),
  )
  t.same(new Set(settled), new Set(['settled']))
}

/** Checks that all keys of an account are in one slot. */
async function oneSlot(t: Test, servers: readonly RedisServer[], accountId: string): Promise<void> {
  const places = new Set<string>()
  let count = 0
  for (const { id, server } of await mastersOf(servers)) {
    const names = await server.ask('keys', `*${accountId}*`)
    for (const name of Array.isArray(names) ? names.map(String) : []) {
      places.add(`${id} ${String(await server.ask('cluster', 'keyslot', name))}`)
      count += 1
    }
  }
  t.ok(count > 8, `${count} names of an account`)
  t.equal(places.size, 1, 'in one slot')
}

/** Moves a slot with all its keys from its node to another, while it is in use. */
async function moveSlot(servers: readonly RedisServer[], slot: number): Promise<string> {
  const masters = await mastersOf(servers)
  const from = masters.find((each) => owns(each, slot))
  const to = masters.find((each) => each !== from)
  if (from === undefined || to === undefined) return 'no nodes'
  await to.server.ask('cluster', 'setslot', slot, 'importing', from.id)
  await from.server.ask('cluster', 'setslot', slot, 'migrating', to.id)
  for (;;) {
    const keys = await from.server.ask('cluster', 'getkeysinslot', slot, 100)
    if (!Array.isArray(keys) || keys.length === 0) break
    const names = keys.map(String)
    const args = ['127.0.0.1', to.server.port, '', 0, 5_000, 'KEYS', ...names]
    await from.server.ask('migrate', ...args)
  }
  await to.server.ask('cluster', 'setslot', slot, 'node', to.id)
  for (const { server } of masters) await server.ask('cluster', 'setslot', slot, 'node', to.id)
  return 'moved'
}

interface Master {
  readonly id: string
  readonly server: RedisServer
  /** Of slots. */
  readonly ranges: readonly string[]
}

/** The primaries of the Cluster, as its first node lists them. */
async function mastersOf(servers: readonly RedisServer[]): Promise<Master[]> {
  const nodes = String(await servers[0]?.ask('cluster', 'nodes')).split('\n')
  return nodes.flatMap((line) => {
    const [id = '', address = '', flags = '', , , , , , ...ranges] = line.split(' ')
    const port = Number(/:(\d+)@/.exec(address)?.[1])
    const server = servers.find((each) => each.port === port)
    // A node lists a new replica as a master at first.
    const isMaster = flags.includes('master') && ranges.length > 0
    return isMaster && server !== undefined ? [{ id, server, ranges }] : []
  })
}

function owns({ ranges }: Master, slot: number): boolean {
  return ranges.some((range) => {
    const [from, to = from] = range.split('-').map(Number)
    return from !== undefined && to !== undefined && slot >= from && slot <= to
  })
}
