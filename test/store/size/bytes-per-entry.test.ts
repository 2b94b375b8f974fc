/**
 * Goal: an entry takes at most 450 bytes of SQLite and 400 bytes of Redis, indexes included, and the sums of
 * an hour at most 300 bytes of Redis for each combination of key, model and labels. Method: entries of real
 * form of one day are settled; SQLite reports the pages of each table and index, Redis the memory of each
 * key. The long suite and `SLUICE_ENTRIES=40000` measure 40,000, the number of the tables in the
 * documentation; `SLUICE_ENTRIES=1000000` a file of SQLite with a million.
 */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { openStore } from '../../../src/store/open-store.js'
import { connect, numberIn, textIn } from '../../../src/store/sqlite/driver.js'
import { anotherDay, IS_LONG } from '../../helpers/long-suite.js'
import { freshDatabases, redisMissing, startRedis } from '../../helpers/redis.js'
import { realEntries, realEntry } from './real-entries.js'

const COUNT = Number(process.env['SLUICE_ENTRIES'] ?? (IS_LONG ? 40_000 : 6_000))
const MOST = { sqlite: 450, redis: 400, cell: 300 }
const AT_ONCE = 500
const DAY_MS = 86_400_000
const START = Date.UTC(2026, 10, 20)

t.setTimeout(1_800_000)
const missing = redisMissing()

const tooMany = COUNT > 100_000 && 'SLUICE_ENTRIES is for SQLite'
void t.test('redis', { skip: anotherDay(0, 2) || missing || tooMany, timeout: 120_000 }, async (t) => {
  const url = freshDatabases(await startRedis(t))()
  await settle(url)
  const client = new Redis(url)
  t.teardown(() => client.disconnect())
  const bytes = new Map<'entries' | 'hours' | 'others', number>()
  for (const key of await client.keys('sluice:*')) {
    const of = /:hour:|:hours$/.test(key)
      ? 'hours'
      : /:(?:log|names|texts|texts:\d+|ids|order|rows)$/.test(key)
        ? 'entries'
        : 'others'
    bytes.set(of, (bytes.get(of) ?? 0) + Number(await client.memory('USAGE', key, 'SAMPLES', 0)))
  }
  const cells = new Set(
    realEntries(COUNT, START).map(({ atMs, keyId, model, labels }) =>
      [Math.floor(atMs / 3_600_000), keyId, model, labels].join(' '),
    ),
  )
  const entry = (bytes.get('entries') ?? 0) / COUNT
  const cell = (bytes.get('hours') ?? 0) / cells.size
  t.comment(
    `${COUNT} entries: ${entry.toFixed(0)} bytes each; ${cells.size} sums of hours: ${cell.toFixed(0)} each`,
  )
  t.ok(entry <= MOST.redis, `${entry} bytes an entry`)
  t.ok(cell <= MOST.cell, `${cell} bytes a sum`)
})

void t.test('sqlite', { skip: anotherDay(1, 2) }, async (t) => {
  const file = join(t.testdir(), 'store')
  await settle(`sqlite:${file}`)
  const db = connect(file)
  t.teardown(() => db.close())
  let bytes = 0
  for (const row of db.prepare('SELECT name, sum(pgsize) AS bytes FROM dbstat GROUP BY name').all()) {
    if (/entr(?:y|ies)_/.test(textIn(row, 'name'))) bytes += numberIn(row, 'bytes')
  }
  const whole = statSync(file).size / COUNT
  t.comment(`${COUNT} entries: ${(bytes / COUNT).toFixed(0)} bytes each, ${whole.toFixed(0)} of the file`)
  t.ok(bytes / COUNT <= MOST.sqlite, `${bytes / COUNT} bytes an entry`)
})

/** Settles all entries, adds up the sums, and closes the store. */
async function settle(url: string): Promise<void> {
  const store = await openStore(url)
  for (let at = 0; at < COUNT; at += AT_ONCE) {
    const length = Math.min(AT_ONCE, COUNT - at)
    const some = Array.from({ length }, (_, more) =>
      realEntry(at + more, START + Math.floor(((at + more) * DAY_MS) / COUNT)),
    )
    await Promise.all(some.map((entry) => store.ledger.settle(entry)))
  }
  await store.ledger.prune({ entriesBeforeMs: 0, hoursBeforeMs: 0, daysBeforeMs: 0 })
  await store.close()
}
