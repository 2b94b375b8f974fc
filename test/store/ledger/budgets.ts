/** The tests of every ledger for budgets: reservations, corrections, days and months. */
import type { Test } from 'tap'
import {
  anAdmission,
  aRow,
  budget,
  DAY,
  HOUR,
  no,
  places,
  standing,
  tokens,
  yes,
  type LedgerUnderTest,
} from './sample-entries.js'

/** The wait for amounts that running requests have reserved: one of them may end soon. */
const SOON = 1_000
const NOON_TO_MIDNIGHT = 12 * HOUR
/** From noon of 20 November to 1 December. */
const NOON_TO_MONTH = 10 * DAY + NOON_TO_MIDNIGHT

export async function budgets(t: Test, { ledger }: LedgerUnderTest): Promise<void> {
  const spent = (cost: number) => [
    budget('usd_day', { limitNanoUsd: 100, costNanoUsd: cost }),
    budget('usd_month', { limitNanoUsd: 250, costNanoUsd: cost }),
  ]
  t.same(await ledger.limitStates('acc_ada', spent(1)), [
    standing({ limit: 100, remaining: 100, resetMs: 0 }),
    standing({ limit: 250, remaining: 250, resetMs: 0 }),
  ])
  const first = anAdmission(spent(60))
  t.same(
    await ledger.admit(first),
    yes(
      standing({ limit: 100, remaining: 40, resetMs: NOON_TO_MIDNIGHT }),
      standing({ limit: 250, remaining: 190, resetMs: NOON_TO_MONTH }),
    ),
    'reserves the maximum cost',
  )
  t.same(
    await ledger.admit(anAdmission(spent(41))),
    no(
      standing({ limit: 100, remaining: 40, resetMs: NOON_TO_MIDNIGHT, retryAfterMs: SOON }),
      standing({ limit: 250, remaining: 190, resetMs: NOON_TO_MONTH }),
    ),
    'other requests cannot use a reserved amount',
  )
  t.ok(
    (await ledger.admit(anAdmission([budget('usd_day', { limitNanoUsd: 100, costNanoUsd: 40 })]))).admitted,
    'n',
  )
  t.notOk(
    (await ledger.admit(anAdmission([budget('usd_day', { limitNanoUsd: 100, costNanoUsd: 1 })]))).admitted,
    'n + 1',
  )

  await ledger.settle(aRow({ requestId: first.requestId, costNanoUsd: 10 }))
  t.same(
    (await ledger.limitStates('acc_ada', spent(1))).map(({ remaining }) => remaining),
    [50, 240],
    'returns the part that was not used',
  )
  const unpriced = anAdmission(spent(30))
  await ledger.admit(unpriced)
  await ledger.settle(aRow({ requestId: unpriced.requestId, costNanoUsd: null }))
  t.equal(
    (await ledger.limitStates('acc_ada', spent(1)))[0]?.remaining,
    20,
    'without a price, charges the reserved amount',
  )
  const dear = anAdmission(spent(5))
  await ledger.admit(dear)
  await ledger.settle(aRow({ requestId: dear.requestId, costNanoUsd: 500 }))
  t.same(
    (await ledger.limitStates('acc_ada', spent(1))).map(({ remaining }) => remaining),
    [0, 0],
    'charges a higher cost, and reports no negative amount',
  )
  const free = await ledger.admit(anAdmission([budget('usd_day', { limitNanoUsd: 100, costNanoUsd: 0 })]))
  t.notOk(free.admitted, 'an overspent budget refuses a request without a price')
  t.equal(
    (await ledger.limitStates('acc_ada', [budget('usd_day', { limitNanoUsd: 1_000, costNanoUsd: 1 })]))[0]
      ?.remaining,
    420,
    'uses a changed limit',
  )

  await ledger.settle(aRow({ costNanoUsd: 70 }))
  t.equal(
    (await ledger.limitStates('acc_ada', [budget('usd_day', { limitNanoUsd: 1_000, costNanoUsd: 1 })]))[0]
      ?.remaining,
    420,
    'an entry without an admission charges no budget',
  )
}

/** The wait of a refused request: until another request ends, or until the next day or month. */
export async function waits(t: Test, { ledger, clock }: LedgerUnderTest): Promise<void> {
  const demands = (cost: number) => [
    budget('usd_day', { limitNanoUsd: 100, costNanoUsd: cost }),
    budget('usd_month', { limitNanoUsd: 200, costNanoUsd: cost }),
  ]
  const wait = async (cost: number) => {
    const { admitted, limitStates } = await ledger.admit(anAdmission(demands(cost)))
    t.notOk(admitted)
    return limitStates.map(({ retryAfterMs }) => retryAfterMs)
  }
  const admitted = async (cost: number): Promise<string> => {
    const admission = anAdmission(demands(cost))
    t.ok((await ledger.admit(admission)).admitted)
    return admission.requestId
  }
  const settled = (requestId: string, costNanoUsd: number | null) =>
    ledger.settle(aRow({ requestId, costNanoUsd }))
  const [first, second] = [await admitted(60), await admitted(30)]
  t.same(await wait(100), [SOON, 0], 'two running requests may use nothing')
  await settled(first, 20)
  t.same(await wait(80), [SOON, 0], '20 spent, 30 reserved')
  t.same(await wait(81), [NOON_TO_MIDNIGHT, 0], 'more than remains when all have ended')
  await settled(second, null)
  t.same(await wait(51), [NOON_TO_MIDNIGHT, 0], 'without a price, the reserved amount is spent')
  await settled(await admitted(50), 0)
  const last = await admitted(50)
  await settled(last, 50)
  await settled(last, 50)
  t.same(await wait(1), [NOON_TO_MIDNIGHT, 0], 'no request is running')

  clock.atMs += NOON_TO_MIDNIGHT
  const next = await admitted(90)
  t.same(await wait(90), [SOON, SOON], 'a new day')
  clock.atMs += DAY
  t.ok(
    (await ledger.admit(anAdmission([budget('usd_day', { limitNanoUsd: 100, costNanoUsd: 100 })]))).admitted,
  )
  await settled(next, 10)
  t.same(await wait(1), [SOON, 0], 'a reservation of the previous day')
}

export async function calendar(t: Test, { ledger, clock }: LedgerUnderTest): Promise<void> {
  const demands = (cost: number) => [
    budget('usd_day', { limitNanoUsd: 100, costNanoUsd: cost }),
    budget('usd_month', { limitNanoUsd: 150, costNanoUsd: cost }),
  ]
  const left = async () => (await ledger.limitStates('acc_ada', demands(1))).map(({ remaining }) => remaining)
  clock.atMs = Date.UTC(2026, 10, 29, 23, 59, 59, 999)
  const late = anAdmission(demands(80))
  t.same(
    await ledger.admit(late),
    yes(
      standing({ limit: 100, remaining: 20, resetMs: 1 }),
      standing({ limit: 150, remaining: 70, resetMs: DAY + 1 }),
    ),
  )
  clock.atMs += 1
  t.same(await left(), [100, 70], 'a new day begins at midnight UTC, in the same month')
  await ledger.settle(aRow({ requestId: late.requestId, costNanoUsd: 30 }))
  t.same(await left(), [100, 120], 'a request of the previous day does not change the new day')

  t.ok((await ledger.admit(anAdmission(demands(100)))).admitted)
  const refused = await ledger.admit(anAdmission(demands(20)))
  t.same(refused.limitStates[0], standing({ limit: 100, remaining: 0, resetMs: DAY, retryAfterMs: SOON }))
  clock.atMs = Date.UTC(2026, 11, 1) - 1
  t.same(await left(), [0, 20])
  clock.atMs += 1
  t.same(await left(), [100, 150], 'a new month and day')
  clock.atMs = Date.UTC(2026, 11, 31, 23, 59, 59)
  t.same(
    await ledger.admit(anAdmission(demands(10))),
    yes(
      standing({ limit: 100, remaining: 90, resetMs: 1_000 }),
      standing({ limit: 150, remaining: 140, resetMs: 1_000 }),
    ),
    'December ends at the end of the year',
  )
  clock.atMs = Date.UTC(2027, 0, 1)
  t.same(await left(), [100, 150])
  clock.atMs = Date.UTC(2028, 1, 28, 12)
  t.same(
    (await ledger.admit(anAdmission(demands(10)))).limitStates.map(({ resetMs }) => resetMs),
    [12 * HOUR, 36 * HOUR],
    'February of a leap year has 29 days',
  )

  clock.atMs = Date.UTC(2028, 2, 5) - 1
  await ledger.admit(anAdmission(demands(70)))
  clock.atMs += 1
  const raced = await Promise.all(Array.from({ length: 20 }, () => ledger.admit(anAdmission(demands(7)))))
  t.equal(raced.filter(({ admitted }) => admitted).length, 11, '20 concurrent requests at midnight')
  t.same(await left(), [23, 3], 'each budget is reset exactly once')
}

export async function weeks(t: Test, { ledger, clock }: LedgerUnderTest): Promise<void> {
  const demands = (cost: number) => [
    budget('usd_day', { limitNanoUsd: 100, costNanoUsd: cost }),
    budget('usd_week', { limitNanoUsd: 150, costNanoUsd: cost }),
  ]
  const left = async () => (await ledger.limitStates('acc_ada', demands(1))).map(({ remaining }) => remaining)
  // The last ms of a Saturday.
  clock.atMs = Date.UTC(2026, 10, 28, 23, 59, 59, 999)
  const late = anAdmission(demands(80))
  t.same(
    await ledger.admit(late),
    yes(
      standing({ limit: 100, remaining: 20, resetMs: 1 }),
      standing({ limit: 150, remaining: 70, resetMs: DAY + 1 }),
    ),
  )
  clock.atMs += 1
  t.same(await left(), [100, 70], 'Sunday is in the same week')
  await ledger.settle(aRow({ requestId: late.requestId, costNanoUsd: 30 }))
  t.same(await left(), [100, 120], 'the settlement corrects the week of the admission')
  t.same(
    (await ledger.admit(anAdmission(demands(100)))).limitStates[1],
    standing({ limit: 150, remaining: 20, resetMs: DAY }),
  )
  t.same(
    (await ledger.admit(anAdmission(demands(21)))).limitStates[1],
    standing({ limit: 150, remaining: 20, resetMs: DAY, retryAfterMs: SOON }),
  )
  const more = [budget('usd_week', { limitNanoUsd: 150, costNanoUsd: 20 })]
  const raise = await ledger.raise('acc_ada', more)
  t.same(await left(), [0, 0], 'raises a running request')
  t.equal(await ledger.raise('acc_ada', more), null)
  if (raise !== null) await ledger.lower('acc_ada', raise)
  t.same(await left(), [0, 20])

  clock.atMs += DAY
  t.same(await left(), [100, 150], 'a new week begins on Monday at midnight UTC')
  if (raise !== null) await ledger.lower('acc_ada', raise)
  const owed = { demands: demands(10), takenFrom: 'nothing' } as const
  await ledger.settle(aRow({ costNanoUsd: 7, atMs: clock.atMs }), owed)
  await ledger.settle(aRow({ costNanoUsd: 9, atMs: clock.atMs - 1 }), owed)
  t.same(await left(), [93, 143], 'a request of Sunday does not change the new week')
  const spent = []
  for await (const batch of ledger.budgets()) spent.push(...batch)
  const week = Math.floor((clock.atMs / DAY + 3) / 7)
  const found = spent.find(({ kind }) => kind === 'usd_week')
  t.match(found, { accountId: 'acc_ada', subject: 'key:one', period: week, amount: 7 })
  if (found !== undefined) await ledger.putBudgets([{ ...found, amount: 50 }])
  t.same(await left(), [93, 100], 'a migration keeps it')
}

/** A request admitted while the store was unavailable is charged when its entry is written. */
export async function owed(t: Test, { ledger, clock }: LedgerUnderTest): Promise<void> {
  const demands = [
    budget('usd_day', { limitNanoUsd: 1_000, costNanoUsd: 60 }),
    budget('usd_month', { limitNanoUsd: 5_000, costNanoUsd: 60 }),
    budget('usd_month', { limitNanoUsd: 5_000, costNanoUsd: 60, subject: 'model:m' }),
    tokens(1_000, 100),
    places(3),
  ].map((each) => (each.subject === 'model:m' ? { ...each, shared: true } : each))
  const left = async () => (await ledger.limitStates('acc_ada', demands)).map(({ remaining }) => remaining)
  const claim = { demands, takenFrom: 'nothing' } as const
  const first = aRow({ costNanoUsd: 25 })
  t.equal(await ledger.settle(first, claim), 'settled')
  t.same(await left(), [975, 4_975, 4_975, 1_000, 3], 'charges only the budgets')
  t.equal(await ledger.settle(first, claim), 'already')
  await ledger.settle(aRow({ costNanoUsd: null }), claim)
  t.same((await left()).slice(0, 3), [915, 4_915, 4_915], 'without a price, charges the maximum cost')
  await ledger.settle(aRow({ costNanoUsd: 5_000, atMs: clock.atMs - DAY }), claim)
  t.same((await left()).slice(0, 3), [915, 0, 0], 'a request of the previous day charges only the month')

  const own = [budget('usd_day', { limitNanoUsd: 1_000, costNanoUsd: 60, subject: 'key:own' })]
  const admitted = anAdmission(own)
  await ledger.admit(admitted)
  const row = aRow({ requestId: admitted.requestId, costNanoUsd: 10 })
  await ledger.settle(row, { demands: own, takenFrom: 'nothing' })
  t.equal(
    (await ledger.limitStates('acc_ada', own))[0]?.remaining,
    990,
    'a reservation in the engine takes precedence',
  )
  await ledger.settle(aRow(), { demands: own, takenFrom: 'reserved' })
  t.equal(
    (await ledger.limitStates('acc_ada', own))[0]?.remaining,
    990,
    'a reservation that no longer exists charges nothing',
  )
}
