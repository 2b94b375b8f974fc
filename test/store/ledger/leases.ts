/** The tests of every ledger for expired reservations. */
import type { Test } from 'tap'
import { obedientProcess } from '../processes/start-processes.js'
import { LEDGER_CHILD } from './races.js'
import type { LedgerOrder } from '../processes/ledger-process.js'
import {
  anAdmission,
  aRow,
  budget,
  MINUTE,
  NOON,
  places,
  requests,
  tokens,
  type LedgerUnderTest,
} from './sample-entries.js'

export async function expiry(t: Test, under: LedgerUnderTest): Promise<void> {
  const { ledger, clock, url } = under
  const other = await obedientProcess<LedgerOrder>(t, LEDGER_CHILD, url)
  const demands = [places(1), tokens(5_000, 3_000), budget('usd_day', { limitNanoUsd: 100, costNanoUsd: 60 })]
  const lost = anAdmission(demands, { row: { costNanoUsd: 55 } })
  t.ok((await ledger.admit(lost)).admitted)
  t.equal(await ledger.expire(), 0, 'no reservation has expired')
  t.notOk((await ledger.admit(anAdmission([places(1)]))).admitted)
  clock.atMs += MINUTE - 1
  t.equal(await ledger.expire(), 0)
  clock.atMs += 1
  t.equal(await ledger.expire(1), 0, 'spares a reservation that has just expired')
  const next = anAdmission([places(1)])
  t.ok((await ledger.admit(next)).admitted, 'the slot of an expired reservation is free before it is settled')
  await ledger.expire()
  t.same(
    await ledger.entry('acc_ada', lost.requestId),
    lost.unsettled,
    'settles the reservation with its unsettled entry',
  )
  t.equal(await ledger.expire(), 0, 'settles it once')
  const again = aRow({ requestId: lost.requestId, outcome: 'lost', costNanoUsd: 1 })
  t.equal(await ledger.settle(again), 'already', 'a later settlement as lost changes nothing')
  t.same(await ledger.entry('acc_ada', lost.requestId), lost.unsettled)
  const [place, , day] = await ledger.limitStates('acc_ada', demands)
  t.equal(place?.remaining, 0, 'the next request keeps the slot')
  t.equal(day?.remaining, 45, 'the reserved cost is charged')
  const [sum] = await ledger.sums({ accountId: null, by: 'day', fromMs: NOON, toMs: NOON })
  t.match(sum, { requests: 1, failed: 1, estimated: 0, assumed: 1, costNanoUsd: 55 })
  const used = aRow({ requestId: lost.requestId, costNanoUsd: 20, atMs: NOON + 5_000, keyId: 'key_two' })
  const reservation = { demands, takenFrom: 'reserved' as const }
  t.equal(await ledger.settle(used, reservation), 'corrected', 'a late settlement replaces what was assumed')
  t.equal(await ledger.settle(used, reservation), 'already', 'once')
  const { atMs, keyId, accountPath } = lost.unsettled
  t.same(await ledger.entry('acc_ada', lost.requestId), { ...used, atMs, keyId, accountPath })
  t.equal((await ledger.limitStates('acc_ada', demands))[2]?.remaining, 80, 'also in budgets')
  for (const by of ['hour', 'day'] as const) {
    const sums = await ledger.sums({ accountId: null, by, fromMs: NOON - 3_600_000 * 24, toMs: NOON })
    t.match(sums, { length: 1 })
    t.match(sums[0], { requests: 1, failed: 0, assumed: 0, costNanoUsd: 20, inputTokens: 100 })
  }

  const many = Array.from({ length: 300 }, () =>
    anAdmission([
      places(1_000, 'key:many'),
      budget('usd_day', { limitNanoUsd: 1_000_000, costNanoUsd: 10, subject: 'key:many' }),
    ]),
  )
  await Promise.all(many.map((each) => ledger.admit(each)))
  clock.atMs += MINUTE
  await other.tell({ op: 'clock', atMs: clock.atMs })
  const late = many.slice(0, 100).map(({ requestId }) => aRow({ requestId, costNanoUsd: 10 }))
  const [mine, theirs, outcomes] = await Promise.all([
    ledger.expire(),
    other.tell({ op: 'expire' }),
    other.tell({ op: 'settle', rows: late }),
  ])
  const settled = Array.isArray(outcomes) ? outcomes.filter((each) => each === 'settled').length : 0
  const rest = await ledger.expire()
  t.equal(mine + Number(theirs) + settled + rest, 301, 'each reservation ends once, in any process')
  const [free, spent] = await ledger.limitStates('acc_ada', many[0]?.demands ?? [])
  t.equal(free?.remaining, 1_000)
  t.equal(spent?.remaining, 1_000_000 - 3_000)
}

/** A clock that jumps forward does not settle the requests of a process that still renews them. */
export async function jumps(t: Test, { ledger, clock }: LedgerUnderTest): Promise<void> {
  const demands = [places(2), budget('usd_month', { limitNanoUsd: 1_000, costNanoUsd: 60 })]
  const [running, lost] = [anAdmission(demands), anAdmission(demands)]
  await ledger.admit(running)
  await ledger.admit(lost)
  t.equal(await ledger.expire(), 0)
  clock.atMs += 10_000
  clock.jumpedMs = 60 * MINUTE
  t.equal(await ledger.expire(), 0, 'reservations that a jump ends stay')
  t.equal((await ledger.entry('acc_ada', running.requestId)) ?? null, null)
  for (let renewals = 0; renewals < 3; renewals += 1) {
    await ledger.renew([running], MINUTE)
    clock.atMs += 20_000
    t.equal(await ledger.expire(), renewals < 2 ? 0 : 1, 'the other expires by monotonic time')
  }
  t.match(await ledger.entry('acc_ada', lost.requestId), { outcome: 'lost' })
  t.equal((await ledger.limitStates('acc_ada', demands))[0]?.remaining, 1)
  const row = aRow({ requestId: running.requestId, costNanoUsd: 10 })
  t.equal(await ledger.settle(row), 'settled', 'a running request is charged what it used')
  t.equal((await ledger.limitStates('acc_ada', demands))[1]?.remaining, 1_000 - 60 - 10)

  const next = anAdmission(demands)
  await ledger.admit(next)
  clock.atMs += MINUTE
  t.equal(await ledger.expire(), 1, 'afterwards reservations expire as before')
  clock.jumpedMs -= 120 * MINUTE
  const last = anAdmission(demands)
  await ledger.admit(last)
  t.equal(await ledger.expire(), 0)
  clock.atMs += MINUTE
  t.equal(await ledger.expire(), 1, 'also after a jump backwards')
}

export async function renewal(t: Test, { ledger, clock }: LedgerUnderTest): Promise<void> {
  const first = anAdmission([places(2), requests(10)])
  const second = anAdmission([places(2), requests(10)])
  await ledger.admit(first)
  await ledger.admit(second)
  clock.atMs += MINUTE - 1
  await ledger.renew([first, { requestId: 'req_none', accountId: 'acc_ada' }], MINUTE)
  clock.atMs += 1
  t.equal(await ledger.expire(), 1, 'settles the request that was not renewed')
  t.equal(await ledger.entry('acc_ada', first.requestId), null)
  t.notSame(await ledger.entry('acc_ada', second.requestId), null)
  t.equal(
    (await ledger.limitStates('acc_ada', [places(2)]))[0]?.remaining,
    1,
    'a renewed request keeps its slot',
  )
  await ledger.renew([second], MINUTE)
  t.equal(
    (await ledger.limitStates('acc_ada', [places(2)]))[0]?.remaining,
    1,
    'renewing a settled request changes nothing',
  )
  clock.atMs += MINUTE - 2
  t.equal(await ledger.expire(), 0, 'the lease begins again at the renewal')
  clock.atMs += 1
  await ledger.renew([first], MINUTE)
  t.equal(await ledger.expire(), 1, 'renewing an expired reservation does not restore it')
  t.equal((await ledger.limitStates('acc_ada', [places(2)]))[0]?.remaining, 2)
  await ledger.renew([], MINUTE)
}
