/**
 * Goal: opening a store of an earlier version keeps its limits, entries, sums and reservations.
 * Method: converts a store of this version to the earlier version and opens it again.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { connect, textIn } from '../../../src/store/sqlite/driver.js'
import { openSqlite } from '../../../src/store/sqlite/open-sqlite.js'
import { anAdmission, aRow, budget, NOON, TestClock } from '../ledger/sample-entries.js'
import { FIRST_CONTENT_BOUNDS_MS } from '../../../src/store/first-content.js'
import { toVersion7, toVersion8, toVersion9 } from './version-7.js'

void t.test('a store from before the first release is refused, and not changed', async (t) => {
  const path = join(t.testdir(), 'store')
  const clock = new TestClock()
  await (await opened(path, clock)).close()
  for (const version of [1, 5]) {
    const db = connect(path)
    db.exec(`PRAGMA user_version = ${version}`)
    db.close()
    const message = `it was written before the first release of sluice, 0.1.0 (schema ${version})`
    await t.rejects(opened(path, clock), { cause: { message } })
    const left = connect(path)
    t.equal(left.prepare('PRAGMA user_version').get()?.['user_version'], version)
    left.close()
  }
})

void t.test('a store of version 6 keeps running requests, and then has budgets of a week', async (t) => {
  const path = join(t.testdir(), 'store')
  const clock = new TestClock()
  const old = [budget('usd_month', { limitNanoUsd: 100, costNanoUsd: 60 })]
  const first = await opened(path, clock)
  const running = anAdmission(old)
  await first.ledger.admit(running)
  await first.close()
  const db = connect(path)
  toVersion6(db)
  db.close()

  const { ledger, close } = await opened(path, clock)
  t.teardown(close)
  const demands = [...old, budget('usd_week', { limitNanoUsd: 100, costNanoUsd: 40 })]
  t.ok((await ledger.admit(anAdmission(demands.slice(1)))).admitted)
  await ledger.settle(aRow({ requestId: running.requestId, costNanoUsd: 10 }))
  const states = await ledger.limitStates('acc_ada', demands)
  t.same(
    states.map(({ remaining }) => remaining),
    [90, 60],
  )
})

void t.test('a store of version 6 then counts entries whose tokens are assumed', async (t) => {
  const path = join(t.testdir(), 'store')
  const clock = new TestClock()
  const span = { accountId: 'acc_ada', fromMs: NOON, toMs: NOON } as const
  const first = await opened(path, clock)
  await first.ledger.append(aRow())
  await first.ledger.sums({ ...span, by: 'hour' })
  await first.close()
  const db = connect(path)
  toVersion6(db)
  db.close()

  const { ledger, close } = await opened(path, clock)
  t.teardown(close)
  for (const by of ['hour', 'day'] as const) {
    t.match(await ledger.sums({ ...span, by }), [{ requests: 1, assumed: 0 }], by)
  }
  await ledger.append(aRow({ source: 'assumed' }))
  for (const by of ['hour', 'day'] as const) {
    t.match(await ledger.sums({ ...span, by }), [{ requests: 2, assumed: 1, estimated: 0 }], by)
    const ofUpstream = await ledger.sums({ ...span, by, property: 'upstream=openai' })
    t.match(ofUpstream, [{ requests: 2, assumed: 1 }], `${by} by property, of old entries too`)
  }
})

void t.test(
  'a store of version 8 keeps its times to first content, and then counts finer ones',
  async (t) => {
    const path = join(t.testdir(), 'store')
    const clock = new TestClock()
    const span = { accountId: 'acc_ada', fromMs: NOON, toMs: NOON } as const
    const first = await opened(path, clock)
    await first.ledger.append(aRow({ hops: { firstContent: 1_700 } }))
    await first.ledger.sums({ ...span, by: 'hour' })
    await first.close()
    const db = connect(path)
    toVersion8(db)
    db.close()

    const { ledger, close } = await opened(path, clock)
    t.teardown(close)
    await ledger.append(aRow({ hops: { firstContent: 1_700 } }))
    for (const by of ['hour', 'day'] as const) {
      const [sum] = await ledger.sums({ ...span, by })
      const counted = sum?.firstContent.flatMap((count, at) =>
        count === 0 ? [] : [[FIRST_CONTENT_BOUNDS_MS[at], count]],
      )
      t.same(
        counted,
        [
          [1_930, 1],
          [2_500, 1],
        ],
        `${by}: the former one is in the rest of 1,500 to 2,500 ms`,
      )
    }
  },
)

void t.test('a store of version 9 counts units from then on', async (t) => {
  const path = join(t.testdir(), 'store')
  const clock = new TestClock()
  const span = { accountId: 'acc_ada', fromMs: NOON, toMs: NOON } as const
  const first = await opened(path, clock)
  await first.ledger.append(aRow())
  await first.ledger.sums({ ...span, by: 'hour' })
  await first.close()
  const db = connect(path)
  toVersion9(db)
  db.close()

  const { ledger, close } = await opened(path, clock)
  t.teardown(close)
  await ledger.append(aRow({ units: 'audio_second=1.5 image=2' }))
  for (const by of ['hour', 'day'] as const) {
    t.match(await ledger.sums({ ...span, by }), [{ requests: 2, images: 2, audioMs: 1_500, pages: 0 }], by)
  }
  const use = { accountId: null, fromMs: NOON - 86_400_000, toMs: NOON + 86_400_000 }
  t.match(await ledger.groupUse({ ...use, by: 'key' }), [{ requests: 2, images: 2, audioMs: 1_500 }])
})

async function opened(path: string, clock: TestClock) {
  const store = await openSqlite(path, { nowMs: clock.now })
  return { ledger: store.ledger, close: () => store.close() }
}

function viewSql(db: ReturnType<typeof connect>, name: string): string {
  return textIn(db.prepare('SELECT sql FROM sqlite_schema WHERE name = ?').get(name) ?? {}, 'sql')
}

/** Converts a store of this version to version 6. */
function toVersion6(db: ReturnType<typeof connect>): void {
  toVersion7(db)
  for (const column of ['week', 'week_spent', 'week_reserved', 'others', 'kept_until_ms']) {
    db.exec(`ALTER TABLE limits DROP COLUMN ${column}`)
  }
  const pending = viewSql(db, 'usage_pending')
  db.exec('DROP VIEW usage_pending')
  for (const table of ['usage_hours', 'usage_days']) {
    db.exec(`ALTER TABLE ${table} DROP COLUMN assumed`)
  }
  db.exec(pending)
  const entries = viewSql(db, 'entries')
  db.exec('DROP VIEW entries')
  const columns = db.prepare('PRAGMA table_info(ledger_entries)').all()
  const names = columns.map((column) => textIn(column, 'name'))
  for (const added of names.slice(names.indexOf('price_version') + 1)) {
    db.exec(`ALTER TABLE ledger_entries DROP COLUMN ${added}`)
  }
  db.exec(entries.replace(/(price_version,).*?(\n {2}at_ms)/s, '$1$2'))
  const migration = readFileSync('src/store/sqlite/migrations/to-version-7.sql', 'utf8')
  for (const [, table = ''] of migration.matchAll(/^CREATE TABLE (\w+)/gm)) {
    db.exec(`DROP TABLE ${table}`)
  }
  db.exec("DELETE FROM sizes WHERE name LIKE 'objects%'")
  db.exec(`
    DROP INDEX accounts_by_parent;
    DROP INDEX keys_by_name;
    ALTER TABLE accounts DROP COLUMN parent_id;
    ALTER TABLE accounts RENAME COLUMN name TO email;
    ALTER TABLE keys DROP COLUMN name;
  `)
  db.exec('PRAGMA user_version = 6')
}
