/**
 * Goal: an archive that is restored from an older backup is found out while entries go on moving: readers
 * are named, the sums of lost hours move again, and what the store still has can be written again.
 * Method: real engines; the rows of later batches and transfers are removed, and the archive's own table is
 * set back, as a backup has them.
 */
import t from 'tap'
import { ArchiveCopier } from '../../../src/store/archive/copier.js'
import { restoredNotice } from '../../../src/store/archive/find-restored.js'
import { openArchiveEngine } from '../../../src/store/archive/open-archive-engine.js'
import { schemaStatements } from '../../../src/store/archive/schema-statements.js'
import { repairEntries, verifyHours } from '../../../src/store/archive/verify.js'
import { NO_PROGRESS } from '../../../src/store/archive-feed.js'
import { openStore } from '../../../src/store/open-store.js'
import { engineMissing, archiveDatabase } from '../../helpers/archive-engines.js'
import { redisMissing, startRedis } from '../../helpers/redis.js'
import { archiveConfig } from './archive-config.js'
import { anEntry, SOME_TIME_MS } from './entries.js'

for (const kind of ['sqlite', 'redis'] as const) {
  const skip = engineMissing('postgresql') || (kind === 'redis' && redisMissing())
  void t.test(`a restored archive of ${kind}`, { skip, timeout: 120_000 }, async (t) => {
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
    let added = 0
    const add = async (count: number): Promise<void> => {
      for (let at = 0; at < count; at += 1, added += 1) {
        await store.ledger.append(anEntry(added, { atMs: SOME_TIME_MS + added * 300_000 }))
        clock.nowMs = Math.max(clock.nowMs, SOME_TIME_MS + added * 300_000)
        if (at % 5 === 4) await settle()
      }
    }
    await add(60)
    const progressOf = async () => (await store.ledger.archive.progress()) ?? NO_PROGRESS
    const backup = await progressOf()
    t.ok(backup.round > 0)
    await add(30)
    const before = await progressOf()
    t.ok(before.round > backup.round && before.confirmed > backup.confirmed + 1)
    t.equal(restoredNotice(before), null)

    await engine.run(`DELETE FROM sluice_entries WHERE batch > ${backup.confirmed}`)
    await engine.run(`DELETE FROM sluice_hours WHERE seal > ${backup.round}`)
    const values = { confirmed: backup.confirmed, round: backup.round, sums_to: backup.sumsToMs }
    for (const [name, value] of Object.entries(values)) {
      await engine.run(`UPDATE sluice_archive SET value = '${value}', version = 0 WHERE name = '${name}'`)
    }
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
    t.not((await verifyHours(store, engine, 0, Infinity)).different.length, 0)

    const repaired = await repairEntries(store, engine, 0, Infinity)
    t.ok(repaired > 0)
    const left = (await verifyHours(store, engine, 0, Infinity)).different
    const hotMs = after.hotFromMs
    t.ok(
      left.every(({ start }) => Date.parse(start) < hotMs),
      'only entries that left the store are missing',
    )
    await copier.close()
  })
}
