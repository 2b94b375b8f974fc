/**
 * Goal: a settlement that comes after its reservation has expired replaces what was assumed, wherever the
 * former entry is by then: in the store, also in the archive, or in the archive alone with its sums. Each
 * entry counts once at every read, at every moment of the way.
 * Method: real stores and engines; the same final entries in a store of its own have equal figures.
 */
import t, { type Test } from 'tap'
import { withArchive } from '../../../src/store/archive/archived-ledger.js'
import { ArchiveCopier } from '../../../src/store/archive/copier.js'
import { openArchiveEngine } from '../../../src/store/archive/open-archive-engine.js'
import { schemaStatements } from '../../../src/store/archive/schema-statements.js'
import { verifyHours } from '../../../src/store/archive/verify.js'
import type { LedgerEntry } from '../../../src/ledger/entry.js'
import type { BudgetDemand, Ledger } from '../../../src/store/ledger.js'
import { addedUp } from '../../../src/store/records/count-usage.js'
import { openStore } from '../../../src/store/open-store.js'
import type { Store } from '../../../src/store/store.js'
import { ENGINES, engineMissing, archiveDatabase } from '../../helpers/archive-engines.js'
import { anotherDay } from '../../helpers/long-suite.js'
import { redisMissing, startRedis } from '../../helpers/redis.js'
import { archiveConfig } from './archive-config.js'
import { anEntry, SOME_TIME_MS } from './entries.js'

const HOUR_MS = 3_600_000
const clock = { nowMs: SOME_TIME_MS }
const BUDGET: BudgetDemand = {
  ...{ kind: 'usd_month', subject: 'key:key_1', shared: false },
  ...{ limitNanoUsd: 1_000_000, costNanoUsd: 900 },
}
const RESERVATION = { demands: [BUDGET], takenFrom: 'reserved' } as const

async function storeOf(t: Test, kind: 'sqlite' | 'redis', file: string): Promise<Store> {
  const url = kind === 'sqlite' ? `sqlite:${file}` : (await startRedis(t)).url()
  const store = await openStore(url, { nowMs: () => clock.nowMs, monotonicMs: () => clock.nowMs })
  t.teardown(() => store.close())
  return store
}

/** The entry of a request whose process has vanished; it used the other one. */
function pair(number: number, atMs: number): readonly [lost: LedgerEntry, used: LedgerEntry] {
  const used = anEntry(number, { atMs, accountId: 'acc_1', keyId: 'key_1', costNanoUsd: 100 + number })
  const assumed = { outcome: 'lost', status: 500, source: 'assumed', costNanoUsd: 900 } as const
  return [{ ...used, ...assumed, usage: { input: 5_000, output: 9_000 }, upstream: 'other', hops: {} }, used]
}

/** Figures from every door, as text: amounts may be bigints. */
async function figuresOf(ledger: Ledger): Promise<string[]> {
  const toMs = SOME_TIME_MS + 10 * HOUR_MS
  const range = { accountId: null, fromMs: SOME_TIME_MS - HOUR_MS, toMs }
  const entries = await ledger.entries({ ...range, after: null, limit: 500 })
  const exported: LedgerEntry[] = []
  for await (const some of ledger.export(0)) exported.push(...some)
  const cells = await ledger.cells({ ...range, stepMs: HOUR_MS })
  const uses = await ledger.accountUse({ fromMs: SOME_TIME_MS, toMs: toMs - 1 })
  const textOf = (record: object) =>
    Object.entries(record)
      .map(([member, value]: [string, unknown]) => `${member} ${String(value)}`)
      .sort()
      .join('; ')
  return [
    ...entries.entries.map(({ requestId, outcome, costNanoUsd }) => `${requestId} ${outcome} ${costNanoUsd}`),
    ...exported.map(({ requestId, costNanoUsd }) => `exported ${requestId} ${costNanoUsd}`),
    ...(await ledger.sums({ ...range, by: 'hour', toMs: toMs - 1 })).map(textOf).sort(),
    ...(await ledger.sums({ ...range, by: 'day', property: 'label=app=' })).map(textOf).sort(),
    ...addedUp(cells, (sum) => sum)
      .map(textOf)
      .sort(),
    ...uses.map(textOf).sort(),
  ]
}

for (const [engineAt, name] of ENGINES.entries()) {
  for (const [storeAt, kind] of (['sqlite', 'redis'] as const).entries()) {
    const skip =
      anotherDay(engineAt + storeAt, 2) || engineMissing(name) || (kind === 'redis' && redisMissing())
    void t.test(`corrections in ${kind} and ${name}`, { skip, timeout: 120_000 }, async (t) => {
      clock.nowMs = SOME_TIME_MS
      const folder = t.testdir()
      const store = await storeOf(t, kind, `${folder}/own.db`)
      const expected = await storeOf(t, kind, `${folder}/expected.db`)
      const server = await archiveDatabase(name)
      const config = archiveConfig({ url: server.url, hotHours: 1 })
      const engine = await openArchiveEngine(config)
      t.teardown(() => engine.close())
      for (const statement of schemaStatements({ engine: name, config })) await engine.run(statement)
      const ledger = {
        ...{ keepDays: 30, hoursDays: 90, daysDays: 730, spool: '', spoolMaxBytes: 1, maxMemory: 1 },
        ...({ whenFull: 'serve', errorMessages: true } as const),
      }
      const joint = withArchive(store, () => ({ archive: config, ledger }))
      const warnings: string[] = []
      const copier = new ArchiveCopier({
        ...{ store, engine, config, leader: { id: 'one', gateway: 'gw', pid: 1 }, nowMs: () => clock.nowMs },
        refused: (_, reason) => t.fail(reason),
        warn: (message) => warnings.push(message),
      })
      const settled = async (check = false): Promise<void> => {
        for (let quiet = 0; quiet < 2; clock.nowMs += 6_000) {
          quiet = (await copier.step()) === true ? 0 : quiet + 1
          if (check) await same('in between')
        }
      }
      const same = async (when: string): Promise<void> => {
        t.strictSame(await figuresOf(joint.ledger), await figuresOf(expected.ledger), when)
      }
      const lose = async ([lost]: ReturnType<typeof pair>): Promise<void> => {
        const admission = { requestId: lost.requestId, accountId: lost.accountId, demands: [BUDGET] }
        await store.ledger.admit({ ...admission, unsettled: lost, leaseMs: 1_000 })
        clock.nowMs += 2_000
        t.equal(await store.ledger.expire(), 1)
      }
      const spent = async () => {
        const [state] = await store.ledger.limitStates('acc_1', [BUDGET])
        return 1_000_000 - (state?.remaining ?? 0)
      }

      const pairs = [0, 1, 2, 3].map((at) => pair(2 * at, SOME_TIME_MS + at * 60_000))
      const [first, second, third, fourth] = pairs
      if (first === undefined || second === undefined || third === undefined || fourth === undefined) return
      const ordinary = Array.from({ length: 5 }, (_, at) => anEntry(at, { atMs: SOME_TIME_MS + at * 1_000 }))
      for (const entry of ordinary) {
        await store.ledger.append(entry)
        await expected.ledger.append(entry)
      }
      for (const each of pairs) await lose(each)
      t.equal(await spent(), 3_600)
      for (const [, used] of [first, second, third]) await expected.ledger.append(used)
      await expected.ledger.append(fourth[0])

      t.equal(await store.ledger.settle(first[1], RESERVATION), 'corrected', 'before it was copied')
      await settled()
      t.equal(await store.ledger.settle(second[1], RESERVATION), 'corrected', 'after it was copied')
      await settled()
      t.equal(await spent(), 1_800 + 100 + 102)

      clock.nowMs = SOME_TIME_MS + 3 * HOUR_MS
      await settled()
      const progress = await store.ledger.archive.progress()
      t.ok((progress?.sumsToMs ?? 0) > SOME_TIME_MS, 'the sums have moved')
      t.equal(await store.ledger.entry(null, third[1].requestId), null, 'the former entry has left')
      t.equal(await store.ledger.settle(third[1], RESERVATION), 'late')
      t.equal(await store.ledger.settle(first[1]), 'late', 'so does one that is sent again')
      const unknown = anEntry(70, {
        ...{ atMs: SOME_TIME_MS + 30_000, accountId: 'acc_1', keyId: 'key_1', costNanoUsd: 70 },
      })
      const unreserved = { demands: [BUDGET], takenFrom: 'nothing' } as const
      t.equal(await store.ledger.settle(unknown, unreserved), 'late')
      t.equal(await spent(), 1_800 + 100 + 102, 'nothing is counted yet')
      await expected.ledger.append(unknown)
      t.equal(await copier.step(), true)
      t.equal(await spent(), 900 + 100 + 102 + 104 + 70)
      await same('before the corrected entry is in the archive')
      await settled(true)
      await same('then')
      clock.nowMs += HOUR_MS
      await settled()
      await same('after it has left')

      t.strictSame((await verifyHours(store, engine, 0, Infinity)).different, [])
      const [sums] = await engine.query(
        'SELECT sum(requests) AS n, sum(cost_nano_usd) AS cost, sum(assumed) AS assumed FROM sluice_usage',
      )
      const all = [...ordinary, first[1], second[1], third[1], fourth[0], unknown]
      const cost = all.reduce((sum, { costNanoUsd }) => sum + (costNanoUsd ?? 0), 0)
      t.same(
        [Number(sums?.['n']), Number(sums?.['cost']), Number(sums?.['assumed'])],
        [all.length, cost, 1],
        'the tables of the archive',
      )
      t.strictSame(warnings, [])
      t.equal((await store.ledger.archive.progress())?.repeatedRows, 1)
      await copier.close()
      await joint.close().catch(() => undefined)
    })
  }
}
