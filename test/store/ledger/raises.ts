/** What every engine's ledger must do when a running request takes more than it reserved, and gives it back. */
import type { Test } from 'tap'
import type { BudgetDemand } from '../../../src/store/ledger.js'
import {
  anAdmission,
  aRow,
  budget,
  HOUR,
  no,
  standing,
  tokens,
  yes,
  type LedgerUnderTest,
} from './sample-entries.js'

const SOON = 1_000
const NOON_TO_MIDNIGHT = 12 * HOUR
const ACCOUNT = 'acc_ada'
const DAY_LIMIT = 100

function spent(cost: number): [BudgetDemand] {
  return [budget('usd_day', DAY_LIMIT, cost)]
}

/** All of it or nothing, until it is given back. */
export async function raised(t: Test, { ledger }: LedgerUnderTest): Promise<void> {
  const left = async (): Promise<number | undefined> =>
    (await ledger.limitStates(ACCOUNT, spent(0)))[0]?.remaining
  const first = anAdmission(spent(40))
  t.same(await ledger.admit(first), yes(standing(DAY_LIMIT, 60, NOON_TO_MIDNIGHT)))
  const more = await ledger.raise(ACCOUNT, spent(50))
  t.equal(await left(), 10)
  t.equal(await ledger.raise(ACCOUNT, spent(11)), null, 'more than is left')
  t.equal(await left(), 10, 'a refusal takes nothing')
  t.same(
    await ledger.admit(anAdmission(spent(20))),
    no(standing(DAY_LIMIT, 10, NOON_TO_MIDNIGHT, SOON)),
    'it may come back soon, as what is reserved',
  )
  if (more === null) throw new Error('nothing was granted')
  await ledger.lower(ACCOUNT, more)
  t.equal(await left(), 60)
  await ledger.settle(aRow({ requestId: first.requestId, costNanoUsd: 70 }))
  t.equal(await left(), 30, 'the request is charged what it cost, both attempts together')
  t.equal((await ledger.admit(anAdmission(spent(31)))).admitted, false)
  t.equal((await ledger.admit(anAdmission(spent(30)))).admitted, true)
}

/** Several demands at once, of which one or all have room. */
export async function raisedTogether(t: Test, { ledger }: LedgerUnderTest): Promise<void> {
  const shared = { ...budget('usd_month', 50, 20, 'model:gpt-4o'), shared: true }
  const demands = [tokens(1_000, 300), ...spent(60), shared]
  const remaining = async (): Promise<number[]> =>
    (await ledger.limitStates(ACCOUNT, demands)).map((each) => each.remaining)
  const before = await remaining()
  t.same(before, [1_000, 100, 50])
  const more = await ledger.raise(ACCOUNT, demands)
  t.same(await remaining(), [700, 40, 30])
  t.equal(await ledger.raise(ACCOUNT, demands), null, 'the day has no room')
  t.same(await remaining(), [700, 40, 30], 'so nothing of the others is taken')
  const isOneShort = [tokens(1_000, 100), ...spent(10), { ...shared, costNanoUsd: 31 }]
  t.equal(await ledger.raise('acc_bob', isOneShort), null, 'accounts share the month')
  t.same(
    (await ledger.limitStates('acc_bob', isOneShort)).map((each) => each.remaining),
    [1_000, 100, 30],
    'and what was taken before it is given back',
  )
  if (more === null) throw new Error('nothing was granted')
  await ledger.lower(ACCOUNT, more)
  t.same(await remaining(), before)
}

/** What was taken yesterday is not given back today. */
export async function raisedOverMidnight(
  t: Test,
  { ledger, clock }: LedgerUnderTest,
): Promise<void> {
  const more = await ledger.raise(ACCOUNT, spent(50))
  clock.atMs += NOON_TO_MIDNIGHT + HOUR
  await ledger.admit(anAdmission(spent(30)))
  if (more === null) throw new Error('nothing was granted')
  await ledger.lower(ACCOUNT, more)
  t.equal((await ledger.limitStates(ACCOUNT, spent(0)))[0]?.remaining, 70)
}
