/**
 * Goal: with an archive the memory of Redis does not grow with the number of requests: it stays within 5 %
 * once the time of `hot_hours` is full.
 * Method: a real Redis and PostgreSQL; entries of real form at a steady rate of a clock of the test, which
 * are copied every 45 s. The long suite settles 300,000.
 */
import { Redis } from 'ioredis'
import t from 'tap'
import { ArchiveCopier } from '../../../src/store/archive/copier.js'
import { openArchiveEngine } from '../../../src/store/archive/open-archive-engine.js'
import { schemaStatements } from '../../../src/store/archive/schema-statements.js'
import { openStore } from '../../../src/store/open-store.js'
import { archiveDatabase, engineMissing } from '../../helpers/archive-engines.js'
import { anotherDay, IS_LONG } from '../../helpers/long-suite.js'
import { freshDatabases, redisMissing, startRedis } from '../../helpers/redis.js'
import { archiveConfig } from '../archive/archive-config.js'
import { realEntry } from './real-entries.js'

const START = Date.UTC(2026, 10, 20)
/** A slice of time that leaves Redis at once: a quarter of `hot_hours`. */
const STEP_MS = 45_000
const HOT_STEPS = 4
/** Entries of a step. */
const OF_STEP = IS_LONG ? 4_500 : 900
const STEPS = IS_LONG ? 67 : 16
const AT_ONCE = 300
/** The part by which memory may differ from its mean. */
const MOST = 0.05

const skip = anotherDay(0, 4) || redisMissing() || engineMissing('postgresql')
void t.test('redis with an archive', { skip, timeout: 600_000 }, async (t) => {
  const clock = { nowMs: START }
  const nowMs = () => clock.nowMs
  const url = freshDatabases(await startRedis(t))()
  const store = await openStore(url, { nowMs, monotonicMs: nowMs })
  t.teardown(() => store.close())
  const hotHours = (HOT_STEPS * STEP_MS) / 3_600_000
  const config = archiveConfig({ url: (await archiveDatabase('postgresql')).url, hotHours })
  const engine = await openArchiveEngine(config)
  t.teardown(() => engine.close())
  for (const statement of schemaStatements({ engine: 'postgresql', config })) await engine.run(statement)
  const copier = new ArchiveCopier({
    ...{ store, engine, config, nowMs, leader: { id: 'one', gateway: 'gw', pid: 1 } },
    refused: (_, reason) => t.fail(reason),
    warn: (message) => t.fail(message),
  })
  const client = new Redis(url)
  t.teardown(() => client.disconnect())
  const empty = await bytesIn(client)

  const bytes: number[] = []
  for (let step = 0; step < STEPS; step += 1) {
    for (let at = 0; at < OF_STEP; at += AT_ONCE) {
      clock.nowMs = START + (step + at / OF_STEP) * STEP_MS
      const some = Array.from({ length: AT_ONCE }, (_, more) =>
        realEntry(step * OF_STEP + at + more, clock.nowMs),
      )
      await Promise.all(some.map((entry) => store.ledger.settle(entry)))
    }
    clock.nowMs = START + (step + 1) * STEP_MS
    while ((await copier.step()) === true);
    // The first steps fill the time of `hot_hours` and the slice that leaves next.
    if (step > HOT_STEPS + 1) bytes.push((await bytesIn(client)) - empty)
  }
  await copier.close()

  const mean = bytes.reduce((sum, each) => sum + each, 0) / bytes.length
  const [least, most] = [Math.min(...bytes), Math.max(...bytes)]
  const [row] = await engine.query('SELECT count(*) AS n FROM sluice_requests')
  t.equal(Number(row?.['n']), STEPS * OF_STEP, 'each entry is in the archive once')
  t.comment(
    `${STEPS * OF_STEP} entries, of which the last ${HOT_STEPS * OF_STEP} are in Redis: ` +
      `${Math.round(mean / 1_000)} kB, from ${Math.round(least / 1_000)} to ${Math.round(most / 1_000)}`,
  )
  t.ok(most <= mean * (1 + MOST) && least >= mean * (1 - MOST), `${least} to ${most} bytes`)
})

/** The memory of all keys, with their contents: that of the whole server has buffers, too. */
async function bytesIn(client: Redis): Promise<number> {
  let bytes = 0
  for await (const keys of client.scanStream({ count: 1_000 }) as AsyncIterable<string[]>) {
    const sizes = await Promise.all(keys.map((key) => client.call('MEMORY', 'USAGE', key, 'SAMPLES', '0')))
    for (const size of sizes) bytes += Number(size ?? 0)
  }
  return bytes
}
