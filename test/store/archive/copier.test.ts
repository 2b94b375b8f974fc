/**
 * Goal: entries and sums reach the archive once, from each store to each engine, also if the leader ends at
 * any step; then they leave the store.
 * Method: real stores and engines, a clock of the test; a copier is replaced by a new one after each step.
 */
import t, { type Test } from 'tap'
import { ArchiveCopier } from '../../../src/store/archive/copier.js'
import type { ArchiveEngine } from '../../../src/store/archive/archive-engine.js'
import { openArchiveEngine } from '../../../src/store/archive/open-archive-engine.js'
import { schemaStatements } from '../../../src/store/archive/schema-statements.js'
import type { LedgerEntry } from '../../../src/ledger/entry.js'
import { openStore } from '../../../src/store/open-store.js'
import type { Store } from '../../../src/store/store.js'
import { ENGINES, engineMissing, archiveDatabase, type EngineName } from '../../helpers/archive-engines.js'
import { redisMissing, startRedis, startRedisCluster } from '../../helpers/redis.js'
import { anotherDay } from '../../helpers/long-suite.js'
import { archiveConfig } from './archive-config.js'
import { anEntry, SOME_TIME_MS } from './entries.js'

const HOUR_MS = 3_600_000
const STORES = ['sqlite', 'redis', 'cluster'] as const

/** A clock that the test sets. */
const clock = { nowMs: SOME_TIME_MS }

async function addressOf(t: Test, kind: (typeof STORES)[number]): Promise<string> {
  if (kind === 'sqlite') return `sqlite:${t.testdir()}/store.db`
  return kind === 'redis' ? (await startRedis(t)).url() : (await startRedisCluster(t)).url
}

async function opened(t: Test, kind: (typeof STORES)[number]): Promise<Store> {
  const url = await addressOf(t, kind)
  const store = await openStore(url, { nowMs: () => clock.nowMs, monotonicMs: () => clock.nowMs })
  t.teardown(() => store.close())
  return store
}

async function engineOf(t: Test, name: EngineName): Promise<ArchiveEngine> {
  const server = await archiveDatabase(name)
  const config = archiveConfig({ url: server.url })
  const engine = await openArchiveEngine(config)
  t.teardown(() => engine.close())
  for (const statement of schemaStatements({ engine: name, config })) await engine.run(statement)
  return engine
}

let leaders = 0

function copierOf(store: Store, engine: ArchiveEngine, warnings: string[], aheadMs = 0): ArchiveCopier {
  leaders += 1
  return new ArchiveCopier({
    store,
    engine,
    config: { hotHours: 1, keepDays: 400, waitingMaxBytes: 1_048_576 },
    leader: { id: `leader${leaders}`, gateway: 'gw', pid: 1 },
    nowMs: () => clock.nowMs + aheadMs,
    refused: () => undefined,
    warn: (message) => warnings.push(message),
  })
}

/** Runs copiers until nothing is due; each one makes a step, then another one leads. */
async function settled(store: Store, engine: ArchiveEngine): Promise<string[]> {
  const warnings: string[] = []
  for (let quiet = 0, steps = 0; quiet < 3; steps += 1) {
    if (steps > 200) throw new Error('the copier does not end')
    const copier = copierOf(store, engine, warnings)
    const more = await copier.step()
    await copier.close()
    quiet = more === true ? 0 : quiet + 1
  }
  return warnings
}

async function kept(store: Store): Promise<LedgerEntry[]> {
  const found: LedgerEntry[] = []
  for await (const entries of store.ledger.export(0)) found.push(...entries)
  return found
}

const costOf = (entries: readonly LedgerEntry[]) =>
  entries.reduce((sum, { costNanoUsd }) => sum + (costNanoUsd ?? 0), 0)

for (const [engineAt, name] of ENGINES.entries()) {
  for (const [storeAt, kind] of STORES.entries()) {
    // One engine is enough for a Cluster: its part is in the store.
    if (kind === 'cluster' && name !== 'postgresql') continue
    const skip =
      anotherDay(engineAt + storeAt, 2) || engineMissing(name) || (kind !== 'sqlite' && redisMissing())
    void t.test(`${kind} to ${name}`, { skip }, async (t) => {
      clock.nowMs = SOME_TIME_MS
      const store = await opened(t, kind)
      const engine = await engineOf(t, name)
      const before = Array.from({ length: 40 }, (_, at) => anEntry(at, { atMs: SOME_TIME_MS + at * 60_000 }))
      for (const entry of before) await store.ledger.append(entry)

      clock.nowMs = SOME_TIME_MS + HOUR_MS
      t.strictSame(await settled(store, engine), [])
      const count = async (sql: string) => Number((await engine.query(sql))[0]?.['n'] ?? -1)
      t.equal(await count('SELECT count(*) AS n FROM sluice_requests'), 40)
      t.equal(await count('SELECT count(*) AS n FROM sluice_hours'), 0, 'the hour is too young')
      t.equal((await kept(store)).length, 40, 'entries stay for hot_hours')
      const ahead = copierOf(store, engine, [], 5 * HOUR_MS)
      for (let quiet = 0; quiet < 3;) quiet = (await ahead.step()) === true ? 0 : quiet + 1
      await ahead.close()
      t.equal((await kept(store)).length, 40, 'by the clock of the store, not by that of the leader')
      t.equal(await count('SELECT count(*) AS n FROM sluice_hours'), 0)

      const later = Array.from({ length: 10 }, (_, at) =>
        anEntry(100 + at, { atMs: SOME_TIME_MS + HOUR_MS + at * 1_000 }),
      )
      for (const entry of later) await store.ledger.append(entry)
      clock.nowMs = SOME_TIME_MS + 2 * HOUR_MS + 1
      t.strictSame(await settled(store, engine), [])
      t.equal(await count('SELECT count(*) AS n FROM sluice_requests'), 50)
      t.equal(await count('SELECT sum(requests) AS n FROM sluice_usage'), 40)
      t.equal(await count('SELECT sum(cost_nano_usd) AS n FROM sluice_usage'), costOf(before))
      t.strictSame(
        (await kept(store)).map(({ requestId }) => requestId).sort(),
        later.map(({ requestId }) => requestId).sort(),
        'older ones have left',
      )

      // An entry of an hour whose sums have moved.
      const late = anEntry(500, { atMs: SOME_TIME_MS + 5_000 })
      await store.ledger.append(late)
      clock.nowMs += 60_000
      t.strictSame(await settled(store, engine), [])
      t.equal(await count('SELECT sum(requests) AS n FROM sluice_usage'), 41)
      t.equal(await count('SELECT sum(cost_nano_usd) AS n FROM sluice_usage'), costOf([...before, late]))
      t.equal(await count('SELECT count(*) AS n FROM sluice_requests'), 51)
      t.match(await store.ledger.archive.waiting(), { rows: 0, oldestAtMs: null })

      // A gateway sends an entry again whose id has left the store with it.
      const [again] = before
      if (again !== undefined) await store.ledger.append(again)
      clock.nowMs += 60_000
      t.strictSame(await settled(store, engine), [])
      t.equal(await count('SELECT sum(requests) AS n FROM sluice_usage'), 41)
      t.equal(await count('SELECT count(*) AS n FROM sluice_requests'), 51)
      t.equal((await store.ledger.archive.progress())?.repeatedRows, 1)
    })
  }
}
