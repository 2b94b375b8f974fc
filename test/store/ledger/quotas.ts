/** The tests of every ledger for amounts of tokens and requests, and for amounts that never reset. */
import type { Test } from 'tap'
import type { Demand, QuotaDemand } from '../../../src/store/ledger.js'
import { anAdmission, aRow, budget, DAY, HOUR, type LedgerUnderTest } from './sample-entries.js'

/** A demand on an amount of tokens or requests. */
function quota(kind: QuotaDemand['kind'], limit: number, cost: number): QuotaDemand {
  return { kind, subject: 'key:one', shared: false, limit, cost }
}

/** Tokens of days, weeks and months reserve and settle as budgets do, and begin again with their window. */
export async function quotas(t: Test, { ledger, clock }: LedgerUnderTest): Promise<void> {
  const demands = (cost: number): Demand[] => [
    quota('tokens_day', 500, cost),
    quota('tokens_week', 900, cost),
    quota('tokens_month', 2_000, cost),
    quota('tokens_total', 3_000, cost),
    quota('requests_total', 9, 1),
  ]
  const left = async () => (await ledger.limitStates('acc_ada', demands(1))).map(({ remaining }) => remaining)
  t.same(await left(), [500, 900, 2_000, 3_000, 9])
  const first = anAdmission(demands(400))
  t.ok((await ledger.admit(first)).admitted)
  t.same(await left(), [100, 500, 1_600, 2_600, 8], 'reserves the maximum')
  t.notOk((await ledger.admit(anAdmission(demands(101)))).admitted, 'n + 1')
  t.same(await left(), [100, 500, 1_600, 2_600, 8], 'a refusal takes nothing')
  await ledger.settle(aRow({ requestId: first.requestId, usage: { input: 100, output: 20 } }))
  t.same(await left(), [380, 780, 1_880, 2_880, 8], 'settled by the reply; the request stays counted')
  const unsent = anAdmission(demands(50))
  await ledger.admit(unsent)
  await ledger.settle(aRow({ requestId: unsent.requestId, usage: {}, source: 'none', costNanoUsd: 0 }))
  t.same(await left(), [380, 780, 1_880, 2_880, 7], 'without tokens, none are counted')
  const raise = await ledger.raise('acc_ada', [
    quota('tokens_day', 500, 30),
    quota('tokens_total', 3_000, 30),
  ])
  t.same(await left(), [350, 780, 1_880, 2_850, 7])
  if (raise !== null) await ledger.lower('acc_ada', raise)
  t.same(await left(), [380, 780, 1_880, 2_880, 7])
  clock.atMs += DAY
  t.same(await left(), [500, 780, 1_880, 2_880, 7], 'a new day')
  clock.atMs += 20 * DAY
  t.same(await left(), [500, 900, 2_000, 2_880, 7], 'a new week and month')
  const spent = []
  for await (const batch of ledger.budgets()) spent.push(...batch)
  const totals = spent.filter(({ kind }) => kind.endsWith('_total'))
  t.same(totals.map(({ kind, period, amount }) => [kind, period, amount]).sort(), [
    ['requests_total', 1, 2],
    ['tokens_total', 1, 120],
  ])
  await ledger.putBudgets(totals.map((each) => ({ ...each, amount: each.amount + 1 })))
  t.same(await left(), [500, 900, 2_000, 2_879, 6], 'a migration keeps them')
}

/** An amount that never resets is refused without a wait, unless a running request may return a part. */
export async function totals(t: Test, { ledger, clock }: LedgerUnderTest): Promise<void> {
  const demands = (cost: number): Demand[] => [
    budget('usd_total', { limitNanoUsd: 100, costNanoUsd: cost }),
    quota('requests_total', 3, 1),
  ]
  const states = async (cost: number) => (await ledger.limitStates('acc_ada', demands(cost))).map(waitOf)
  const first = anAdmission(demands(60))
  t.ok((await ledger.admit(first)).admitted)
  t.same(await states(41), [1_000, 0], 'a running request may return a part')
  t.same(await states(101), [-1, 0], 'more than the whole amount')
  await ledger.settle(aRow({ requestId: first.requestId, costNanoUsd: 70 }))
  t.same(await states(31), [-1, 0], 'spent')
  t.same(await states(30), [0, 0])
  clock.atMs += 400 * DAY
  t.same(await states(31), [-1, 0], 'a year later, too')
  t.ok((await ledger.admit(anAdmission(demands(0)))).admitted)
  t.ok((await ledger.admit(anAdmission(demands(0)))).admitted)
  t.same(await states(0), [0, -1], 'all requests are used')
  await ledger.prune({ entriesBeforeMs: 0, hoursBeforeMs: 0, daysBeforeMs: 0 })
  t.same(await states(31), [-1, -1], 'pruning keeps it')
}

/** An amount with a time to keep is dropped when it was not used for so long. */
export async function kept(t: Test, { ledger, clock, url }: LedgerUnderTest): Promise<void> {
  const demand = { ...quota('requests_total', 3, 1), subject: 'dimension:run=one', keepMs: HOUR }
  const left = async () => (await ledger.limitStates('acc_ada', [demand]))[0]?.remaining
  const used = anAdmission([demand])
  t.ok((await ledger.admit(used)).admitted)
  await ledger.settle(aRow({ requestId: used.requestId }))
  t.equal(await left(), 2)
  // Redis drops it by its own clock.
  if (!url.startsWith('sqlite')) return
  clock.atMs += HOUR - 1
  await ledger.prune({ entriesBeforeMs: 0, hoursBeforeMs: 0, daysBeforeMs: 0 })
  t.equal(await left(), 2)
  clock.atMs += 2 * DAY
  await ledger.prune({ entriesBeforeMs: 0, hoursBeforeMs: 0, daysBeforeMs: 0 })
  t.equal(await left(), 3)
}

function waitOf({ retryAfterMs }: { readonly retryAfterMs: number }): number {
  return retryAfterMs
}

/** Amounts of tokens count what may have been used, as budgets do; rates of a minute what was received. */
export async function assumedTokens(t: Test, { ledger }: LedgerUnderTest): Promise<void> {
  const demands = (cost: number): Demand[] => [
    { kind: 'tokens', subject: 'key:one', shared: false, perMinute: 60_000, cost },
    ...(['tokens_day', 'tokens_week', 'tokens_month', 'tokens_total'] as const).map((kind) =>
      quota(kind, 5_000, cost),
    ),
  ]
  const left = async () => (await ledger.limitStates('acc_ada', demands(1))).map(({ remaining }) => remaining)
  const first = anAdmission(demands(2_000))
  t.ok((await ledger.admit(first)).admitted)
  const cut = { source: 'assumed', usage: { input: 200, output: 1_800 }, rateTokens: 250 } as const
  await ledger.settle(aRow({ requestId: first.requestId, ...cut }))
  t.same(await left(), [59_750, 3_000, 3_000, 3_000, 3_000], 'a cut stream')
  const unsent = anAdmission(demands(1_000))
  t.ok((await ledger.admit(unsent)).admitted)
  const none = { source: 'none', usage: {}, costNanoUsd: 0 } as const
  await ledger.settle(aRow({ requestId: unsent.requestId, ...none }))
  t.same(await left(), [59_750, 3_000, 3_000, 3_000, 3_000], 'a request that was not sent')
  const unknown = anAdmission(demands(1_000))
  t.ok((await ledger.admit(unknown)).admitted)
  await ledger.settle(aRow({ requestId: unknown.requestId, source: 'assumed', usage: {} }))
  t.same(await left(), [58_750, 2_000, 2_000, 2_000, 2_000], 'an unknown amount: as reserved')
  await ledger.settle(aRow(cut), { demands: demands(1_900), takenFrom: 'nothing' })
  t.same((await left()).slice(1), [0, 0, 0, 0], 'without the store: when the entry is written')
}

/** Used while the store was unavailable: counted when the entry is written. */
export async function owedQuotas(t: Test, { ledger }: LedgerUnderTest): Promise<void> {
  const demands = [
    quota('tokens_day', 500, 200),
    quota('requests_total', 5, 1),
    { ...quota('tokens_total', 900, 200), subject: 'model:m', shared: true },
    budget('usd_total', { limitNanoUsd: 1_000, costNanoUsd: 60 }),
  ]
  const left = async () => (await ledger.limitStates('acc_ada', demands)).map(({ remaining }) => remaining)
  const entry = aRow({ usage: { input: 70, output: 30 }, costNanoUsd: 25 })
  await ledger.settle(entry, { demands, takenFrom: 'nothing' })
  t.same(await left(), [400, 4, 800, 975])
}
