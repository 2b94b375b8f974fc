/**
 * Goal: a budget that begins in the middle of its period counts what was used before in the same period,
 * exactly to the nano-dollar, beside running requests, by every subject, on both stores, also from an
 * archive.
 * Method: entries of an account tree in a store; then budgets admit their first request, and the ledger is
 * read in the background; the states of the limits are compared with sums over the entries. On a real
 * archive, sums that the store has removed are read from there.
 */
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { ArchiveCopier } from '../../src/store/archive/copier.js'
import { withArchive } from '../../src/store/archive/archived-ledger.js'
import { openArchiveEngine } from '../../src/store/archive/open-archive-engine.js'
import { schemaStatements } from '../../src/store/archive/schema-statements.js'
import type { WindowKind } from '../../src/base/limit-members.js'
import type { Config } from '../../src/config/config.js'
import { GatewayError } from '../../src/errors.js'
import type { LedgerEntry } from '../../src/ledger/entry.js'
import { BudgetSeeds, type SeedOptions } from '../../src/usage/seed-budgets.js'
import type { BudgetDemand, Ledger, QuotaDemand } from '../../src/store/ledger.js'
import { openStore } from '../../src/store/open-store.js'
import type { Store } from '../../src/store/store.js'
import { archiveConfig } from '../store/archive/archive-config.js'
import { ENGINES, engineMissing, startArchive } from '../helpers/archive-engines.js'
import { redisMissing, startRedis } from '../helpers/redis.js'
import { anotherDay } from '../helpers/long-suite.js'
import { anAdmission, aRow, DAY, HOUR, NOON } from '../store/ledger/sample-entries.js'

const MOST = 1_000_000_000
const COST = 501

async function opened(t: Test, kind: 'sqlite' | 'redis', clock: { nowMs: number }): Promise<Store> {
  // On a busy machine a reply of Redis may take long.
  const url =
    kind === 'sqlite' ? `sqlite:${t.testdir()}/store.db` : `${(await startRedis(t)).url()}?timeout_ms=9000`
  const store = await openStore(url, { nowMs: () => clock.nowMs, monotonicMs: () => clock.nowMs })
  t.teardown(() => store.close())
  return store
}

function seedsOf(
  t: Test,
  {
    ledger,
    clock,
    ...more
  }: Pick<SeedOptions, 'ledger'> & Partial<SeedOptions> & { clock: { nowMs: number } },
): BudgetSeeds {
  const seeds = new BudgetSeeds({
    ledger,
    kept: () => Promise.resolve({ entriesFromMs: 0, sumsFromMs: 0 }),
    ownerOf: (_, id) => Promise.resolve(id === 'acc_top' ? { name: 'company', createdAtMs: 0 } : null),
    warn: (_, cause) => t.fail(String(cause)),
    delaysMs: [0],
    nowMs: () => clock.nowMs,
    ...more,
  })
  t.teardown(() => seeds.close())
  return seeds
}

function demandOf(kind: WindowKind, subject: string, shared = false): BudgetDemand | QuotaDemand {
  if (kind === 'requests_total') return { kind, subject, shared, limit: MOST, cost: 1 }
  if (kind.startsWith('usd')) {
    return { kind, subject, shared, limitNanoUsd: MOST, costNanoUsd: COST } as BudgetDemand
  }
  return { kind, subject, shared, limit: MOST, cost: COST } as QuotaDemand
}

/** Admits the first request of a budget; resolves when the ledger was read. Returns the request's id. */
async function begin(
  { ledger, seeds }: { ledger: Ledger; seeds: BudgetSeeds },
  demand: BudgetDemand | QuotaDemand,
  row: Partial<LedgerEntry> = {},
): Promise<string> {
  const admission = anAdmission([demand], { row: { user: 'ada@example.com', ...row } })
  await ledger.admit(admission)
  seeds.admitted(admission)
  await delay(20)
  await seeds.idle()
  return admission.requestId
}

const ENTRIES: readonly Partial<LedgerEntry>[] = [
  { atMs: NOON - 40 * DAY, costNanoUsd: 7 },
  { atMs: NOON - 18 * DAY, costNanoUsd: 11 },
  { atMs: NOON - 2 * DAY, costNanoUsd: 101 },
  { atMs: NOON - 2 * HOUR, costNanoUsd: 1_003 },
  { atMs: NOON - 60_000, costNanoUsd: 10_007, keyId: 'key_two', model: 'claude', upstream: 'anthropic' },
  { atMs: NOON - 50_000, costNanoUsd: 100_019, accountId: 'acc_bob', accountPath: 'company/bob' },
  { atMs: NOON - 40_000, costNanoUsd: null, source: 'none', outcome: 'rate_limited', status: 429, usage: {} },
  {
    atMs: NOON - 39_000,
    costNanoUsd: null,
    source: 'none',
    outcome: 'malformed_request',
    status: 400,
    usage: {},
  },
  {
    atMs: NOON - 38_000,
    costNanoUsd: null,
    source: 'none',
    outcome: 'unknown_model',
    status: 404,
    usage: {},
  },
  {
    atMs: NOON - 30_000,
    costNanoUsd: 1_000_003,
    accountId: 'acc_eve',
    accountPath: 'other/eve',
    labels: 'team=b',
  },
  {
    atMs: NOON - 20_000,
    costNanoUsd: 13,
    accountId: 'shadow',
    keyId: 'shadow',
    accountPath: null,
    user: null,
  },
]

const OF_ADA = 1_003 + 10_007
/** The budget, and what was used in its period before it. */
const CASES: readonly (readonly [WindowKind, string, boolean, number])[] = [
  ['usd_day', 'key:key_one;own', false, 1_003],
  ['usd_week', 'key:key_one;own', false, 101 + 1_003],
  ['usd_month', 'key:key_one;own', false, 11 + 101 + 1_003],
  ['usd_total', 'key:key_one;own', false, 7 + 11 + 101 + 1_003],
  ['usd_day', 'key:key_one;model=claude', false, 0],
  ['usd_day', 'account:acc_ada', false, OF_ADA],
  ['usd_day', 'account:acc_ada;of-plan', false, OF_ADA],
  ['usd_day', 'account:acc_ada;model=claude', false, 10_007],
  ['usd_day', 'account:acc_top;own', true, OF_ADA + 100_019],
  ['usd_month', 'account:acc_top;own', true, 11 + 101 + OF_ADA + 100_019],
  ['usd_day', 'label:team=a', true, OF_ADA + 100_019],
  ['usd_day', 'label:team=a;value', true, OF_ADA + 100_019],
  ['usd_day', 'label:team=b', true, 1_000_003],
  ['usd_day', 'model:claude', true, 10_007],
  ['usd_day', 'model:gpt-5.4-mini', true, 1_003 + 100_019 + 1_000_003],
  ['usd_day', 'upstream:anthropic', true, 10_007],
  ['usd_day', 'user:ada@example.com', true, OF_ADA + 100_019 + 1_000_003],
  ['tokens_day', 'key:key_one;own', false, 120],
  ['tokens_total', 'account:acc_ada', false, 5 * 120],
  // The ledger does not tell these apart.
  ['usd_day', 'model:claude;plan=max', true, 0],
  ['usd_total', 'dimension:run=one', false, 0],
]

for (const [at, kind] of (['sqlite', 'redis'] as const).entries()) {
  const skip = kind === 'redis' && redisMissing()
  void t.test(kind, { skip }, async (t) => {
    const clock = { nowMs: NOON }
    const { ledger } = await opened(t, kind, clock)
    for (const entry of ENTRIES) {
      const of = { accountPath: 'company/ada', labels: 'team=a', user: 'ada@example.com' }
      await ledger.append(aRow({ ...of, ...entry }))
    }
    const seeds = seedsOf(t, { ledger, clock })
    const left = async (demand: BudgetDemand | QuotaDemand): Promise<number> => {
      const [state] = await ledger.limitStates('acc_ada', [demand])
      return MOST - (state?.remaining ?? Number.NaN)
    }
    for (const [window, subject, shared, used] of CASES) {
      const demand = demandOf(window, subject, shared)
      await begin({ ledger, seeds }, demand)
      t.equal(await left(demand), used + COST, `${window} of ${subject}: ${used}`)
    }

    await t.test('requests, of which a running one is counted already', async (t) => {
      const again = seedsOf(t, { ledger, clock, delaysMs: [0, 150] })
      const demand = demandOf('requests_total', 'account:acc_ada')
      const requestId = await begin({ ledger, seeds: again }, demand)
      await ledger.settle(aRow({ requestId, costNanoUsd: 0, keyId: 'key_five' }), {
        demands: [demand],
        takenFrom: 'reserved',
      })
      await delay(300)
      await again.idle()
      t.equal(await left(demand), 6)
    })

    await t.test('later requests add nothing', async (t) => {
      const demand = demandOf('usd_day', 'key:key_one;own')
      await begin({ ledger, seeds }, demand)
      t.equal(await left(demand), 1_003 + 2 * COST)
    })

    await t.test('a request that ran at the beginning is added when it has ended', async (t) => {
      const again = seedsOf(t, { ledger, clock, delaysMs: [0, 150] })
      const demand = demandOf('usd_day', 'key:key_three;own')
      const earlier = { keyId: 'key_three', atMs: NOON - 2 * 60_000 }
      const uncounted = anAdmission([], { row: earlier })
      await ledger.admit(uncounted)
      const requestId = await begin({ ledger, seeds: again }, demand, { keyId: 'key_three' })
      t.equal(await left(demand), COST)
      await ledger.settle(aRow({ ...earlier, requestId: uncounted.requestId, costNanoUsd: 77 }))
      await ledger.settle(aRow({ keyId: 'key_three', atMs: NOON, requestId, costNanoUsd: 300 }), {
        demands: [demand],
        takenFrom: 'reserved',
      })
      await delay(300)
      await again.idle()
      t.equal(await left(demand), 77 + 300)
    })

    await t.test('an addition whose reply was lost counts once', async (t) => {
      // SQLite replies in the process: what it does not confirm it has not done.
      if (kind === 'sqlite') return
      const warnings: unknown[] = []
      const lost = Object.assign(Object.create(ledger) as Ledger, {
        async addToBudget(...args: Parameters<Ledger['addToBudget']>) {
          const isAdded = await ledger.addToBudget(...args)
          if (warnings.length === 0) throw new Error('the connection ended')
          return isAdded
        },
      })
      const again = seedsOf(t, {
        ...{ ledger: lost, clock, delaysMs: [0, 150], retryMs: 50 },
        warn: (_, cause) => warnings.push(cause),
      })
      const demand = demandOf('usd_week', 'label:team=b', true)
      await begin({ ledger, seeds: again }, demand)
      await delay(400)
      await again.idle()
      t.equal(warnings.length, 1)
      t.equal(await left(demand), 1_000_003 + COST)
    })

    const sinceOf = async (demand: BudgetDemand | QuotaDemand): Promise<number | null | undefined> => {
      const [mark] = await ledger.budgetMarks('acc_ada', [demand])
      return mark?.sinceMs
    }

    await t.test('a reading that failed is done by the next process that meets the budget', async (t) => {
      const away = (): Promise<never> => Promise.reject(new GatewayError('archive_unavailable', 'away'))
      const joint = Object.assign(Object.create(ledger) as Ledger, { entries: away })
      const warnings: unknown[] = []
      const first = seedsOf(t, {
        ...{ ledger: joint, own: ledger, clock, delaysMs: [0, 1_000], retryMs: 60_000 },
        kept: (ofStore) => Promise.resolve({ entriesFromMs: ofStore ? NOON - DAY : 0, sumsFromMs: 0 }),
        warn: (_, cause) => warnings.push(cause),
      })
      const demand = demandOf('tokens_month', 'user:ada@example.com', true)
      await begin({ ledger, seeds: first }, demand)
      t.equal(warnings.length, 1)
      t.equal(await left(demand), 6 * 120 + COST, 'what the store has counts at once')
      t.equal(await sinceOf(demand), NOON - DAY, 'and it tells since when it counts')
      first.close()

      const late = { user: 'ada@example.com', accountPath: 'company/ada' }
      await ledger.append(aRow({ ...late, atMs: NOON - 3 * DAY, usage: { input: 1_000 } }))
      const restarted = seedsOf(t, { ledger, clock, delaysMs: [0, 150] })
      await begin({ ledger, seeds: restarted }, demand)
      t.equal(await left(demand), 6 * 120 + 1_000 + 2 * COST, 'it is complete, and counts once')
      t.equal(await sinceOf(demand), null)

      await ledger.append(aRow({ ...late, atMs: NOON - 4 * DAY, usage: { input: 7 } }))
      clock.nowMs = NOON + 200
      await delay(250)
      await restarted.idle()
      clock.nowMs = NOON
      t.equal(await left(demand), 6 * 120 + 1_007 + 2 * COST, 'an entry of a disk that was away is added')
      const [mark] = await ledger.budgetMarks('acc_ada', [demand])
      t.equal(mark?.begunMs, null, 'no reading is left')
      await begin({ ledger, seeds: seedsOf(t, { ledger, clock }) }, demand)
      t.equal(await left(demand), 6 * 120 + 1_007 + 3 * COST)
    })

    await t.test('tells since when it counts if the ledger lacks a part of its period', async (t) => {
      const kept = { entriesFromMs: NOON - DAY, sumsFromMs: NOON - 30 * DAY }
      const of = { ledger, clock, kept: () => Promise.resolve(kept) }
      const ownerOf: SeedOptions['ownerOf'] = (_, id) =>
        Promise.resolve(id === 'key_new' ? { name: id, createdAtMs: NOON - 20 * DAY } : null)
      const cases: readonly (readonly [WindowKind, string, boolean, number | null])[] = [
        ['requests_total', 'key:key_old;own', false, NOON - 30 * DAY],
        ['requests_total', 'key:key_new;own', false, null],
        ['tokens_month', 'key:key_old;own', false, null],
        ['requests_total', 'label:team=a', true, NOON - 30 * DAY],
        ['tokens_week', 'user:ada@example.com', true, NOON - DAY],
        ['tokens_day', 'user:ada@example.com', true, null],
        ['tokens_day', 'model:claude;plan=max', true, NOON],
        ['requests_total', 'dimension:run=two', false, NOON],
      ]
      for (const [window, subject, shared, wanted] of cases) {
        const demand = demandOf(window, subject, shared)
        await begin({ ledger, seeds: seedsOf(t, { ...of, ownerOf }) }, demand)
        t.equal(await sinceOf(demand), wanted, `${window} of ${subject}`)
      }
    })

    await t.test('one that goes on from the last period counts the whole period', async (t) => {
      const demand = demandOf('usd_day', 'key:key_six;own')
      clock.nowMs = NOON - DAY
      const yesterday = { keyId: 'key_six', atMs: clock.nowMs }
      await begin({ ledger, seeds: seedsOf(t, { ledger, clock }) }, demand, yesterday)
      clock.nowMs = NOON
      t.equal(await sinceOf(demand), undefined, 'no request of today yet')
      const earlier = { keyId: 'key_six', atMs: NOON - 3 * HOUR, costNanoUsd: 900 }
      await ledger.append(aRow(earlier))
      const admission = anAdmission([demand], { row: { keyId: 'key_six' } })
      await ledger.admit(admission)
      t.equal(await sinceOf(demand), null)
      const restarted = seedsOf(t, { ledger, clock })
      restarted.admitted(admission)
      await delay(20)
      await restarted.idle()
      t.equal(await left(demand), 900 + COST, 'also if its rule was away in between')
    })

    await t.test('one that begins with a request of an outage has a mark', async (t) => {
      const demand = demandOf('usd_week', 'key:key_seven;own')
      await ledger.append(aRow({ keyId: 'key_seven', atMs: NOON - HOUR, costNanoUsd: 70_000 }))
      const outage = { demands: [demand], takenFrom: 'nothing' } as const
      await ledger.settle(aRow({ keyId: 'key_seven', atMs: NOON - 10, costNanoUsd: 300 }), outage)
      t.ok(await sinceOf(demand))
      await begin({ ledger, seeds: seedsOf(t, { ledger, clock }) }, demand, { keyId: 'key_seven' })
      const spent = await left(demand)
      t.ok(spent >= 70_000 + 300 + COST, 'nothing is left out')
      t.ok(spent <= 70_000 + 600 + COST)
    })

    await t.test('a migration keeps the marks', async (t) => {
      const other = (await opened(t, kind, clock)).ledger
      for await (const batch of ledger.budgets()) await other.putBudgets(batch)
      const demands = [
        demandOf('usd_total', 'dimension:run=one'),
        demandOf('usd_day', 'key:key_six;own'),
        demandOf('requests_total', 'key:key_old;own'),
      ]
      t.same(await other.budgetMarks('acc_ada', demands), await ledger.budgetMarks('acc_ada', demands))
    })

    await t.test('requests that end while the ledger is read count once', async (t) => {
      const demand = demandOf('usd_month', 'key:key_four;own')
      const earlier = { keyId: 'key_four', atMs: NOON - 5_000 }
      for (let n = 0; n < 50; n += 1) await ledger.append(aRow({ ...earlier, costNanoUsd: 1_000 + n }))
      const running = Array.from({ length: 100 }, () => anAdmission([demand], { row: { keyId: 'key_four' } }))
      let ends: Promise<unknown>[] = []
      for (const [n, admission] of running.entries()) {
        const { isSlice = false } = await ledger.admit(admission)
        // As the limiter does: a budget of which a slice was granted has begun before.
        if (!isSlice) seeds.admitted(admission)
        const entry = aRow({ requestId: admission.requestId, keyId: 'key_four', costNanoUsd: 100 + n })
        const takenFrom = isSlice ? 'slice' : 'reserved'
        ends = [...ends, ledger.settle(entry, { demands: [demand], takenFrom })]
        // Moments without an end let a reading succeed.
        await delay(n % 10 === 0 ? 30 : 1)
      }
      await Promise.all(ends)
      await seeds.idle()
      const [sum] = await ledger.keyUse({
        accountId: 'acc_ada',
        keyIds: ['key_four'],
        fromMs: NOON,
        toMs: NOON,
      })
      const wanted = Number(sum?.costNanoUsd)
      // Slices are returned a while after the last request.
      for (let tries = 0; tries < 100 && (await left(demand)) !== wanted; tries += 1) await delay(100)
      t.equal(await left(demand), wanted)
    })
  })

  for (const [engineAt, name] of ENGINES.entries()) {
    const skipped = skip || anotherDay(at + engineAt, 2) || engineMissing(name)
    void t.test(`${kind} with ${name}`, { skip: skipped, timeout: 240_000 }, async (t) => {
      const clock = { nowMs: NOON - 3 * DAY }
      const store = await opened(t, kind, clock)
      const server = await startArchive(t, name)
      const config = archiveConfig({ url: server.url, hotHours: 1 })
      const engine = await openArchiveEngine(config)
      t.teardown(() => engine.close())
      for (const statement of schemaStatements({ engine: name, config })) await engine.run(statement)
      for (let n = 0; n < 20; n += 1) {
        await store.ledger.append(aRow({ atMs: clock.nowMs + n * 60_000, costNanoUsd: 1_000_000 + n }))
      }
      clock.nowMs = NOON - DAY
      const copier = new ArchiveCopier({
        ...{ store, engine, config, leader: { id: 'one', gateway: 'gw', pid: 1 } },
        nowMs: () => clock.nowMs,
        refused: () => undefined,
        warn: (message) => t.fail(message),
      })
      for (let quiet = 0; quiet < 2; clock.nowMs += 6_000) {
        quiet = (await copier.step()) === true ? 0 : quiet + 1
      }
      clock.nowMs = NOON
      // The store keeps sums of one day.
      await store.ledger.prune({
        ...{
          entriesBeforeMs: NOON - DAY,
          hoursBeforeMs: NOON - DAY,
          daysBeforeMs: NOON - DAY,
          isArchived: true,
        },
      })
      const days = Math.floor((Date.now() - NOON) / DAY) + 3
      const settings = { archive: config, ledger: { hoursDays: days, daysDays: days } }
      // Only these members are read.
      const joint = withArchive(store, () => settings as unknown as Pick<Config, 'archive' | 'ledger'>)
      const seeds = seedsOf(t, { ledger: joint.ledger, clock })
      await store.ledger.append(aRow({ atMs: NOON - 5_000, costNanoUsd: 5 }))
      const demand = demandOf('usd_month', 'key:key_one;own')
      await begin({ ledger: store.ledger, seeds }, demand)
      const [state] = await store.ledger.limitStates('acc_ada', [demand])
      t.equal(MOST - (state?.remaining ?? 0), 20_000_190 + 5 + COST)
      await copier.close()
    })
  }
}
