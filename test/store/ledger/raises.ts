/** The tests of every ledger for `raise` and `lower`. */
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
  return [budget('usd_day', { limitNanoUsd: DAY_LIMIT, costNanoUsd: cost })]
}

/** A raise takes all of its demands or none, until `lower` returns them. */
export async function raised(t: Test, { ledger }: LedgerUnderTest): Promise<void> {
  const left = async (): Promise<number | undefined> =>
    (await ledger.limitStates(ACCOUNT, spent(0)))[0]?.remaining
  const first = anAdmission(spent(40))
  t.same(
    await ledger.admit(first),
    yes(standing({ limit: DAY_LIMIT, remaining: 60, resetMs: NOON_TO_MIDNIGHT })),
  )
  const more = await ledger.raise(ACCOUNT, spent(50))
  t.equal(await left(), 10)
  t.equal(await ledger.raise(ACCOUNT, spent(11)), null, 'refuses more than remains')
  t.equal(await left(), 10, 'a refusal takes nothing')
  t.same(
    await ledger.admit(anAdmission(spent(20))),
    no(standing({ limit: DAY_LIMIT, remaining: 10, resetMs: NOON_TO_MIDNIGHT, retryAfterMs: SOON })),
    'the wait is short, because the amount may be returned',
  )
  if (more === null) throw new Error('nothing was granted')
  await ledger.lower(ACCOUNT, more)
  t.equal(await left(), 60)
  await ledger.settle(aRow({ requestId: first.requestId, costNanoUsd: 70 }))
  t.equal(await left(), 30, 'charges the cost of both attempts')
  t.equal((await ledger.admit(anAdmission(spent(31)))).admitted, false)
  t.equal((await ledger.admit(anAdmission(spent(30)))).admitted, true)
}

/** A raise of several limits, one of which may be exceeded. */
export async function raisedTogether(t: Test, { ledger }: LedgerUnderTest): Promise<void> {
  const shared = {
    ...budget('usd_month', { limitNanoUsd: 50, costNanoUsd: 20, subject: 'model:gpt-4o' }),
    shared: true,
  }
  const demands = [tokens(1_000, 300), ...spent(60), shared]
  const remaining = async (): Promise<number[]> =>
    (await ledger.limitStates(ACCOUNT, demands)).map((each) => each.remaining)
  const before = await remaining()
  t.same(before, [1_000, 100, 50])
  const more = await ledger.raise(ACCOUNT, demands)
  t.same(await remaining(), [700, 40, 30])
  t.equal(await ledger.raise(ACCOUNT, demands), null, 'the budget of the day is exceeded')
  t.same(await remaining(), [700, 40, 30], 'a refusal takes nothing of other limits')
  const isOneShort = [tokens(1_000, 100), ...spent(10), { ...shared, costNanoUsd: 31 }]
  t.equal(await ledger.raise('acc_bob', isOneShort), null, 'the budget of the month is shared by accounts')
  t.same(
    (await ledger.limitStates('acc_bob', isOneShort)).map((each) => each.remaining),
    [1_000, 100, 30],
    'demands before the refused one are returned',
  )
  if (more === null) throw new Error('nothing was granted')
  await ledger.lower(ACCOUNT, more)
  t.same(await remaining(), before)
}

/** `lower` does not return amounts of a day that is over. */
export async function raisedOverMidnight(t: Test, { ledger, clock }: LedgerUnderTest): Promise<void> {
  const more = await ledger.raise(ACCOUNT, spent(50))
  clock.atMs += NOON_TO_MIDNIGHT + HOUR
  await ledger.admit(anAdmission(spent(30)))
  if (more === null) throw new Error('nothing was granted')
  await ledger.lower(ACCOUNT, more)
  t.equal((await ledger.limitStates(ACCOUNT, spent(0)))[0]?.remaining, 70)
}
