/**
 * Goal: the oldest entries leave before entries have used up their part of Redis's memory; their sums and the
 * use of accounts stay. A server that is full already takes entries again.
 * Method: a real server with a limit, and entries of real form of one day.
 */
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { openStore } from '../../../src/store/open-store.js'
import { anotherDay } from '../../helpers/long-suite.js'
import { redisMissing, startRedis } from '../../helpers/redis.js'
import { aRow, DAY } from '../ledger/sample-entries.js'
import { realEntries } from '../size/real-entries.js'

const missing = redisMissing()
const COUNT = 6_000
const START = Math.floor(Date.now() / DAY) * DAY - DAY
const MAX = 1_500_000

async function scene(t: Test) {
  const server = await startRedis(t)
  const url = `${server.url()}?timeout_ms=2000`
  const [store, client] = [await openStore(url), new Redis(server.url())]
  t.teardown(async () => {
    client.disconnect()
    await store.close()
  })
  const { ledger } = store
  const entries = realEntries(COUNT, START)
  for (let at = 0; at < COUNT; at += 500) {
    await Promise.all(entries.slice(at, at + 500).map((entry) => ledger.settle(entry)))
  }
  const listed = async () => (await ledger.entries({ accountId: null, after: null, limit: 1_000 })).entries
  const cost = async () => {
    const sums = await ledger.sums({ accountId: null, by: 'day', fromMs: START, toMs: START })
    return sums.reduce((sum, { costNanoUsd }) => sum + Number(costNanoUsd), 0)
  }
  const used = async () => {
    const uses = await ledger.accountUse({ fromMs: START, toMs: START + DAY })
    return uses.reduce((sum, { costNanoUsd }) => sum + Number(costNanoUsd), 0)
  }
  const total = entries.reduce((sum, { costNanoUsd }) => sum + (costNanoUsd ?? 0), 0)
  return { ledger, client, entries, listed, cost, used, total }
}

void t.test('the oldest entries leave', { skip: missing || anotherDay(0, 2) }, async (t) => {
  const { ledger, client, entries, listed, cost, used, total } = await scene(t)
  const unlimited = await ledger.fitMemory({ max: 0.5, keepDays: 30 })
  t.match(unlimited, { maxBytes: null, fullInMs: null, oldestAtMs: START })
  t.ok((unlimited?.usedBytes ?? 0) > MAX)
  await client.config('SET', 'maxmemory', '1gb')
  const [first] = entries
  const fresh = await openStore(`redis://127.0.0.1:${client.options.port ?? 0}`)
  t.teardown(() => fresh.close())
  t.match(await fresh.ledger.memory({ max: 0.5, keepDays: 30 }), { maxBytes: 2 ** 29, fullInMs: null })

  const other = await openStore(`redis://127.0.0.1:${client.options.port ?? 0}`)
  t.teardown(() => other.close())
  const memory = await other.ledger.fitMemory({ max: MAX, keepDays: 30 })
  t.ok((memory?.usedBytes ?? MAX) <= 0.95 * MAX, `${memory?.usedBytes ?? 0} bytes are used`)
  t.ok((memory?.usedBytes ?? 0) > 0.8 * MAX, 'no more than needed leave')
  t.equal(await ledger.entry(null, first?.requestId ?? ''), null, 'the oldest left')
  t.same(
    (await listed()).map(({ requestId }) => requestId),
    entries
      .slice(-1_000)
      .reverse()
      .map(({ requestId }) => requestId),
  )
  t.equal(await cost(), total, 'the sums stay')
  t.equal(await used(), total, 'so do the months of accounts')
})

void t.test('a full server', { skip: missing || anotherDay(1, 2) }, async (t) => {
  const { ledger, client, cost, total } = await scene(t)
  const info = await client.info('memory')
  const bytes = Number(/used_memory:(\d+)/.exec(info)?.[1])
  await client.config('SET', 'maxmemory', String(bytes - 10_000))
  await t.rejects(ledger.settle(aRow({ accountId: 'acc_new' })))
  await ledger.fitMemory({ max: 0.5, keepDays: 30 })
  const after = Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1])
  t.ok(after < 0.95 * bytes, `${after} bytes are used`)
  t.equal(await ledger.settle(aRow({ accountId: 'acc_new' })), 'settled', 'it takes entries again')
  t.equal((await cost()) >= total, true)
})
