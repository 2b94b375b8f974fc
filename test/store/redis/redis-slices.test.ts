/**
 * Goal: a request of a busy limit needs one command, and the limit is never exceeded. A process returns its
 * slice when it is idle; the slice of a killed process counts as used.
 * Method: real processes use limits of a real Redis as fast as they can. The test sets the clock, which does
 * not advance, so that rates do not refill and every unit is counted.
 */
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { Demand, Ledger } from '../../../src/store/ledger.js'
import { openStore } from '../../../src/store/open-store.js'
import { startFaultProxy } from '../../helpers/fault-proxy.js'
import { stopwatch } from '../../helpers/stopwatch.js'
import { freshDatabases, redisMissing, startRedis, until, type RedisServer } from '../../helpers/redis.js'
import { anAdmission, aName, aRow, budget, NOON, places, requests, tokens } from '../ledger/sample-entries.js'
import { killableProcess, obedientProcess } from '../processes/start-processes.js'
import type { SliceOrder, Spent } from '../processes/slice-process.js'
import { testProgram } from '../../helpers/test-program.js'
import { ofToday } from '../../helpers/long-suite.js'

const CHILD = testProgram('store/processes/slice-process')
const missing = redisMissing()
const options = missing === false ? { buffered: true } : { skip: missing }
// The tests mostly wait. Each gets a copy of the options, because tap changes them.
t.jobs = 4
const server: RedisServer | null = missing === false ? await startRedis(t) : null
const newUrl = server === null ? () => '' : freshDatabases(server)
const SPEND = { most: 1e9, atOnce: 4, retries: 0, close: false }

interface Scene {
  readonly url: string
  readonly ledger: Ledger
  /** The clock of the ledger; slices last ten seconds of it. */
  atMs: number
  readonly left: (demand: Demand | undefined) => Promise<number>
}

async function scene(t: Test, url = newUrl()): Promise<Scene> {
  const store = await openStore(url, { nowMs: () => made.atMs })
  t.teardown(() => store.close())
  const left = async (demand: Demand | undefined): Promise<number> =>
    demand === undefined ? -1 : ((await made.ledger.limitStates('acc_ada', [demand]))[0]?.remaining ?? -1)
  const made = { url, ledger: store.ledger, atMs: NOON, left }
  return made
}

async function spender(t: Test, url: string) {
  const child = await obedientProcess<SliceOrder>(t, CHILD, url)
  return async (order: Partial<SliceOrder> & Pick<SliceOrder, 'demands'>): Promise<Spent> =>
    (await child.tell({ ...SPEND, ...order })) as Spent
}

/** Admits and settles requests in sequence; returns how many a slice admitted. */
async function spend(ledger: Ledger, demands: readonly Demand[], count: number): Promise<number> {
  let bySlice = 0
  for (let at = 0; at < count; at += 1) {
    const admission = anAdmission(demands)
    const { admitted, isSlice } = await ledger.admit(admission)
    if (!admitted) throw new Error('it was refused')
    if (isSlice) bySlice += 1
    if (isSlice) ledger.releaseSlots?.(admission.requestId)
    const row = aRow({ requestId: admission.requestId, costNanoUsd: 10 })
    await ledger.settle(row, { demands, takenFrom: isSlice ? 'slice' : 'reserved' })
  }
  return bySlice
}

void t.test('a request of a busy limit takes one command', { ...options }, async (t) => {
  const own = await startRedis(t)
  const { ledger, left } = await scene(t, `${own.url()}?timeout_ms=2000`)
  const subject = aName('key')
  const demands = [
    requests(100_000, { subject }),
    tokens(50_000_000, 1_000, subject),
    budget('usd_day', { limitNanoUsd: 1e9, costNanoUsd: 500, subject }),
    requests(100_000, { subject: 'model:m', shared: true }),
    places(100, subject),
  ]
  await spend(ledger, demands, 50)
  const before = await evaluations(own)
  t.ok((await spend(ledger, demands, 200)) >= 198, 'a slice admits the requests')
  const commands = (await evaluations(own)) - before
  t.ok(commands <= 210, `200 requests took ${commands} commands`)
  await until(async () => (await left(demands[0])) === 100_000 - 250, 'the requests used')
  await until(async () => (await left(demands[1])) === 50_000_000 - 250 * 120, 'the exact number of tokens')
  await until(async () => (await left(demands[2])) === 1e9 - 250 * 10, 'the exact cost')
  await until(async () => (await left(demands[4])) === 100, 'idle slots')
  const exact = await evaluations(own)
  await spend(ledger, [places(19, aName('key'))], 20)
  t.ok((await evaluations(own)) - exact >= 40, 'a small limit needs a command for each request')
})

void t.test('the reported remaining amount is never too high', { ...options }, async (t) => {
  const { ledger } = await scene(t)
  const demands = [budget('usd_day', { limitNanoUsd: 10_000, costNanoUsd: 1, subject: aName('key') })]
  for (let at = 1; at <= 300; at += 1) {
    const admission = anAdmission(demands)
    const { limitStates, isSlice } = await ledger.admit(admission)
    const remaining = limitStates[0]?.remaining ?? -1
    if (remaining > 10_000 - at || remaining < 10_000 - at - 100) {
      t.fail(`after ${at} requests ${remaining} are reported as remaining`)
    }
    const taken = isSlice ? 'slice' : 'reserved'
    const row = aRow({ requestId: admission.requestId, costNanoUsd: 1 })
    await ledger.settle(row, { demands, takenFrom: taken })
  }
})

const KINDS = Object.entries({
  requests: (subject: string): Demand => requests(3_000, { subject }),
  usd_day: (subject: string): Demand => budget('usd_day', { limitNanoUsd: 30_000, costNanoUsd: 10, subject }),
  usd_week: (subject: string): Demand =>
    budget('usd_week', { limitNanoUsd: 30_000, costNanoUsd: 10, subject }),
})

for (const [kind, demandOf] of ofToday(KINDS, 2 * KINDS.length)) {
  void t.test(`four processes at a limit of 3,000 by ${kind}`, { ...options }, async (t) => {
    const { url, left } = await scene(t)
    const demand = demandOf(aName('key'))
    const spenders = await Promise.all([1, 2, 3, 4].map(() => spender(t, url)))
    const raced = await Promise.all(spenders.map((each) => each({ demands: [demand] })))
    const sum = (of: keyof Spent, all: readonly Spent[]) => all.reduce((total, each) => total + each[of], 0)
    const first = sum('admitted', raced)
    t.ok(first <= 3_000, `overshoot 0: ${first}`)
    t.ok(first >= 2_970, `at most 1 % is unavailable at the first refusal: ${first}`)
    t.ok(sum('bySlice', raced) > 1_000, `${sum('bySlice', raced)} by slices`)
    const rest = await Promise.all(spenders.map((each) => each({ demands: [demand], atOnce: 1, retries: 3 })))
    t.equal(first + sum('admitted', rest), 3_000, 'the rest of the slices is returned')
    t.equal(await left(demand), 0)
  })
}

void t.test('small or nearly used limits have no slices', { ...options }, async (t) => {
  const { ledger } = await scene(t)
  const small = [requests(199, { subject: aName('key') })]
  t.equal(await spend(ledger, small, 100), 0, 'a limit of 199 has no slices')
  const large = [requests(10_000, { subject: aName('key') })]
  await ledger.admit(anAdmission(large.map((each) => ({ ...each, cost: 9_001 }))))
  t.equal(await spend(ledger, large, 100), 0, 'less than a tenth is left')
})

void t.test(
  'a process that ends returns its slice; that of a killed one counts as used',
  options,
  async (t) => {
    const under = await scene(t)
    const demand = budget('usd_day', {
      limitNanoUsd: 1_000_000,
      costNanoUsd: 10,
      subject: aName('key'),
    })
    const order = { ...SPEND, demands: [demand], most: 400 }
    const ended = await spender(t, under.url)
    const first = await ended({ ...order, close: true })
    t.equal(first.admitted, 400)
    t.ok(first.bySlice > 100)
    t.equal(await under.left(demand), 1_000_000 - 4_000, 'only the amount that it used is charged')

    const killed = await killableProcess<SliceOrder>(t, CHILD, under.url)
    await killed.tell(order)
    await killed.kill()
    const held = 1_000_000 - 8_000 - (await under.left(demand))
    t.ok(held > 0 && held <= 10_000, `${held} of a million are held by idle slices`)
    under.atMs += 9_000
    t.equal(await under.left(demand), 1_000_000 - 8_000 - held)
    under.atMs += 1_100
    t.equal(await under.left(demand), 1_000_000 - 8_000 - held, 'the slice is charged: it may have been used')
    const keys = await fields(under.url)
    t.notMatch(keys, '@', 'no slice remains')
  },
)

void t.test('an idle slice is returned', { ...options }, async (t) => {
  const { ledger, left, url } = await scene(t)
  const demand = requests(10_000, { subject: aName('key') })
  t.ok((await spend(ledger, [demand], 100)) > 50)
  await until(async () => (await left(demand)) === 9_900, 'all of it is returned')
  t.notMatch(await fields(url), '@')
})

void t.test('a long request gets a reservation', { ...options }, async (t) => {
  const under = await scene(t)
  const { ledger } = under
  const demands = [budget('usd_day', { limitNanoUsd: 1_000_000, costNanoUsd: 100, subject: aName('key') })]
  await spend(ledger, demands, 50)
  const settled = anAdmission(demands)
  t.match(await ledger.admit(settled), { admitted: true, isSlice: true })
  await ledger.admit({ ...settled, isTaken: true })
  await ledger.admit({ ...settled, isTaken: true })
  const row = aRow({ requestId: settled.requestId, costNanoUsd: 10 })
  await ledger.settle(row, { demands, takenFrom: 'slice' })
  const long = anAdmission(demands)
  t.match(await ledger.admit(long), { admitted: true, isSlice: true })
  await ledger.admit({ ...long, isTaken: true })
  await until(async () => (await under.left(demands[0])) === 1_000_000 - 610, 'each once')
  await ledger.renew([long], 60_000)
  under.atMs += 60_000
  t.equal(await ledger.expire(), 1, 'its process was killed')
  t.same(await ledger.entry('acc_ada', long.requestId), long.unsettled)
  t.equal(await under.left(demands[0]), 1_000_000 - 610, 'the maximum cost is charged')
})

void t.test('slices last while Redis is down', { ...options }, async (t) => {
  const proxy = await startFaultProxy(t, server?.port ?? 0)
  const url = newUrl()
    .replace(`:${server?.port ?? 0}/`, `:${proxy.port}/`)
    .replace('2000', '1000')
  const store = await openStore(url)
  t.teardown(() => store.close())
  const { ledger } = store
  const demands = [requests(1_000_000, { subject: aName('key') })]
  // Many at once: a slice is twice of what a second needs, also on a slow machine.
  await Promise.all(Array.from({ length: 30 }, () => spend(ledger, demands, 20)))
  proxy.set({ kind: 'hole' })
  let kept = 0
  let slowest = 0
  const admit = async (): Promise<boolean> => {
    const watch = stopwatch()
    const { isSlice } = await ledger.admit(anAdmission(demands))
    slowest = Math.max(slowest, watch())
    return isSlice === true
  }
  for (let at = 0; at < 50; at += 1) if (await admit()) kept += 1
  t.equal(kept, 50, 'the slice admits fifty more')
  t.ok(slowest < 100, `the slowest after ${slowest.toFixed(1)} ms`)
  await delay(5_000)
  await t.rejects(ledger.admit(anAdmission(demands)), {
    name: 'GatewayError',
    kind: 'store_unavailable',
  })
  proxy.set({ kind: 'pass' })
  await until(async () => {
    try {
      return (await spend(ledger, demands, 20)) > 0
    } catch {
      return false
    }
  }, 'a slice again')
})

async function evaluations(server: RedisServer): Promise<number> {
  const text = String(await server.ask('info', 'commandstats'))
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(text)?.[1] ?? 0)
}

/** The fields of all counters of the database. */
async function fields(url: string): Promise<string> {
  const db = Number(/\/(\d+)\?/.exec(url)?.[1] ?? 0)
  const script = `redis.call('SELECT', ${db}) local all = {}
    for _, key in ipairs(redis.call('KEYS', 'sluice:*')) do
      if redis.call('TYPE', key).ok == 'hash' then
        for _, name in ipairs(redis.call('HKEYS', key)) do all[#all + 1] = name end
      end
    end return table.concat(all, ' ')`
  return String(await server?.ask('eval', script, 0))
}
