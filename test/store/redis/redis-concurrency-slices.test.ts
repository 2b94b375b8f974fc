/**
 * Goal: the slots that processes hold of a busy limit never exceed the limit, and the slots in use never
 * exceed those held, even if reports and replies are lost or delayed. Idle slots are returned.
 * Method: the slices of four processes in a model of a network that loses, delays and reorders messages, with
 * the real scripts; then four real processes that take and keep all slots they get.
 */
import { Redis } from 'ioredis'
import t from 'tap'
import { seededRandom } from '../../../src/emulator/seeded-random.js'
import type { Demand, Ledger } from '../../../src/store/ledger.js'
import { openStore } from '../../../src/store/open-store.js'
import { parseNumbers } from '../../../src/store/redis/connection/parse-replies.js'
import { LEDGER_SCRIPTS } from '../../../src/store/redis/ledger/ledger-keys.js'
import { Slices } from '../../../src/store/redis/limits/slices.js'
import type { SliceReport } from '../../../src/store/redis/limits/encode-demands.js'
import { freshDatabases, redisMissing, startRedis, until } from '../../helpers/redis.js'
import { aName, anAdmission, NOON, places } from '../ledger/sample-entries.js'
import { killableProcess, obedientProcess } from '../processes/start-processes.js'
import type { SliceOrder, Spent } from '../processes/slice-process.js'
import { testProgram } from '../../helpers/test-program.js'

const CHILD = testProgram('store/processes/slice-process')
const STEPS = Number(process.env['SLUICE_PLACE_STEPS'] ?? '4000')
const SEED = Number(process.env['SLUICE_PLACE_SEED'] ?? '1')
const PROCESSES = 4
const LIMIT = 40
const missing = redisMissing()
const options = missing === false ? { timeout: 60_000 + STEPS * 10 } : { skip: missing }
t.setTimeout(120_000 + STEPS * 10)

/** The key of the only limit. */
const nameOf = (accountId: string, { kind, subject }: Demand): string =>
  `sluice:{${accountId}}:${kind}:${subject}`

/** A process in the model: its slices, its requests, and the messages under way from it and to it. */
class Model {
  readonly slices = new Slices(nameOf)
  readonly running: string[] = []
  readonly sent: { readonly reports: SliceReport[]; readonly askedMs: number }[] = []
  readonly answered: {
    readonly reports: SliceReport[]
    readonly askedMs: number
    readonly numbers: readonly number[]
  }[] = []
}

void t.test('lost, late and reordered messages never exceed the limit', options, async (t) => {
  const server = await startRedis(t)
  const store = await openStore(`${server.url(1)}?timeout_ms=9000`, { nowMs: () => NOON })
  t.teardown(() => store.close())
  const client = new Redis(server.url(1), { lazyConnect: true })
  t.teardown(() => client.disconnect())
  await client.connect()
  const dice = seededRandom(SEED)
  const below = (end: number): number => dice() % end
  const demand = places(LIMIT, aName('key'))
  const name = nameOf('acc_ada', demand)
  const running = { accountId: 'acc_ada', demands: [demand], taken: 'slice' } as const
  const models = Array.from({ length: PROCESSES }, () => new Model())
  const exact: string[] = []
  let [nowMs, bySlice, most] = [0, 0, 0]
  const deliver = async (model: Model, at: number): Promise<void> => {
    const [word] = model.sent.splice(below(model.sent.length), 1)
    if (word === undefined) return
    const args = [String(NOON), `p${at}`, JSON.stringify(word.reports)]
    const answer = await client.eval(LEDGER_SCRIPTS.reportSlices.lua, 1, name, ...args)
    if (below(5) > 0) model.answered.push({ ...word, numbers: parseNumbers(answer) })
  }
  const step = async (at: number, model: Model): Promise<void> => {
    const roll = below(100)
    if (roll < 48) {
      const id = aName('req')
      if (model.slices.take({ requestId: id, accountId: 'acc_ada', demands: [demand] }, nowMs) === null)
        return
      model.running.push(id)
      bySlice += 1
    } else if (roll < 60) {
      const [id] = model.running.splice(below(Math.max(1, model.running.length)), 1)
      if (id !== undefined) model.slices.releaseSlots(id)
    } else if (roll < 74) {
      const isRound = below(3) === 0
      const { slices } = model
      const reports = isRound ? slices.overdueReports(nowMs) : slices.reportsFor([running], nowMs)
      if (reports.length > 0 && below(8) > 0) model.sent.push({ reports, askedMs: nowMs })
    } else if (roll < 84) await deliver(model, at)
    else if (roll < 93) {
      const [reply] = model.answered.splice(below(Math.max(1, model.answered.length)), 1)
      if (reply !== undefined)
        model.slices.applyReplies(reply.reports, reply.numbers, {
          reportedAtMs: reply.askedMs,
          nowMs,
        })
    } else if (roll < 97) {
      const admission = anAdmission([demand])
      if ((await store.ledger.admit(admission)).admitted) exact.push(admission.requestId)
    } else await free(client, name, exact.splice(0, 1 + below(3)))
  }
  for (let at = 0; at < STEPS; at += 1) {
    nowMs += below(8)
    const chosen = below(PROCESSES)
    const model = models[chosen]
    if (model !== undefined) await step(chosen, model)
    const running = models.reduce((sum, each) => sum + each.running.length, exact.length)
    most = Math.max(most, running)
    if (running > LIMIT) {
      t.fail(`seed ${SEED}, step ${at}: ${running} of ${LIMIT}`)
      return
    }
  }
  t.ok(
    bySlice > STEPS / 50 && most > LIMIT / 2,
    `seed ${SEED}: ${bySlice} by slices, ${most} of ${LIMIT} at once`,
  )
})

/** Releases slots that were requested one by one. */
async function free(client: Redis, name: string, ids: readonly string[]): Promise<void> {
  for (const member of await client.zrange(name, '0', '-1')) {
    if (ids.some((id) => member.startsWith(id))) await client.zrem(name, member)
  }
}

void t.test('four processes take exactly the slots of the limit', options, async (t) => {
  const server = await startRedis(t)
  const url = freshDatabases(server)()
  const store = await openStore(url, { nowMs: () => NOON })
  t.teardown(() => store.close())
  const demand = places(100, aName('key'))
  const children = await Promise.all(
    Array.from({ length: PROCESSES }, () => obedientProcess<SliceOrder>(t, CHILD, url)),
  )
  const order = { demands: [demand], retries: 0, close: false, keep: false }
  const all = async (more: Partial<SliceOrder>): Promise<Spent> => {
    const pending = children.map((child) => child.tell({ ...order, most: 100, atOnce: 4, ...more }))
    const spent = (await Promise.all(pending)) as Spent[]
    const sum = (of: keyof Spent): number => spent.reduce((total, each) => total + each[of], 0)
    return { admitted: sum('admitted'), bySlice: sum('bySlice'), refused: sum('refused') }
  }
  const warm = await all({ most: 300 })
  t.equal(warm.admitted, 4 * 300, 'no request is refused while slots are free')
  t.ok(warm.bySlice > 100, `${warm.bySlice} by slices`)
  const first = await all({ keep: true, atOnce: 50 })
  t.ok(first.admitted <= 100, `overshoot 0: ${first.admitted}`)
  t.ok(first.admitted >= 90, `at most a tenth is idle in other processes: ${first.admitted}`)
  const rest = await all({ keep: true, atOnce: 1, retries: 3 })
  t.equal(first.admitted + rest.admitted, 100, 'the idle slots are returned within half a second')
  t.equal(await remaining(store.ledger, demand), 0)
  await all({ most: 0 })
  await until(async () => (await remaining(store.ledger, demand)) === 100, 'all slots are returned')
})

void t.test('the slots of a killed process are free after a minute', options, async (t) => {
  const server = await startRedis(t)
  const url = freshDatabases(server)()
  const clock = { atMs: NOON }
  const store = await openStore(url, { nowMs: () => clock.atMs })
  t.teardown(() => store.close())
  const demand = places(100, aName('key'))
  const child = await killableProcess<SliceOrder>(t, CHILD, url)
  const order = { demands: [demand], atOnce: 4, retries: 0, close: false }
  await child.tell({ ...order, most: 300 })
  const kept = (await child.tell({ ...order, most: 30, keep: true })) as Spent
  t.ok(kept.bySlice > 0, `${kept.bySlice} of 30 by a slice`)
  await child.kill()
  t.ok((await remaining(store.ledger, demand)) <= 70, 'its requests may still run')
  clock.atMs += 59_999
  t.ok((await remaining(store.ledger, demand)) <= 70)
  clock.atMs += 2
  t.equal(await remaining(store.ledger, demand), 100, 'their leases were not renewed')
})

async function remaining(ledger: Ledger, demand: ReturnType<typeof places>): Promise<number> {
  return (await ledger.limitStates('acc_ada', [demand]))[0]?.remaining ?? -1
}
