/**
 * Goal: requests of one turn of the event loop go to Redis in a few commands. Each is decided separately:
 * limits are exact, a request id counts once, and an error of one request does not affect the others.
 * Method: many requests in one turn at a real server, some of whose records are damaged; the server's counts
 * of commands.
 */
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import type { Demand, Ledger } from '../../../src/store/ledger.js'
import { openStore } from '../../../src/store/open-store.js'
import { freshDatabases, redisMissing, startRedis, type RedisServer } from '../../helpers/redis.js'
import { aName, anAdmission, aRow, budget, NOON, places, requests, tokens } from '../ledger/sample-entries.js'

const MANY = 100
/** Limits too small for slices. */
const ROOM = 15
const missing = redisMissing()
const options = missing === false ? {} : { skip: missing }
const server: RedisServer | null = missing === false ? await startRedis(t) : null
const newUrl = server === null ? () => '' : freshDatabases(server)

interface Scene {
  readonly ledger: Ledger
  readonly client: Redis
}

async function scene(t: Test): Promise<Scene> {
  const url = newUrl()
  const store = await openStore(url, { nowMs: () => NOON })
  t.teardown(() => store.close())
  const client = new Redis(url.replace(/\?.*/, ''), { lazyConnect: true })
  t.teardown(() => client.disconnect())
  await client.connect()
  // Adds the account to the accounts of the ledger.
  await store.ledger.settle(aRow({ requestId: aName('req') }))
  return { ledger: store.ledger, client }
}

async function evaluations(client: Redis): Promise<number> {
  const found = /cmdstat_evalsha:calls=(\d+)/.exec(await client.info('commandstats'))
  return Number(found?.[1] ?? 0)
}

async function remaining(ledger: Ledger, demands: readonly Demand[]): Promise<number[]> {
  return (await ledger.limitStates('acc_ada', demands)).map((each) => each.remaining)
}

void t.test('requests of one turn take few commands, and limits are exact', options, async (t) => {
  const { ledger, client } = await scene(t)
  const subject = aName('key')
  const demands = [
    requests(150, { subject }),
    tokens(19_000, 100, subject),
    places(ROOM, subject),
    budget('usd_day', { limitNanoUsd: 1_000, costNanoUsd: 7, subject }),
  ]
  const admissions = Array.from({ length: MANY }, () => anAdmission(demands))
  const before = await evaluations(client)
  const results = await Promise.all(admissions.map((each) => ledger.admit(each)))
  const admitted = admissions.filter((_, at) => results[at]?.admitted)
  t.equal(admitted.length, ROOM)
  const [last] = results.slice(-1)
  t.equal(last?.limitStates[2]?.remaining, 0)
  t.equal(last?.limitStates[2]?.retryAfterMs, 1_000)
  const settled = await Promise.all(
    admitted.map(({ requestId }) =>
      ledger.settle(aRow({ requestId, costNanoUsd: 3 }), { demands, takenFrom: 'reserved' }),
    ),
  )
  t.ok(settled.every((outcome) => outcome === 'settled'))
  const commands = (await evaluations(client)) - before
  t.ok(commands <= 10, `${MANY} admissions and ${ROOM} settlements: ${commands} commands`)
  const left = [150 - ROOM, 19_000 - ROOM * 120, ROOM, 1_000 - ROOM * 3]
  t.same(await remaining(ledger, demands), left, 'refused requests took nothing')
})

void t.test('a request id that is admitted twice in a turn counts once', options, async (t) => {
  const { ledger } = await scene(t)
  const demands = [requests(10, { subject: aName('key') }), places(2, aName('key'))]
  const admission = anAdmission(demands)
  const results = await Promise.all([1, 2, 3, 4].map(() => ledger.admit(admission)))
  t.same(
    results.map(({ admitted }) => admitted),
    [true, true, true, true],
  )
  t.same(await remaining(ledger, demands), [9, 1])
  const { requestId } = admission
  const row = aRow({ requestId })
  const outcomes = await Promise.all([1, 2, 3].map(() => ledger.settle(row)))
  t.same(outcomes, ['settled', 'already', 'already'])
  t.same(await remaining(ledger, demands), [9, 2])
})

void t.test('an error affects only its own request', options, async (t) => {
  const { ledger, client } = await scene(t)
  const [subject, damaged] = [aName('key'), aName('key')]
  const good = [
    requests(100, { subject }),
    budget('usd_day', { limitNanoUsd: 1e6, costNanoUsd: 10, subject }),
  ]
  await client.set(`sluice:{acc_ada}:usd_day:${damaged}`, 'not a hash')
  // The first demand is the same as that of the others.
  const bad = [...good, budget('usd_day', { limitNanoUsd: 1e6, costNanoUsd: 10, subject: damaged })]
  const admissions = [good, bad, good, bad, good].map((demands) => anAdmission(demands))
  const admitting = await Promise.allSettled(admissions.map((each) => ledger.admit(each)))
  const rejected = { status: 'rejected', reason: { kind: 'store_unavailable' } }
  const admitted = { status: 'fulfilled', value: { admitted: true } }
  t.match(admitting, [admitted, rejected, admitted, rejected, admitted])
  t.same(await remaining(ledger, good), [97, 1e6 - 30], 'failed requests took nothing')
  await client.set('sluice:{acc_bad}:log', 'not a sorted set')
  const ids = admissions.map(({ requestId }) => requestId)
  const [first = '', , third = ''] = ids
  const rows = [aRow({ requestId: first }), aRow({ accountId: 'acc_bad' }), aRow({ requestId: third })]
  await ledger.settle(aRow({ accountId: 'acc_bad' })).catch(() => undefined)
  const settling = await Promise.allSettled(rows.map((row) => ledger.settle(row)))
  const settled = { status: 'fulfilled', value: 'settled' }
  t.match(settling, [settled, rejected, settled])
  t.equal((await ledger.entry('acc_ada', third))?.requestId, third)
})
