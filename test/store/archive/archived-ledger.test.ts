/**
 * Goal: what has left the store is read from the archive, each entry once, in pages in both directions, in
 * exports, by id, and in the use of accounts; also while entries leave, and late ones.
 * Method: the same entries in a store alone and in one with an archive, on real engines; answers are equal.
 */
import t, { type Test } from 'tap'
import { withArchive } from '../../../src/store/archive/archived-ledger.js'
import { ArchiveCopier } from '../../../src/store/archive/copier.js'
import { openArchiveEngine } from '../../../src/store/archive/open-archive-engine.js'
import { eraseEntries } from '../../../src/store/archive/erase-entries.js'
import { schemaStatements } from '../../../src/store/archive/schema-statements.js'
import { verifyHours } from '../../../src/store/archive/verify.js'
import { GatewayError } from '../../../src/errors.js'
import type { Config } from '../../../src/config/config.js'
import type { LedgerEntry } from '../../../src/ledger/entry.js'
import type { Ledger } from '../../../src/store/ledger.js'
import { openStore } from '../../../src/store/open-store.js'
import type { Store } from '../../../src/store/store.js'
import { addedUp } from '../../../src/store/records/count-usage.js'
import type {
  AccountUse,
  EntryQuery,
  GroupUseQuery,
  SumQuery,
  UsageCell,
} from '../../../src/store/usage-queries.js'
import { ENGINES, engineMissing, startArchive } from '../../helpers/archive-engines.js'
import { redisMissing, startRedis } from '../../helpers/redis.js'
import { anotherDay, ofToday } from '../../helpers/long-suite.js'
import { archiveConfig } from './archive-config.js'
import { anEntry, SOME_TIME_MS } from './entries.js'

const HOUR_MS = 3_600_000
const STORES = ['sqlite', 'redis'] as const
const clock = { nowMs: SOME_TIME_MS }

async function opened(t: Test, kind: (typeof STORES)[number], file: string): Promise<Store> {
  const url = kind === 'sqlite' ? `sqlite:${file}` : (await startRedis(t)).url()
  const store = await openStore(url, { nowMs: () => clock.nowMs, monotonicMs: () => clock.nowMs })
  t.teardown(() => store.close())
  return store
}

async function paged(
  ledger: Ledger,
  query: Omit<EntryQuery, 'after' | 'limit'>,
  limit: number,
): Promise<string[]> {
  const ids: string[] = []
  for (let after: string | null = null; ;) {
    const page: Awaited<ReturnType<Ledger['entries']>> = await ledger.entries({ ...query, after, limit })
    ids.push(...page.entries.map(({ requestId }) => requestId))
    after = page.next
    if (after === null) return ids
  }
}

async function exported(ledger: Ledger, sinceMs: number): Promise<LedgerEntry[]> {
  const found: LedgerEntry[] = []
  for await (const entries of ledger.export(sinceMs)) found.push(...entries)
  return found
}

/** The members of a record in order, as a text; amounts may be bigints. */
function textOf(record: object): string {
  const members = Object.entries(record) as [string, unknown][]
  return members
    .map(([member, value]) => `${member} ${String(value)}`)
    .sort()
    .join('; ')
}

const QUERIES: readonly Omit<EntryQuery, 'after' | 'limit'>[] = [
  { accountId: null },
  { accountId: null, order: { column: 'atMs', isDescending: false } },
  { accountId: null, order: { column: 'costNanoUsd', isDescending: true } },
  { accountId: null, order: { column: 'costNanoUsd', isDescending: false } },
  { accountId: 'acc_2', order: { column: 'model', isDescending: false } },
  { accountId: null, order: { column: 'upstream', isDescending: true } },
  { accountId: null, failed: false, order: { column: 'tokens', isDescending: true } },
  { accountId: null, order: { column: 'status', isDescending: true } },
  { accountId: null, order: { column: 'durationMs', isDescending: false } },
  { accountId: null, order: { column: 'firstTokenMs', isDescending: false } },
  { accountId: null, order: { column: 'account', isDescending: false } },
  { accountId: null, order: { column: 'account', isDescending: true } },
  { accountId: null, order: { column: 'key', isDescending: true }, toMs: SOME_TIME_MS + 2 * HOUR_MS },
  { accountId: 'acc_2', failed: false, order: { column: 'key', isDescending: false } },
  { accountId: null, keyId: 'key_2', order: { column: 'key', isDescending: false } },
  { accountId: 'acc_1' },
  { accountId: null, keyId: 'key_2' },
  { accountId: null, failed: true },
  { accountId: null, failed: false, model: ['gpt-5.5'] },
  { accountId: null, label: 'team=red', status: 200 },
  { accountId: null, within: { accountId: 'acc_1', name: 'company' } },
  { accountId: null, cause: 'provider', upstream: 'openai' },
  { accountId: null, fromMs: SOME_TIME_MS + HOUR_MS / 2, toMs: SOME_TIME_MS + 2.5 * HOUR_MS },
]

const HOURS = { by: 'hour', fromMs: SOME_TIME_MS, toMs: SOME_TIME_MS + 1.9 * HOUR_MS } as const
/** Hours whose sums have moved. */
const SUMS: readonly SumQuery[] = [
  { ...HOURS, accountId: null },
  { ...HOURS, accountId: 'acc_1', model: 'gpt-5.5' },
  { ...HOURS, accountId: null, keyId: 'key_2' },
  { ...HOURS, accountId: null, per: 'model' },
  { ...HOURS, accountId: 'acc_2', per: 'model' },
  ...(['upstream', 'format', 'label', 'account'] as const).map((property): SumQuery => {
    return { ...HOURS, accountId: null, property }
  }),
  { ...HOURS, accountId: 'acc_1', property: 'label' },
  { ...HOURS, accountId: null, property: 'label=team=' },
  { ...HOURS, accountId: null, property: 'upstream=openai' },
  { ...HOURS, accountId: null, accounts: ['acc_1 company/team1', 'acc_2 company/team2', 'acc_1 '] },
  ...([undefined, 'label'] as const).map((property): SumQuery => ({
    ...{ ...HOURS, by: 'day', accountId: null, ...(property === undefined ? {} : { property }) },
    offsets: [
      { fromMs: 0, offsetMs: 10 * HOUR_MS },
      { fromMs: SOME_TIME_MS + HOUR_MS, offsetMs: 11 * HOUR_MS },
    ],
  })),
]

/** Groups of hours whose sums have moved. */
const GROUPS: readonly GroupUseQuery[] = [
  ...(['key', 'model', 'key model', 'upstream', 'format', 'label', 'account', 'label=team='] as const).map(
    (by): GroupUseQuery => ({ accountId: null, by, fromMs: SOME_TIME_MS, toMs: SOME_TIME_MS + 2 * HOUR_MS }),
  ),
  { accountId: 'acc_1', by: 'label', fromMs: SOME_TIME_MS, toMs: SOME_TIME_MS + HOUR_MS },
  { accountId: 'acc_2', by: 'key', model: 'gpt-5.5', fromMs: SOME_TIME_MS, toMs: SOME_TIME_MS + 2 * HOUR_MS },
  { accountId: null, by: 'model', keyId: 'key_2', fromMs: SOME_TIME_MS, toMs: SOME_TIME_MS + 2 * HOUR_MS },
]

for (const [engineAt, name] of ENGINES.entries()) {
  for (const [storeAt, kind] of STORES.entries()) {
    // One pair a day, with a third of the queries.
    const skip =
      anotherDay(engineAt * STORES.length + storeAt, ENGINES.length * STORES.length) ||
      engineMissing(name) ||
      (kind === 'redis' && redisMissing())
    void t.test(`${kind} with ${name}`, { skip, timeout: 240_000 }, async (t) => {
      const folder = t.testdir()
      clock.nowMs = SOME_TIME_MS
      const [alone, store] = [
        await opened(t, kind, `${folder}/alone.db`),
        await opened(t, kind, `${folder}/hot.db`),
      ]
      const server = await startArchive(t, name)
      const config = archiveConfig({ url: server.url, hotHours: 1 })
      const engine = await openArchiveEngine(config)
      t.teardown(() => engine.close())
      for (const statement of schemaStatements({ engine: name, config })) await engine.run(statement)
      const settings = { archive: config, ledger: { hoursDays: 36_500, daysDays: 36_500 } }
      // Only these members are read.
      const joint = withArchive(store, () => settings as unknown as Pick<Config, 'archive' | 'ledger'>)

      const add = async (entry: LedgerEntry): Promise<void> => {
        await alone.ledger.append(entry)
        await store.ledger.append(entry)
      }
      for (let at = 0; at < 90; at += 1) await add(anEntry(at, { atMs: SOME_TIME_MS + at * 120_000 }))
      clock.nowMs = SOME_TIME_MS + 3 * HOUR_MS + 1
      const warnings: string[] = []
      const copier = new ArchiveCopier({
        ...{ store, engine, config, leader: { id: 'one', gateway: 'gw', pid: 1 } },
        nowMs: () => clock.nowMs,
        refused: () => undefined,
        warn: (message) => warnings.push(message),
      })
      const move = async (): Promise<void> => {
        clock.nowMs += 10_000
        for (let quiet = 0; quiet < 2;) {
          quiet = (await copier.step()) === true ? 0 : quiet + 1
          clock.nowMs += 6_000
        }
      }
      await move()
      const left = await exported(store.ledger, 0)
      t.ok(left.length > 25 && left.length < 40, `${left.length} entries are left in the store`)

      const compare = async (when: string, queries = [...ofToday(QUERIES, 3)]): Promise<void> => {
        for (const query of queries) {
          const [wanted, found] = [await paged(alone.ledger, query, 13), await paged(joint.ledger, query, 13)]
          t.strictSame(found, wanted, `${when}: ${JSON.stringify(query)}`)
        }
        const [wanted, found] = [await exported(alone.ledger, 0), await exported(joint.ledger, 0)]
        t.strictSame(found, wanted, `${when}: export`)
        for (const [from, to] of [
          [0.4, 2.7],
          [-3, 0.9],
          [2.9, 3],
        ] as const) {
          const span = { fromMs: SOME_TIME_MS + from * HOUR_MS, toMs: SOME_TIME_MS + to * HOUR_MS }
          for (const [accountId, stepMs] of [
            [null, 300_000],
            ['acc_1', 300_000],
            [null, HOUR_MS],
            ['acc_1', 24 * HOUR_MS],
          ] as const) {
            const query = { ...span, accountId, stepMs }
            const added = (cells: readonly UsageCell[]) =>
              addedUp(cells, (sum) => sum)
                .map(textOf)
                .sort()
            t.strictSame(
              added(await joint.ledger.cells(query)),
              added(await alone.ledger.cells(query)),
              `${when}: cells of ${stepMs} ms from ${from} to ${to}`,
            )
          }
        }
        for (const span of [
          { fromMs: SOME_TIME_MS + HOUR_MS / 2, toMs: SOME_TIME_MS + 2.5 * HOUR_MS },
          { fromMs: SOME_TIME_MS - 5 * 24 * HOUR_MS, toMs: SOME_TIME_MS + 9 * HOUR_MS, by: 'keys' as const },
          { fromMs: Date.UTC(2026, 10), toMs: Date.UTC(2026, 11) },
          // What the store has, in a month of which entries have left.
          { fromMs: SOME_TIME_MS + 8 * HOUR_MS, toMs: SOME_TIME_MS + 9 * HOUR_MS },
        ]) {
          const sorted = (uses: readonly AccountUse[]) => uses.map(textOf).sort()
          t.strictSame(
            sorted(await joint.ledger.accountUse(span)),
            sorted(await alone.ledger.accountUse(span)),
            `${when}: use of accounts`,
          )
        }
      }
      await compare('moved', QUERIES.slice(0, 3))
      await add(anEntry(900, { atMs: SOME_TIME_MS + 90_000 }))
      // Its request began before what has left: the archive is searched first.
      t.equal(await copier.step(), true)
      const late = await paged(joint.ledger, { accountId: null }, 50)
      t.strictSame(
        late,
        await paged(alone.ledger, { accountId: null }, 50),
        'a late entry that the store has',
      )
      await compare('late and not confirmed', [])
      await move()
      await compare('late')
      const unkept = { archive: config, ledger: { hoursDays: -36_500, daysDays: -36_500 } }
      // Every sum is read from the archive.
      const cold = withArchive(
        { ...store, close: () => Promise.resolve() },
        () => unkept as unknown as Pick<Config, 'archive' | 'ledger'>,
      )
      for (const query of SUMS) {
        const [wanted, found] = [await alone.ledger.sums(query), await cold.ledger.sums(query)]
        t.ok(wanted.length > 0, JSON.stringify(query))
        t.strictSame(found.map(textOf).sort(), wanted.map(textOf).sort(), `sums ${JSON.stringify(query)}`)
      }
      for (const query of GROUPS) {
        const [wanted, found] = [await alone.ledger.groupUse(query), await cold.ledger.groupUse(query)]
        t.ok(wanted.length > 0, JSON.stringify(query))
        t.strictSame(found.map(textOf).sort(), wanted.map(textOf).sort(), `groups ${JSON.stringify(query)}`)
      }
      for (const by of ['labels', 'keys', 'accounts'] as const) {
        const months = { fromMs: Date.UTC(2026, 9), toMs: Date.UTC(2026, 11), by }
        const [wanted, found] = [await alone.ledger.accountUse(months), await cold.ledger.accountUse(months)]
        t.ok(wanted.length > 0, by)
        t.strictSame(found.map(textOf).sort(), wanted.map(textOf).sort(), `months by ${by}`)
      }
      await cold.close()
      const [first] = await exported(alone.ledger, 0)
      t.strictSame(await joint.ledger.entry(null, first?.requestId ?? ''), first)
      t.equal(await joint.ledger.entry('acc_other', first?.requestId ?? ''), null)

      const verified = await verifyHours(store, engine, 0, Infinity)
      t.strictSame(verified.different, [])
      t.ok(verified.hours >= 2)
      t.strictSame(warnings, [])

      await copier.close()
      await eraseEntries({ store, engine, accountId: 'acc_1', untilMs: clock.nowMs })
      t.strictSame(await paged(joint.ledger, { accountId: 'acc_1' }, 50), [])
      t.ok((await exported(joint.ledger, 0)).every(({ accountId }) => accountId !== 'acc_1'))
      t.strictSame((await verifyHours(store, engine, 0, Infinity)).different, [])

      await server.stop()
      const old = { accountId: null, toMs: SOME_TIME_MS + HOUR_MS, after: null, limit: 5 }
      const failure: unknown = await joint.ledger.entries(old).catch((error: unknown) => error)
      t.equal(failure instanceof GatewayError && failure.kind, 'archive_unavailable')
      t.ok((await joint.ledger.entries({ accountId: null, after: null, limit: 5 })).entries.length > 0)
      await joint.close()
    })
  }
}
