/**
 * The test suite of the `Ledger` interface, which every engine passes. `newUrl` returns the URL of a new,
 * empty store; the test sets the clock of the ledger.
 */
import type { Test } from 'tap'
import { openStore } from '../../../src/store/open-store.js'
import type { Demand, LimitState } from '../../../src/store/ledger.js'
import { anotherStore } from '../../helpers/long-suite.js'
import type { NewUrl } from '../contract/store-contract.js'
import { budgets, calendar, owed, waits, weeks } from './budgets.js'
import { assumedTokens, kept, owedQuotas, quotas, totals } from './quotas.js'
import { killedWriters } from './kills.js'
import { crowds, exactness } from './races.js'
import { expiry, jumps, renewal } from './leases.js'
import { bounded, pages, sorted } from './pages.js'
import { raised, raisedOverMidnight, raisedTogether } from './raises.js'
import { usedByAccounts, usedInAnyRange, usedInEndedDays, usedInMonths } from './account-use.js'
import { appended, exported, pruned, settled, summed } from './entries.js'
import { cellsOfEntries, exactRanges } from './exact-usage.js'
import { narrowed } from './key-use.js'
import { groupedInEndedDays, summedByProperty } from './property-use.js'
import {
  anAdmission,
  aName,
  aRow,
  budget,
  MINUTE,
  no,
  NOON,
  places,
  requests,
  standing,
  TestClock,
  tokens,
  yes,
  type LedgerUnderTest,
} from './sample-entries.js'

/** Registers the tests of one engine. */
export function ledgerContract(t: Test, engine: string, newUrl: NewUrl): void {
  const tests: Readonly<Record<string, (t: Test, under: LedgerUnderTest) => Promise<void>>> = {
    'rates of requests': requestRates,
    'rates of tokens': tokenRates,
    'concurrent requests': concurrency,
    budgets,
    'amounts of tokens and requests': quotas,
    'amounts that never reset': totals,
    'amounts that are kept for some time': kept,
    'amounts of requests without a reservation': owedQuotas,
    'tokens that were assumed': assumedTokens,
    'days and months': calendar,
    weeks,
    'wait of a request that a budget refuses': waits,
    'charges of requests without a reservation': owed,
    'raised reservation': raised,
    'raise of several limits': raisedTogether,
    'raise over midnight': raisedOverMidnight,
    'all or nothing': allOrNothing,
    'repeated request': repeated,
    'extreme numbers and names': edges,
    'expired leases': expiry,
    'renewed leases': renewal,
    'a clock that jumps': jumps,
    'entries of settled requests': settled,
    'appended entries': appended,
    'use of accounts': usedByAccounts,
    'use of accounts in ended days': usedInEndedDays,
    'use of accounts in months': usedInMonths,
    'use of accounts in any range': usedInAnyRange,
    sums: summed,
    'sums of keys and models': narrowed,
    'sums by property': summedByProperty,
    cells: cellsOfEntries,
    'exact ranges': exactRanges,
    'groups in ended days': groupedInEndedDays,
    pages,
    'pages with filters': bounded,
    'pages in every order': sorted,
    export: exported,
    pruning: pruned,
    'concurrent admissions': crowds,
    'exact settlements': exactness,
    'killed writers': killedWriters,
  }
  void t.test(`ledger: ${engine}`, (t) => {
    for (const [index, [name, test]] of Object.entries(tests).entries()) {
      const run = async (t: Test) => test(t, await openedLedger(t, await newUrl(t)))
      void t.test(name, { skip: anotherStore(engine, index) }, run)
    }
    void t.test('closing', async (t) => closing(t, await newUrl(t)))
    t.end()
  })
}

async function openedLedger(t: Test, url: string): Promise<LedgerUnderTest> {
  const clock = new TestClock()
  const store = await openStore(url, { nowMs: clock.now, monotonicMs: clock.monotonic })
  t.teardown(() => store.close())
  return { url, ledger: store.ledger, clock }
}

async function requestRates(t: Test, { ledger, clock }: LedgerUnderTest): Promise<void> {
  const three = [requests(3)]
  t.same(
    await ledger.limitStates('acc_ada', three),
    [standing({ limit: 3, remaining: 3, resetMs: 0 })],
    'a new limit is unused',
  )
  t.same(await ledger.admit(anAdmission(three)), yes(standing({ limit: 3, remaining: 2, resetMs: 20_000 })))
  t.same(await ledger.admit(anAdmission(three)), yes(standing({ limit: 3, remaining: 1, resetMs: 40_000 })))
  t.same(await ledger.admit(anAdmission(three)), yes(standing({ limit: 3, remaining: 0, resetMs: 60_000 })))
  t.same(
    await ledger.admit(anAdmission(three)),
    no(standing({ limit: 3, remaining: 0, resetMs: 60_000, retryAfterMs: 20_000 })),
    'refuses request n + 1',
  )
  clock.atMs += 19_999
  t.same(
    await ledger.admit(anAdmission(three)),
    no(standing({ limit: 3, remaining: 0, resetMs: 40_001, retryAfterMs: 1 })),
    'refuses a request 1 ms too early',
  )
  t.same(
    await ledger.limitStates('acc_ada', three),
    [standing({ limit: 3, remaining: 0, resetMs: 40_001, retryAfterMs: 1 })],
    'limitStates returns the same',
  )
  clock.atMs += 1
  t.same(
    await ledger.admit(anAdmission(three)),
    yes(standing({ limit: 3, remaining: 0, resetMs: 60_000 })),
    'admits a request when its time has come',
  )
  t.same((await ledger.limitStates('acc_ada', [requests(5)]))[0]?.remaining, 2, 'uses a changed limit')
  t.same((await ledger.limitStates('acc_ada', [requests(2)]))[0]?.remaining, 0)
  clock.atMs += MINUTE
  t.same(
    await ledger.limitStates('acc_ada', three),
    [standing({ limit: 3, remaining: 3, resetMs: 0 })],
    'is unused again after a minute',
  )

  const other = requests(3, { subject: 'key:two' })
  t.same(
    await ledger.limitStates('acc_ada', [other]),
    [standing({ limit: 3, remaining: 3, resetMs: 0 })],
    'limits of accounts are separate',
  )
  for (let at = 0; at < 7; at += 1) {
    const { admitted } = await ledger.admit(anAdmission([requests(7, { subject: 'key:seven' })]))
    t.ok(admitted, 'admits seven requests a minute')
  }
  const shared = requests(2, { subject: 'model:m', shared: true })
  t.ok((await ledger.admit(anAdmission([shared], { accountId: 'acc_ada' }))).admitted)
  t.ok((await ledger.admit(anAdmission([shared], { accountId: 'acc_bob' }))).admitted)
  t.notOk((await ledger.admit(anAdmission([shared], { accountId: 'acc_eve' }))).admitted)
}

async function tokenRates(t: Test, { ledger, clock }: LedgerUnderTest): Promise<void> {
  const first = anAdmission([tokens(1_000, 600)])
  t.same(await ledger.admit(first), yes(standing({ limit: 1_000, remaining: 400, resetMs: 36_000 })))
  const refused = await ledger.admit(anAdmission([tokens(1_000, 600)]))
  t.same(refused, no(standing({ limit: 1_000, remaining: 400, resetMs: 36_000, retryAfterMs: 12_000 })))
  const never = await ledger.admit(anAdmission([tokens(1_000, 1_001)]))
  t.same(
    never,
    no(standing({ limit: 1_000, remaining: 400, resetMs: 36_000, retryAfterMs: -1 })),
    'refuses more than the whole limit',
  )
  t.ok((await ledger.admit(anAdmission([tokens(1_000, 0)]))).admitted, 'admits a demand of 0')

  await ledger.settle(aRow({ requestId: first.requestId, usage: { input: 90, output: 10 } }))
  t.same(await ledger.limitStates('acc_ada', [tokens(1_000, 1)]), [
    standing({ limit: 1_000, remaining: 900, resetMs: 6_000 }),
  ])
  const second = anAdmission([tokens(1_000, 900)])
  await ledger.admit(second)
  await ledger.settle(aRow({ requestId: second.requestId, usage: { input: 1_000, output: 400 } }))
  t.same(
    await ledger.limitStates('acc_ada', [tokens(1_000, 1)]),
    [standing({ limit: 1_000, remaining: 0, resetMs: 90_000, retryAfterMs: 30_060 })],
    'usage above the reservation is charged, and the remaining amount is never negative',
  )
  clock.atMs += 90_000
  const unused = anAdmission([tokens(1_000, 700)])
  await ledger.admit(unused)
  await ledger.settle(aRow({ requestId: unused.requestId, source: 'none', usage: {} }))
  t.same(
    await ledger.limitStates('acc_ada', [tokens(1_000, 1)]),
    [standing({ limit: 1_000, remaining: 1_000, resetMs: 0 })],
    'returns all tokens',
  )
  const unknown = anAdmission([tokens(1_000, 700)])
  await ledger.admit(unknown)
  await ledger.settle(aRow({ requestId: unknown.requestId, source: 'reported', usage: {} }))
  t.same(
    (await ledger.limitStates('acc_ada', [tokens(1_000, 1)]))[0]?.remaining,
    300,
    'unknown usage stays charged as reserved',
  )
}

async function concurrency(t: Test, { ledger }: LedgerUnderTest): Promise<void> {
  const two = [places(2)]
  const first = anAdmission(two)
  t.same(await ledger.admit(first), yes(standing({ limit: 2, remaining: 1, resetMs: 0 })))
  t.same(await ledger.admit(anAdmission(two)), yes(standing({ limit: 2, remaining: 0, resetMs: 0 })))
  const refused = await ledger.admit(anAdmission(two))
  t.equal(refused.admitted, false)
  t.equal(refused.limitStates[0]?.remaining, 0)
  t.ok((refused.limitStates[0]?.retryAfterMs ?? 0) > 0, 'the wait is above 0')
  t.same(
    (await ledger.limitStates('acc_ada', [places(5)]))[0],
    standing({ limit: 5, remaining: 3, resetMs: 0 }),
  )
  await ledger.settle(aRow({ requestId: first.requestId }))
  await ledger.settle(aRow({ requestId: first.requestId }))
  t.same(
    await ledger.admit(anAdmission(two)),
    yes(standing({ limit: 2, remaining: 0, resetMs: 0 })),
    'admits a request for the free slot',
  )
  t.notOk((await ledger.admit(anAdmission(two))).admitted, 'refuses the next request')
  const none = await ledger.admit(anAdmission([places(0, 'key:none')]))
  t.same(
    none,
    no(standing({ limit: 0, remaining: 0, resetMs: 0, retryAfterMs: -1 })),
    'a limit of 0 never admits',
  )
}

async function allOrNothing(t: Test, { ledger }: LedgerUnderTest): Promise<void> {
  const demands = (cost: number): Demand[] => [
    requests(10),
    tokens(1_000, 100),
    places(4),
    budget('usd_day', { limitNanoUsd: 500, costNanoUsd: cost }),
    budget('usd_month', { limitNanoUsd: 900, costNanoUsd: cost }),
    requests(10, { subject: 'model:m', shared: true }),
  ]
  const before = await ledger.limitStates('acc_ada', demands(0))
  const { admitted, limitStates } = await ledger.admit(anAdmission(demands(600)))
  t.equal(admitted, false, 'refuses if one of six limits is exceeded')
  t.same(
    limitStates.map(({ remaining }) => remaining),
    [10, 1_000, 4, 500, 900, 10],
    'in the order of the demands',
  )
  t.same(
    limitStates.map(({ retryAfterMs }) => retryAfterMs),
    [0, 0, 0, -1, 0, 0],
    'only the exceeded limit reports a wait',
  )
  t.same(await ledger.limitStates('acc_ada', demands(0)), before, 'a refusal takes nothing of any limit')
  const fine = await ledger.admit(anAdmission(demands(400)))
  t.equal(fine.admitted, true)
  t.same(
    fine.limitStates.map(({ remaining }) => remaining),
    [9, 900, 3, 100, 500, 9],
  )
  t.same((await ledger.admit(anAdmission([]))).admitted, true, 'admits a request without demands')

  const twice = [places(3, 'key:twice'), places(3, 'key:twice')]
  t.ok((await ledger.admit(anAdmission(twice))).admitted)
  t.notOk((await ledger.admit(anAdmission(twice))).admitted, 'counts two demands of one subject')
  t.equal((await ledger.limitStates('acc_ada', twice))[0]?.remaining, 1)
}

async function repeated(t: Test, { ledger }: LedgerUnderTest): Promise<void> {
  const demands = [
    requests(10),
    tokens(1_000, 100),
    places(4),
    budget('usd_day', { limitNanoUsd: 500, costNanoUsd: 50 }),
  ]
  const asked = anAdmission(demands)
  const remaining = async () => (await ledger.limitStates('acc_ada', demands)).map((each) => each.remaining)
  t.ok((await ledger.admit(asked)).admitted)
  const after = await remaining()
  t.same(after, [9, 900, 3, 450])
  t.ok((await ledger.admit(asked)).admitted, 'a repeated admission has the same result')
  const [first, second] = await Promise.all([ledger.admit(asked), ledger.admit(asked)])
  t.ok(first.admitted && second.admitted)
  t.same(await remaining(), after, 'a repeated admission takes nothing')

  const row = aRow({ requestId: asked.requestId, costNanoUsd: 20 })
  t.equal(await ledger.settle(row), 'settled')
  const settledOnce = await remaining()
  t.same(settledOnce, [9, 880, 4, 480])
  t.equal(await ledger.settle({ ...row, costNanoUsd: 400 }), 'already')
  t.same(await remaining(), settledOnce, 'a second settlement changes nothing')
  t.equal((await ledger.entry('acc_ada', row.requestId))?.costNanoUsd, 20)
  t.ok((await ledger.admit(asked)).admitted, 'admitting a settled request takes nothing')
  t.same(await remaining(), settledOnce)
  const refused = anAdmission([requests(0, { subject: 'key:no' })])
  t.notOk((await ledger.admit(refused)).admitted)
  t.ok((await ledger.admit({ ...refused, demands })).admitted, 'a refusal is not stored')
}

async function edges(t: Test, { ledger }: LedgerUnderTest): Promise<void> {
  const most = Number.MAX_SAFE_INTEGER
  const kinds: ((limit: number, cost: number) => Demand)[] = [
    (limit, cost) => requests(limit, { cost, subject: aName('key') }),
    (limit, cost) => tokens(limit, cost, aName('key')),
    (limit, cost) => budget('usd_day', { limitNanoUsd: limit, costNanoUsd: cost, subject: aName('key') }),
    (limit, cost) => budget('usd_month', { limitNanoUsd: limit, costNanoUsd: cost, subject: aName('key') }),
  ]
  for (const kind of kinds) {
    const whole = kind(most, most)
    const [before] = await ledger.limitStates('acc_ada', [whole])
    t.same(before?.remaining, most, 'the largest limit is exact')
    t.ok((await ledger.admit(anAdmission([whole]))).admitted)
    const { admitted, limitStates } = await ledger.admit(anAdmission([whole]))
    t.equal(admitted, false)
    t.ok(limitStates.every(sane), `no number is out of range: ${JSON.stringify(limitStates)}`)
    t.equal(limitStates[0]?.remaining, 0)
    const over = await ledger.admit(anAdmission([kind(most - 1, most)]))
    t.equal(over.limitStates[0]?.retryAfterMs, -1)
    const nothing = kind(0, 0)
    t.ok((await ledger.admit(anAdmission([nothing]))).admitted, 'admits a demand of 0 of a limit of 0')
    const some = await ledger.admit(anAdmission([kind(0, 1)]))
    t.equal(some.admitted, false)
    t.ok(some.limitStates.every(sane))
    t.equal(some.limitStates[0]?.retryAfterMs, -1)
  }
  const names = ['a', 'A', '{a}', '}{', '{', 'a:b', ':', '*', '[ab]?', 'ä', '🔑', '%00', '\u{1}', "'"]
  names.push('x'.repeat(300), 'x'.repeat(299), 'ü'.repeat(300), '__proto__', 'constructor', '0', '-1')
  for (const subject of names) {
    for (const shared of [false, true]) {
      const demand = requests(1, { subject, shared })
      const { admitted } = await ledger.admit(anAdmission([demand]))
      t.ok(admitted, `${subject.slice(0, 8)} has a counter of its own`)
      t.equal((await ledger.limitStates('acc_ada', [demand]))[0]?.remaining, 0)
    }
  }
}

async function closing(t: Test, url: string): Promise<void> {
  const store = await openStore(url, { nowMs: () => NOON })
  const { ledger } = store
  await ledger.settle(aRow())
  await store.close()
  const admission = anAdmission([requests(1)])
  const asked: (() => Promise<unknown>)[] = [
    () => ledger.admit(admission),
    () => ledger.settle(aRow()),
    () => ledger.append(aRow()),
    () => ledger.renew([admission], MINUTE),
    () => ledger.expire(),
    () => ledger.limitStates('acc_ada', [requests(1)]),
    () => ledger.sums({ accountId: null, by: 'day', fromMs: 0, toMs: NOON }),
    () => ledger.entries({ accountId: null, after: null, limit: 10 }),
    () => ledger.entry(null, 'req_1'),
    () => ledger.lastUse('acc_ada'),
    () => ledger.prune({ entriesBeforeMs: 0, hoursBeforeMs: 0, daysBeforeMs: 0 }),
    async () => {
      for await (const batch of ledger.export(0)) t.fail(`a batch of ${batch.length}`)
    },
  ]
  for (const ask of asked) {
    await t.rejects(ask(), { name: 'GatewayError', kind: 'store_unavailable' })
  }
}

function sane({ limit, remaining, resetMs, retryAfterMs }: LimitState): boolean {
  const whole = [limit, remaining, resetMs].every((n) => Number.isInteger(n) && n >= 0)
  return whole && remaining <= limit && Number.isInteger(retryAfterMs) && retryAfterMs >= -1
}
