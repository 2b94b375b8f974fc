/**
 * Goal: an archive that is restored from an older backup is found out while entries go on moving: readers
 * are named, the sums of lost hours move again, what the store still has can be written again, and no entry
 * leaves the store that the archive lacks.
 * Method: real engines; the rows of later batches and transfers are removed, and the archive's own table is
 * set back, as a backup has them.
 */
import t, { type Test } from 'tap'
import type { LedgerEntry } from '../../../src/ledger/entry.js'
import { ArchiveCopier } from '../../../src/store/archive/copier.js'
import { progressAfterRestore, restoredNotice } from '../../../src/store/archive/find-restored.js'
import { valuesIn } from '../../../src/store/archive/inspect-archive.js'
import { openArchiveEngine } from '../../../src/store/archive/open-archive-engine.js'
import { schemaStatements } from '../../../src/store/archive/schema-statements.js'
import { missingEntries, repairEntries, verifyHours } from '../../../src/store/archive/verify.js'
import { NO_PROGRESS, type ArchiveProgress } from '../../../src/store/archive-feed.js'
import { openStore } from '../../../src/store/open-store.js'
import { engineMissing, archiveDatabase } from '../../helpers/archive-engines.js'
import { redisMissing, startRedis } from '../../helpers/redis.js'
import { archiveConfig } from './archive-config.js'
import { anEntry, SOME_TIME_MS } from './entries.js'

const KINDS = ['sqlite', 'redis'] as const

/** A store whose entries move to an archive of PostgreSQL, by a clock of its own. */
async function movingStore(t: Test, kind: (typeof KINDS)[number]) {
  const clock = { nowMs: SOME_TIME_MS }
  const nowMs = () => clock.nowMs
  const url = kind === 'sqlite' ? `sqlite:${t.testdir()}/store.db` : (await startRedis(t)).url()
  const store = await openStore(url, { nowMs, monotonicMs: nowMs })
  t.teardown(() => store.close())
  const server = await archiveDatabase('postgresql')
  const config = archiveConfig({ url: server.url, hotHours: 2 })
  const engine = await openArchiveEngine(config)
  t.teardown(() => engine.close())
  for (const statement of schemaStatements({ engine: 'postgresql', config })) await engine.run(statement)
  const copier = new ArchiveCopier({
    ...{ store, engine, config, nowMs, leader: { id: 'one', gateway: 'gw', pid: 1 } },
    refused: (_, reason) => t.fail(reason),
    warn: () => undefined,
  })
  const settle = async (): Promise<void> => {
    for (let quiet = 0; quiet < 2; clock.nowMs += 6_000) {
      quiet = (await copier.step()) === true ? 0 : quiet + 1
    }
  }
  const added: LedgerEntry[] = []
  const add = async (count: number): Promise<void> => {
    for (let at = 0; at < count; at += 1) {
      const entry = anEntry(added.length, { atMs: SOME_TIME_MS + added.length * 300_000 })
      await store.ledger.append(entry)
      added.push(entry)
      clock.nowMs = Math.max(clock.nowMs, entry.atMs)
      if (at % 5 === 4) await settle()
    }
  }
  const progressOf = async () => (await store.ledger.archive.progress()) ?? NO_PROGRESS
  /** Sets the archive back to a time at which the progress was this one. */
  const restore = async (backup: ArchiveProgress): Promise<void> => {
    await engine.run(`DELETE FROM sluice_entries WHERE batch > ${backup.confirmed}`)
    await engine.run(`DELETE FROM sluice_hours WHERE seal > ${backup.round}`)
    const values = { confirmed: backup.confirmed, round: backup.round, sums_to: backup.sumsToMs }
    for (const [name, value] of Object.entries(values)) {
      await engine.run(`UPDATE sluice_archive SET value = '${value}', version = 0 WHERE name = '${name}'`)
    }
  }
  return { clock, store, engine, copier, settle, added, add, progressOf, restore }
}

for (const kind of KINDS) {
  const skip = engineMissing('postgresql') || (kind === 'redis' && redisMissing())
  void t.test(`a restored archive of ${kind}`, { skip, timeout: 120_000 }, async (t) => {
    const { clock, store, engine, copier, settle, add, progressOf, restore } = await movingStore(t, kind)
    await add(60)
    const backup = await progressOf()
    t.ok(backup.round > 0)
    await add(30)
    const before = await progressOf()
    t.ok(before.round > backup.round && before.confirmed > backup.confirmed + 1)
    t.equal(restoredNotice(before), null)

    await restore(backup)
    await add(5)
    clock.nowMs += 3_600_000
    await settle()
    const after = await progressOf()
    t.match(after.restored, { from: backup.confirmed + 1, to: before.confirmed })
    t.match(restoredNotice(after), /restored from an older backup: it lacks batches/)
    const count = async (sql: string) => Number((await engine.query(sql))[0]?.['n'] ?? -1)
    t.equal(await count("SELECT value::bigint AS n FROM sluice_archive WHERE name = 'round'"), after.round)
    const sums = await store.ledger.sums({
      ...{ accountId: null, by: 'hour', fromMs: 0, toMs: after.sumsToMs - 1 },
    })
    const requests = sums.reduce((sum, each) => sum + each.requests, 0)
    t.equal(await count('SELECT sum(requests) AS n FROM sluice_usage'), requests, 'sums of lost hours')
    t.strictSame((await verifyHours(store, engine, 0, Infinity)).different, [], 'the store had all of it')

    const hot = new Date(after.hotFromMs + 60_000).toISOString()
    await engine.run(`DELETE FROM sluice_entries WHERE at >= '${hot}'`)
    t.ok((await repairEntries(store, engine, 0, Infinity)) > 0)
    t.equal(await repairEntries(store, engine, 0, Infinity), 0)
    await copier.close()
  })
  for (const lost of [1, 4]) {
    const name = `entries of ${kind} leave only for an archive that has them: ${lost} batches lost, no requests`
    void t.test(name, { skip, timeout: 120_000 }, async (t) => {
      const { clock, store, engine, copier, settle, added, add, progressOf, restore } = await movingStore(
        t,
        kind,
      )
      await add(30 - 5 * lost)
      const backup = await progressOf()
      await add(5 * lost)
      const before = await progressOf()
      t.equal(before.confirmed, backup.confirmed + lost)
      await restore({ ...before, confirmed: backup.confirmed })

      const missing = async (): Promise<number> => {
        let count = 0
        for await (const entries of missingEntries(store, engine, 0, Infinity)) count += entries.length
        return count
      }
      t.equal(await missing(), 5 * lost, 'verify tells before the gateway has found it out')
      const found = await progressAfterRestore(engine, await valuesIn(engine), before, clock.nowMs)
      t.match(restoredNotice(found ?? before), /it lacks batches .*'sluice archive backfill' writes/)

      for (let hour = 0; hour < 8; hour += 1, clock.nowMs += 3_600_000) await settle()
      const after = await progressOf()
      t.match(after.restored, { from: backup.confirmed + 1, to: before.confirmed })
      const { hotFromMs } = await progressOf()
      t.ok(hotFromMs > (added.at(-1)?.atMs ?? Infinity), 'every entry has left the store')
      const rows = await engine.query('SELECT request_id FROM sluice_entries ORDER BY 1')
      const ids = rows.map((row) => row['request_id'])
      t.strictSame(ids, added.map(({ requestId }) => requestId).sort(), 'each is in the archive, once')
      t.strictSame((await verifyHours(store, engine, 0, Infinity)).different, [])
      await copier.close()
    })
  }
}
