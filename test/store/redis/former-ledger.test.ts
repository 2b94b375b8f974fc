/**
 * Goal: what gateways of a former version wrote into Redis is read at once, and moved into the form of this
 * version by pruning: each entry and each sum counts once before, between and after, also if a former gateway
 * goes on writing.
 * Method: the keys of the former version are written as its script did; then the ledger of this version.
 */
import { Cluster, Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { newRequestId } from '../../../src/http/request-id.js'
import type { LedgerEntry } from '../../../src/ledger/entry.js'
import { openStore } from '../../../src/store/open-store.js'
import { countersOf } from '../../../src/store/records/count-usage.js'
import { writeEntry } from '../../../src/store/records/entry-text.js'
import { freshDatabases, redisMissing, startRedisCluster, startRedis } from '../../helpers/redis.js'
import { aRow, DAY, HOUR, NOON } from '../ledger/sample-entries.js'

const ACCOUNT = 'acc_ada'
const OWN = `sluice:{${ACCOUNT}}`
const missing = redisMissing()
const newUrl = missing === false ? freshDatabases(await startRedis(t)) : () => ''

/** Writes an entry as a gateway of the former version did. */
async function settleFormer(client: Redis | Cluster, entry: LedgerEntry): Promise<void> {
  const isCluster = client instanceof Cluster
  const { requestId, keyId, model, atMs } = entry
  const name = `${atMs.toString(36).padStart(9, '0')}${requestId}`
  const place = await client.xadd(`${OWN}:rows`, '*', 'row', writeEntry(entry))
  await client.hset(isCluster ? `${OWN}:ids` : 'sluice:ledger:ids', requestId, `${place ?? ''} ${ACCOUNT}`)
  await client.zadd(`${OWN}:order`, 0, name)
  if (!isCluster) await client.zadd('sluice:ledger:order', 0, `${name}\0${ACCOUNT}`)
  await client.sadd('sluice:ledger:accounts', ACCOUNT)
  await client.hset(`${OWN}:used`, keyId, atMs)
  for (const [by, length] of [
    ['hour', HOUR],
    ['day', DAY],
  ] as const) {
    const start = Math.floor(atMs / length) * length
    await client.zadd(`${OWN}:${by}s`, start, start)
    for (const [counter, count] of countersOf(entry).entries()) {
      if (count > 0)
        await client.hincrby(`${OWN}:${by}:${start}`, `${keyId}\0${model}\0${counter}`, String(count))
    }
  }
}

/** A store in a database of its own, or in a Cluster, with a client. */
async function scene(t: Test, isCluster = false) {
  const { url, client } = isCluster ? await cluster(t) : single()
  const store = await openStore(url, { nowMs: () => NOON })
  t.teardown(async () => {
    client.disconnect()
    await store.close()
  })
  return { client, ledger: store.ledger }
}

function single() {
  const url = newUrl()
  return { url, client: new Redis(url) }
}

async function cluster(t: Test) {
  const { url, servers } = await startRedisCluster(t)
  const nodes = servers.map((server) => ({ host: '127.0.0.1', port: Number(new URL(server.url()).port) }))
  return { url, client: new Cluster(nodes) }
}

/** The names of all keys. */
async function keysOf(client: Redis | Cluster): Promise<string[]> {
  const nodes = client instanceof Cluster ? client.nodes('master') : [client]
  return (await Promise.all(nodes.map((node) => node.keys('*')))).flat()
}

/** The time in the id and that of the entry differed by a rounding. */
function formerEntries(count: number): LedgerEntry[] {
  return Array.from({ length: count }, (_, at) => {
    const atMs = NOON - DAY + at * 60_000
    const requestId = at % 10 === 9 ? `req_${at}` : newRequestId(atMs - (at % 2))
    const labels = at % 3 === 0 ? 'team=web' : null
    return aRow({ requestId, atMs, costNanoUsd: 1_000 + at, labels, keyId: at % 2 ? 'key_one' : 'key_two' })
  })
}

for (const isCluster of [false, true]) {
  const where = isCluster ? ' in a Cluster' : ''
  void t.test(`entries and sums of a former version${where}`, { skip: missing }, (t) => moved(t, isCluster))
}

async function moved(t: Test, isCluster: boolean): Promise<void> {
  const { client, ledger } = await scene(t, isCluster)
  const entries = formerEntries(130)
  for (const entry of entries) await settleFormer(client, entry)
  const own = aRow({ requestId: newRequestId(NOON), costNanoUsd: 7, labels: 'team=web' })
  t.equal(await ledger.settle(own), 'settled')
  const [first = own] = entries
  t.equal(await ledger.settle({ ...first, costNanoUsd: 9 }), 'already', 'an entry counts once')

  const all = [...entries, own]
  const cost = all.reduce((sum, { costNanoUsd }) => sum + (costNanoUsd ?? 0), 0)
  const check = async (when: string) => {
    for (const accountId of [ACCOUNT, null]) {
      const { entries: listed } = await ledger.entries({ accountId, after: null, limit: 1_000 })
      t.same(listed, all.toReversed(), `${when}: lists every field, newest first`)
    }
    const exported: LedgerEntry[] = []
    for await (const batch of ledger.export(0)) exported.push(...batch)
    t.same(exported, all, `${when}: exports each`)
    for (const { requestId } of [first, own, entries[9] ?? own]) {
      t.equal((await ledger.entry(null, requestId))?.requestId, requestId, `${when}: finds it`)
    }
    const range = { accountId: ACCOUNT, fromMs: 0, toMs: NOON }
    for (const by of ['hour', 'day'] as const) {
      const sums = await ledger.sums({ ...range, by })
      t.equal(
        sums.reduce((sum, each) => sum + Number(each.costNanoUsd), 0),
        cost,
        `${when}: sums of each ${by}`,
      )
      t.equal(
        sums.reduce((sum, each) => sum + each.requests, 0),
        all.length,
      )
    }
    const ofLabel = await ledger.sums({ ...range, by: 'day', property: 'label=team=web' })
    t.equal(
      ofLabel.reduce((sum, each) => sum + each.requests, 0),
      45,
      `${when}: sums by label`,
    )
    const groups = await ledger.groupUse({ accountId: null, by: 'label', fromMs: 0, toMs: NOON + DAY })
    t.same(
      groups.map(({ requests }) => requests),
      [45],
    )
    const keys = await ledger.keyUse({ accountId: ACCOUNT, fromMs: 0, toMs: NOON })
    t.equal(
      keys.reduce((sum, each) => sum + Number(each.costNanoUsd), 0),
      cost,
    )
    const uses = await ledger.accountUse({ fromMs: 0, toMs: NOON + DAY })
    t.equal(
      uses.reduce((sum, each) => sum + Number(each.costNanoUsd), 0),
      cost,
      `${when}: the use of accounts`,
    )
  }
  await check('before')
  const later = Date.now
  t.teardown(() => (Date.now = later))
  // An hour later: until then, a former gateway may look up what it settled.
  Date.now = () => later() + 2 * HOUR
  const keep = { entriesBeforeMs: 0, hoursBeforeMs: 0, daysBeforeMs: 0 }
  await Promise.all([ledger.prune(keep), ledger.prune(keep)])
  await check('after')
  const left = (await keysOf(client)).filter((key) => /:rows|:order$/.test(key))
  t.same(left, [], 'nothing of the former version is left')
  for (const entry of entries) t.equal(await ledger.settle(entry), 'already')

  const late = { ...first, requestId: newRequestId(first.atMs), costNanoUsd: 3 }
  await settleFormer(client, late)
  t.equal(
    (await ledger.entry(ACCOUNT, late.requestId))?.costNanoUsd,
    3,
    'one that a former gateway writes later',
  )
  await ledger.prune(keep)
  const [day] = await ledger.sums({
    accountId: ACCOUNT,
    by: 'day',
    fromMs: first.atMs,
    toMs: first.atMs,
    keyId: first.keyId,
  })
  t.ok(day)
  t.equal(await ledger.prune({ ...keep, entriesBeforeMs: NOON }), 131, 'prunes what was moved')
  const uses = await ledger.accountUse({ fromMs: 0, toMs: NOON + DAY })
  t.equal(
    uses.reduce((sum, each) => sum + Number(each.costNanoUsd), 0),
    cost + 3,
    'the month stays complete',
  )
}
