/**
 * Goal: the limiter calls the ledger once, renews the reservations of running requests, and decides without
 * the ledger exactly as long as the ledger fails.
 * Method: a ledger whose results the test sets, and a manual clock.
 */
import t, { type Test } from 'tap'
import { GatewayError } from '../../src/errors.js'
import {
  storeReservationOf,
  type LimitReservation,
  type AdmissionRequest,
} from '../../src/limits/reservation-types.js'
import { RESERVATION_MS, Limiter, RENEW_MS } from '../../src/limits/limiter.js'
import type { Admission, Demand, AdmissionResult } from '../../src/store/ledger.js'
import { until } from '../helpers/upstream.js'
import { emptyEntry } from '../ledger/build-entry.js'

const PLACE: Demand = { kind: 'concurrent', subject: 'key:key_1', shared: false, limit: 2 }
const BUDGET: Demand = {
  kind: 'usd_day',
  subject: 'key:key_1',
  shared: false,
  limitNanoUsd: 1_000,
  costNanoUsd: 10,
}

class Scene {
  readonly admissions: Admission[] = []
  readonly renewed: string[][] = []
  readonly reported: unknown[] = []
  readonly running = new Set<LimitReservation>()
  result: AdmissionResult | Error | Promise<AdmissionResult> = { admitted: true, limitStates: [] }
  nowMs = 0
  readonly limiter: Limiter

  constructor(t: Test) {
    this.limiter = new Limiter({
      ledger: {
        admit: (admission) => {
          this.admissions.push(admission)
          return this.result instanceof Error ? Promise.reject(this.result) : Promise.resolve(this.result)
        },
        raise: () => Promise.reject(new Error('nothing is raised')),
        lower: () => Promise.resolve(),
        renew: (requests, leaseMs) => {
          t.equal(leaseMs, RESERVATION_MS)
          this.renewed.push(requests.map(({ requestId }) => requestId))
          return this.result instanceof Error ? Promise.reject(this.result) : Promise.resolve()
        },
      },
      settings: () => ({
        unknownPrice: 'refuse',
        assumedPrice: { input: 10, output: 50, call: 0.05 },
        unseenInput: 'reserve',
        unseenInputTokens: {},
        unknownLength: null,
        unknownAudioSeconds: 14_400,
        childPlans: null,
        assumedOutputTokens: 1,
        budgetStatus: 402,
        away: { processes: 1, budgetShare: 0.1, budgetNanoUsd: 100 },
      }),
      now: () => this.nowMs,
      lateMs: 400,
      onAway: () => this.reported.push('away'),
      onBack: (elapsedMs) => this.reported.push(elapsedMs),
    })
    this.limiter.watch((visit) => {
      for (const limitReservation of this.running) visit(limitReservation)
    })
    t.teardown(() => this.limiter.close())
  }

  admissionRequest(requestId: string, demands: readonly Demand[]): AdmissionRequest {
    return { requestId, accountId: 'acc_1', demands, unsettled: emptyEntry(requestId) }
  }

  async admit(requestId: string, ...demands: Demand[]): Promise<LimitReservation | null> {
    const { limitReservation } = await this.limiter.admit(this.admissionRequest(requestId, demands))
    if (limitReservation !== null) this.running.add(limitReservation)
    return limitReservation
  }
}

const AWAY = new GatewayError('store_unavailable', 'away')

void t.test('all limits are checked in one call', async (t) => {
  const scene = new Scene(t)
  const limitStates = [
    { limit: 2, remaining: 1, resetMs: 0, retryAfterMs: 0 },
    { limit: 1_000, remaining: 990, resetMs: 5, retryAfterMs: 0 },
  ]
  scene.result = { admitted: true, limitStates: limitStates }
  const decision = await scene.limiter.admit(scene.admissionRequest('r1', [PLACE, BUDGET]))
  t.same(decision, {
    limitReservation: {
      admissionRequest: scene.admissionRequest('r1', [PLACE, BUDGET]),
      taken: 'reserved',
      timesSeen: null,
    },
    closed: false,
    limitStates,
  })
  t.same(scene.admissions, [
    {
      requestId: 'r1',
      accountId: 'acc_1',
      demands: [PLACE, BUDGET],
      unsettled: emptyEntry('r1'),
      leaseMs: RESERVATION_MS,
    },
  ])
  scene.result = { admitted: false, limitStates: limitStates }
  t.equal(await scene.admit('r2', PLACE), null)
  t.equal(scene.limiter.isAway, false)
})

void t.test('an unlimited request that keeps running is written in the background', async (t) => {
  const scene = new Scene(t)
  scene.result = AWAY
  const short = scene.limiter.note(scene.admissionRequest('r1', []))
  const long = scene.limiter.note(scene.admissionRequest('r2', []))
  scene.running.add(short).add(long)
  scene.limiter.noteRunning()
  t.same(scene.admissions, [], 'most have ended before the second check')
  scene.running.delete(short)
  await scene.limiter.renew()
  t.same(scene.renewed, [], 'reservations that the ledger does not have are not renewed')
  scene.limiter.noteRunning()
  scene.limiter.noteRunning()
  t.match(scene.admissions, [{ requestId: 'r2', demands: [], leaseMs: RESERVATION_MS }])
  t.equal(scene.admissions.length, 1)
  await until(() => scene.reported.length > 0)
  t.same(scene.reported, ['away'], 'the failure is recorded')
})

void t.test('exactly the running requests are renewed, in one call', async (t) => {
  const scene = new Scene(t)
  const first = await scene.admit('r1', PLACE)
  await scene.admit('r2', PLACE)
  await scene.limiter.renew()
  if (first !== null) scene.running.delete(first)
  await scene.limiter.renew()
  scene.running.clear()
  await scene.limiter.renew()
  t.same(scene.renewed, [['r1', 'r2'], ['r2']])
  t.ok(RENEW_MS * 2 < RESERVATION_MS, 'one renewal may fail')
})

void t.test('a request admitted by a slice is reserved if it keeps running', async (t) => {
  const scene = new Scene(t)
  const limitStates = [{ limit: 1_000, remaining: 900, resetMs: 1e6, retryAfterMs: 0 }]
  scene.result = { admitted: true, limitStates: limitStates, isSlice: true }
  const limitReservation = await scene.admit('r1', BUDGET)
  t.match(limitReservation, { taken: 'slice', timesSeen: 0 })
  if (limitReservation === null) return
  t.same(storeReservationOf(limitReservation), { demands: [BUDGET], takenFrom: 'slice' })
  await scene.limiter.renew()
  t.same(scene.renewed, [], 'there is nothing to renew yet')
  scene.limiter.noteRunning()
  scene.limiter.noteRunning()
  t.match(scene.admissions.slice(1), [{ requestId: 'r1', demands: [BUDGET], isTaken: true }])
  await scene.limiter.renew()
  t.same(scene.renewed, [['r1']])
})

void t.test('a slice does not prove that the store is available, and its limit state is kept', async (t) => {
  const scene = new Scene(t)
  const limitStates = [{ limit: 1_000, remaining: 900, resetMs: 1e6, retryAfterMs: 0 }]
  scene.result = AWAY
  await scene.admit('r1', PLACE)
  scene.nowMs = 10_000
  scene.result = { admitted: true, limitStates: limitStates, isSlice: true }
  t.match(await scene.admit('r2', BUDGET), { taken: 'slice' })
  t.equal(scene.limiter.isAway, true, 'it is still unavailable')
  scene.result = AWAY
  t.match(await scene.admit('r3', BUDGET), { taken: 'nothing' }, 'the budget is known')
})

void t.test('the process decides exactly as long as the ledger fails', async (t) => {
  const scene = new Scene(t)
  scene.result = {
    admitted: true,
    limitStates: [{ limit: 1_000, remaining: 900, resetMs: 1e6, retryAfterMs: 0 }],
  }
  await scene.admit('r0', BUDGET)
  scene.result = { admitted: true, limitStates: [] }
  await scene.admit('r1', PLACE)
  scene.result = AWAY
  scene.nowMs = 10
  t.match(await scene.admit('r2', PLACE), {
    admissionRequest: { requestId: 'r2' },
    taken: 'nothing',
  })
  t.equal(await scene.admit('r3', PLACE), null, 'the earlier request still holds its slot')
  t.same(scene.reported, ['away'], 'reported once')
  t.equal(scene.limiter.isAway, true)
  for (const id of ['b1', 'b2', 'b3']) {
    const limitReservation = await scene.admit(id, BUDGET)
    t.ok(limitReservation)
    if (limitReservation !== null) scene.limiter.end(limitReservation, 10)
  }
  scene.nowMs = 1_500
  scene.limiter.storeReplied()
  t.equal(scene.limiter.isAway, true, 'not at the first reply, because it failed a moment ago')
  scene.nowMs = 2_010
  scene.result = { admitted: false, limitStates: [] }
  t.equal(await scene.admit('r4', PLACE), null, "the ledger's own word")
  t.equal(scene.limiter.isAway, false)
  t.same(scene.reported, ['away', 2_000])
})

void t.test('a budget of unknown state is closed', async (t) => {
  const scene = new Scene(t)
  scene.result = AWAY
  t.match(await scene.limiter.admit(scene.admissionRequest('r1', [BUDGET])), {
    limitReservation: null,
    closed: true,
  })
})

void t.test('an unexpected error does not start an outage', async (t) => {
  const scene = new Scene(t)
  scene.result = new TypeError('a bug')
  await t.rejects(scene.limiter.admit(scene.admissionRequest('r1', [PLACE])), TypeError)
  t.equal(scene.limiter.isAway, false)
})

void t.test('a ledger that is late counts as unavailable; its late result is used', async (t) => {
  const scene = new Scene(t)
  let answer: (result: AdmissionResult) => void = () => undefined
  scene.result = new Promise((resolve) => {
    answer = resolve
  })
  const asking = scene.admit('r1', PLACE)
  await new Promise((resolve) => setTimeout(resolve, 250))
  t.equal(scene.limiter.isAway, false, 'it is not late yet')
  await until(() => scene.limiter.isAway)
  const limitReservation = await asking
  t.match(limitReservation, { admissionRequest: { requestId: 'r1' }, taken: 'nothing' })
  await scene.limiter.renew()
  t.same(scene.renewed, [], 'the ledger does not have it')
  answer({ admitted: true, limitStates: [] })
  await scene.result
  t.equal(limitReservation?.taken, 'reserved')
  scene.result = { admitted: true, limitStates: [] }
  await scene.limiter.renew()
  t.same(scene.renewed, [['r1']], 'now it does')
})
