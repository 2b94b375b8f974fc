/**
 * Goal: the limiter asks the ledger once, keeps alive what runs, and decides by itself exactly as long as the
 * ledger fails.
 * Method: a ledger that says what the test tells it to, a clock that is a number.
 */
import t, { type Test } from 'tap'
import { GatewayError } from '../../src/errors.js'
import {
  claimOf,
  LEASE_MS,
  Limiter,
  RENEW_MS,
  type Lease,
  type Wish,
} from '../../src/limits/limiter.js'
import type { Admission, Demand, AdmissionResult } from '../../src/store/ledger.js'
import { until } from '../helpers/upstream.js'
import { aRow } from './empty-entry.js'

const PLACE: Demand = { kind: 'concurrent', subject: 'key:key_1', shared: false, limit: 2 }
const BUDGET: Demand = {
  kind: 'usd_day',
  subject: 'key:key_1',
  shared: false,
  limitNanoUsd: 1_000,
  costNanoUsd: 10,
}

class Scene {
  readonly asked: Admission[] = []
  readonly renewed: string[][] = []
  readonly told: unknown[] = []
  readonly running = new Set<Lease>()
  verdict: AdmissionResult | Error | Promise<AdmissionResult> = { admitted: true, limitStates: [] }
  nowMs = 0
  readonly limiter: Limiter

  constructor(t: Test) {
    this.limiter = new Limiter({
      ledger: {
        admit: (admission) => {
          this.asked.push(admission)
          return this.verdict instanceof Error
            ? Promise.reject(this.verdict)
            : Promise.resolve(this.verdict)
        },
        raise: () => Promise.reject(new Error('nothing is raised')),
        lower: () => Promise.resolve(),
        renew: (requests, leaseMs) => {
          t.equal(leaseMs, LEASE_MS)
          this.renewed.push(requests.map(({ requestId }) => requestId))
          return this.verdict instanceof Error ? Promise.reject(this.verdict) : Promise.resolve()
        },
      },
      settings: () => ({
        unknownPrice: 'refuse',
        assumedPrice: { input: 10, output: 50 },
        unknownLength: null,
        assumedOutputTokens: 1,
        away: { processes: 1, budgetShare: 0.1, budgetNanoUsd: 100 },
      }),
      now: () => this.nowMs,
      lateMs: 50,
      onAway: () => this.told.push('away'),
      onBack: (elapsedMs) => this.told.push(elapsedMs),
    })
    this.limiter.watch((visit) => {
      for (const lease of this.running) visit(lease)
    })
    t.teardown(() => this.limiter.close())
  }

  wish(requestId: string, demands: readonly Demand[]): Wish {
    return { requestId, accountId: 'acc_1', demands, unsettled: aRow(requestId) }
  }

  async admit(requestId: string, ...demands: Demand[]): Promise<Lease | null> {
    const { lease } = await this.limiter.admit(this.wish(requestId, demands))
    if (lease !== null) this.running.add(lease)
    return lease
  }
}

const AWAY = new GatewayError('store_unavailable', 'away')

void t.test('everything is asked in one call', async (t) => {
  const scene = new Scene(t)
  const standings = [
    { limit: 2, remaining: 1, resetMs: 0, retryAfterMs: 0 },
    { limit: 1_000, remaining: 990, resetMs: 5, retryAfterMs: 0 },
  ]
  scene.verdict = { admitted: true, limitStates: standings }
  const decision = await scene.limiter.admit(scene.wish('r1', [PLACE, BUDGET]))
  t.same(decision, {
    lease: { wish: scene.wish('r1', [PLACE, BUDGET]), taken: 'reserved', looks: null },
    closed: false,
    standings,
  })
  t.same(scene.asked, [
    {
      requestId: 'r1',
      accountId: 'acc_1',
      demands: [PLACE, BUDGET],
      unsettled: aRow('r1'),
      leaseMs: LEASE_MS,
    },
  ])
  scene.verdict = { admitted: false, limitStates: standings }
  t.equal(await scene.admit('r2', PLACE), null)
  t.equal(scene.limiter.isAway, false)
})

void t.test(
  'a request that nothing limits is written once it runs on, and not waited for',
  async (t) => {
    const scene = new Scene(t)
    scene.verdict = AWAY
    const short = scene.limiter.note(scene.wish('r1', []))
    const long = scene.limiter.note(scene.wish('r2', []))
    scene.running.add(short).add(long)
    scene.limiter.noteRunning()
    t.same(scene.asked, [], 'most are over before the second look')
    scene.running.delete(short)
    await scene.limiter.renew()
    t.same(scene.renewed, [], 'what the ledger does not know is not renewed')
    scene.limiter.noteRunning()
    scene.limiter.noteRunning()
    t.match(scene.asked, [{ requestId: 'r2', demands: [], leaseMs: LEASE_MS }])
    t.equal(scene.asked.length, 1)
    await until(() => scene.told.length > 0)
    t.same(scene.told, ['away'], 'that it failed is known')
  },
)

void t.test('what runs is renewed in one call, and only that', async (t) => {
  const scene = new Scene(t)
  const first = await scene.admit('r1', PLACE)
  await scene.admit('r2', PLACE)
  await scene.limiter.renew()
  if (first !== null) scene.running.delete(first)
  await scene.limiter.renew()
  scene.running.clear()
  await scene.limiter.renew()
  t.same(scene.renewed, [['r1', 'r2'], ['r2']])
  t.ok(RENEW_MS * 2 < LEASE_MS, 'one renewal may fail')
})

void t.test('what a slice lets in is reserved once it runs on', async (t) => {
  const scene = new Scene(t)
  const standings = [{ limit: 1_000, remaining: 900, resetMs: 1e6, retryAfterMs: 0 }]
  scene.verdict = { admitted: true, limitStates: standings, isSlice: true }
  const lease = await scene.admit('r1', BUDGET)
  t.match(lease, { taken: 'slice', looks: 0 })
  if (lease === null) return
  t.same(claimOf(lease), { demands: [BUDGET], taken: 'slice' })
  await scene.limiter.renew()
  t.same(scene.renewed, [], 'there is nothing to renew yet')
  scene.limiter.noteRunning()
  scene.limiter.noteRunning()
  t.match(scene.asked.slice(1), [{ requestId: 'r1', demands: [BUDGET], isTaken: true }])
  await scene.limiter.renew()
  t.same(scene.renewed, [['r1']])
})

void t.test(
  'a slice says nothing of the store, and what it said of the limit is known',
  async (t) => {
    const scene = new Scene(t)
    const standings = [{ limit: 1_000, remaining: 900, resetMs: 1e6, retryAfterMs: 0 }]
    scene.verdict = AWAY
    await scene.admit('r1', PLACE)
    scene.nowMs = 10_000
    scene.verdict = { admitted: true, limitStates: standings, isSlice: true }
    t.match(await scene.admit('r2', BUDGET), { taken: 'slice' })
    t.equal(scene.limiter.isAway, true, 'it is as away as before')
    scene.verdict = AWAY
    t.match(await scene.admit('r3', BUDGET), { taken: 'nothing' }, 'the budget can be judged')
  },
)

void t.test('while the ledger fails the process decides, and no longer', async (t) => {
  const scene = new Scene(t)
  scene.verdict = {
    admitted: true,
    limitStates: [{ limit: 1_000, remaining: 900, resetMs: 1e6, retryAfterMs: 0 }],
  }
  await scene.admit('r0', BUDGET)
  scene.verdict = { admitted: true, limitStates: [] }
  await scene.admit('r1', PLACE)
  scene.verdict = AWAY
  scene.nowMs = 10
  t.match(await scene.admit('r2', PLACE), { wish: { requestId: 'r2' }, taken: 'nothing' })
  t.equal(await scene.admit('r3', PLACE), null, 'the one from before holds its place')
  t.same(scene.told, ['away'], 'told once')
  t.equal(scene.limiter.isAway, true)
  for (const id of ['b1', 'b2', 'b3']) {
    const lease = await scene.admit(id, BUDGET)
    t.ok(lease)
    if (lease !== null) scene.limiter.end(lease, 10)
  }
  scene.nowMs = 1_500
  scene.limiter.answered()
  t.equal(scene.limiter.isAway, true, 'not at the first answer: it failed a moment ago')
  scene.nowMs = 2_010
  scene.verdict = { admitted: false, limitStates: [] }
  t.equal(await scene.admit('r4', PLACE), null, 'the ledger’s own word')
  t.equal(scene.limiter.isAway, false)
  t.same(scene.told, ['away', 2_000])
})

void t.test('a budget that nobody can judge is closed', async (t) => {
  const scene = new Scene(t)
  scene.verdict = AWAY
  t.match(await scene.limiter.admit(scene.wish('r1', [BUDGET])), { lease: null, closed: true })
})

void t.test('what nobody foresaw is no outage', async (t) => {
  const scene = new Scene(t)
  scene.verdict = new TypeError('a bug')
  await t.rejects(scene.limiter.admit(scene.wish('r1', [PLACE])), TypeError)
  t.equal(scene.limiter.isAway, false)
})

void t.test('a ledger that is late is away; what it says later is not lost', async (t) => {
  const scene = new Scene(t)
  let answer: (verdict: AdmissionResult) => void = () => undefined
  scene.verdict = new Promise((resolve) => {
    answer = resolve
  })
  const asking = scene.admit('r1', PLACE)
  await new Promise((resolve) => setTimeout(resolve, 250))
  t.equal(scene.limiter.isAway, false, 'by the clock no time has passed')
  scene.nowMs = 50
  await until(() => scene.limiter.isAway)
  const lease = await asking
  t.match(lease, { wish: { requestId: 'r1' }, taken: 'nothing' })
  await scene.limiter.renew()
  t.same(scene.renewed, [], 'the ledger does not know of it')
  answer({ admitted: true, limitStates: [] })
  await scene.verdict
  t.equal(lease?.taken, 'reserved')
  scene.verdict = { admitted: true, limitStates: [] }
  await scene.limiter.renew()
  t.same(scene.renewed, [['r1']], 'now it does')
})
