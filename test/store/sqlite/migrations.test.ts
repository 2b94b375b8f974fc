/**
 * Goal: opening a store of an earlier version keeps its limits, entries, sums and reservations.
 * Method: converts a store of this version to the earlier version and opens it again.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { CAUSES } from '../../../src/errors.js'
import { connect, textIn } from '../../../src/store/sqlite/driver.js'
import { openSqlite } from '../../../src/store/sqlite/open-sqlite.js'
import {
  anAdmission,
  aRow,
  budget,
  MINUTE,
  NOON,
  places,
  TestClock,
  tokens,
} from '../ledger/sample-entries.js'
import { FIRST_CONTENT_BOUNDS_MS } from '../../../src/store/first-content.js'
import { toVersion7, toVersion8, toVersion9 } from './version-7.js'

void t.test('migrates a store of version 1 with all its data', async (t) => {
  const path = join(t.testdir(), 'store')
  const clock = new TestClock()
  const first = await opened(path, clock)
  const demands = [places(3, 'key:old')]
  const rows = [0, 1, 2].map((at) =>
    aRow({ requestId: `req_${at}`, accountId: 'acc_ada', keyId: 'key_old', atMs: NOON + at }),
  )
  for (const row of rows) await first.ledger.append(row)
  await first.ledger.admit(anAdmission(demands))
  await first.ledger.sums({ accountId: null, by: 'day', fromMs: NOON, toMs: NOON })
  await first.close()
  toVersion1(path)

  const { ledger, close } = await opened(path, clock)
  t.teardown(close)
  const page = { after: null, limit: 10 }
  const ids = ['req_2', 'req_1', 'req_0']
  for (const query of [{ accountId: 'acc_ada' }, { accountId: null, keyId: 'key_old' }]) {
    const found = await ledger.entries({ ...query, ...page })
    t.strictSame(
      found.entries.map(({ requestId }) => requestId),
      ids,
    )
  }
  for (const by of ['hour', 'day'] as const) {
    const span = { by, fromMs: NOON, toMs: NOON, per: 'model' } as const
    t.match(await ledger.sums({ ...span, accountId: 'acc_ada' }), [{ requests: 3 }])
  }
  t.equal((await ledger.limitStates('acc_ada', demands))[0]?.remaining, 2, 'limits are unchanged')
  t.ok((await ledger.admit(anAdmission(demands))).admitted)
  t.equal((await ledger.limitStates('acc_ada', demands))[0]?.remaining, 1)
})

void t.test('migrates a store of version 2, which then counts failures by cause', async (t) => {
  const path = join(t.testdir(), 'store')
  const clock = new TestClock()
  const span = { accountId: 'acc_ada', fromMs: NOON, toMs: NOON } as const
  const busy = { outcome: 'upstream_busy', status: 429 } as const
  const first = await opened(path, clock)
  const old = aRow(busy)
  await first.ledger.append(old)
  await first.ledger.sums({ ...span, by: 'hour' })
  await first.close()
  toVersion2(path)

  const { ledger, close } = await opened(path, clock)
  t.teardown(close)
  t.same(await ledger.entry('acc_ada', old.requestId), old)
  await ledger.append(aRow({ ...busy, attemptMs: [12.5, 40], retryAfterSeconds: 7 }))
  for (const by of ['hour', 'day'] as const) {
    const [sum] = await ledger.sums({ ...span, by })
    t.match(sum, { requests: 2, failed: 2, byCause: { provider: 1, client: 0 } }, by)
  }
})

void t.test('a store of version 4 keeps the amounts that running requests hold', async (t) => {
  const path = join(t.testdir(), 'store')
  const clock = new TestClock()
  const demands = [
    places(3, 'key:held'),
    tokens(5_000, 1_000, 'key:held'),
    budget('usd_day', { limitNanoUsd: 100, costNanoUsd: 60, subject: 'key:held' }),
    budget('usd_month', { limitNanoUsd: 1_000, costNanoUsd: 60, subject: 'acc' }),
  ]
  const remaining = (states: readonly { readonly remaining: number }[]) =>
    states.map((state) => state.remaining)
  const first = await opened(path, clock)
  const settled = anAdmission(demands)
  const lost = anAdmission([places(3, 'key:held')])
  await first.ledger.admit(settled)
  await first.ledger.admit(lost)
  await first.close()
  const db = connect(path)
  toVersion6(db)
  withOldReservations(db)
  t.equal(
    db.prepare('SELECT holds FROM reservations WHERE request_id = ?').get(settled.requestId)?.['holds'],
    JSON.stringify([
      ['tokens', 'acc_ada', 'key:held', 1_000, 5_000],
      ['concurrent', 'acc_ada', 'key:held'],
      ['usd_day', 'acc_ada', 'key:held', 60, Math.floor(NOON / 86_400_000)],
      ['usd_month', 'acc_ada', 'acc', 60, 56 * 12 + 10],
    ]),
    'converts the holds of version 4',
  )
  db.exec('PRAGMA user_version = 4')
  db.close()

  const { ledger, close } = await opened(path, clock)
  t.teardown(close)
  t.same(remaining(await ledger.limitStates('acc_ada', demands)), [1, 4_000, 40, 940])
  const usage = { input: 300, output: 100 }
  const entry = aRow({ requestId: settled.requestId, usage, costNanoUsd: 15 })
  t.equal(await ledger.settle(entry), 'settled')
  t.same(remaining(await ledger.limitStates('acc_ada', demands)), [2, 4_600, 85, 985])
  clock.atMs += MINUTE
  t.equal(await ledger.expire(), 1, 'an unsettled reservation expires')
  t.match(await ledger.entry(null, lost.requestId), { outcome: 'lost' })
  t.equal(remaining(await ledger.limitStates('acc_ada', demands))[0], 3)
  const migrated = connect(path)
  t.teardown(() => migrated.close())
  const indexes = "SELECT name FROM sqlite_schema WHERE type = 'index' AND name LIKE 'reservations%'"
  t.same(migrated.prepare(indexes).all(), [], 'version 6 has no index of reservations by their end')
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

/** Converts a store of this version to version 1. */
function toVersion1(path: string): void {
  const db = connect(path)
  toVersion6(db)
  db.exec(`
    DROP TABLE entry_places;
    DELETE FROM usage_hours WHERE key_id = '*';
    CREATE INDEX entries_by_account ON ledger_entries (account_id, at_ms);
    CREATE INDEX entries_by_key ON ledger_entries (key_id, at_ms);
    ALTER TABLE limits RENAME TO limits_2;
    CREATE TABLE limits (
      account_id TEXT NOT NULL, subject TEXT NOT NULL, requests REAL NOT NULL, requests_at_ms REAL NOT NULL,
      tokens REAL NOT NULL, tokens_at_ms REAL NOT NULL, places INTEGER NOT NULL, day INTEGER NOT NULL,
      day_spent REAL NOT NULL, day_reserved REAL NOT NULL, month INTEGER NOT NULL, month_spent REAL NOT NULL,
      month_reserved REAL NOT NULL, PRIMARY KEY (account_id, subject)
    ) WITHOUT ROWID;
    INSERT INTO limits SELECT account_id, subject, requests, requests_at_ms, tokens, tokens_at_ms, places, day,
      day_spent, day_reserved, month, month_spent, month_reserved FROM limits_2;
    DROP TABLE limits_2;
    PRAGMA user_version = 1;
  `)
  withOldReservations(db)
  withoutCauses(db)
  db.close()
}

/** Converts a store of this version to version 2. */
function toVersion2(path: string): void {
  const db = connect(path)
  toVersion6(db)
  withOldReservations(db)
  withoutCauses(db)
  db.exec('PRAGMA user_version = 2')
  db.close()
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

/** Removes the columns that version 3 added. */
function withoutCauses(db: ReturnType<typeof connect>): void {
  const pending = viewSql(db, 'usage_pending')
  db.exec('DROP VIEW usage_pending')
  for (const table of ['usage_hours', 'usage_days']) {
    for (const cause of CAUSES) db.exec(`ALTER TABLE ${table} DROP COLUMN errors_${cause}`)
  }
  const entries = viewSql(db, 'entries')
  db.exec('DROP VIEW entries')
  for (const column of ['attempt_ms', 'retry_after_seconds', 'price_version']) {
    db.exec(`ALTER TABLE ledger_entries DROP COLUMN ${column}`)
  }
  db.exec(entries.replace(' price_version,', ''))
  db.exec(pending)
}

/** Restores the table of reservations and the holds of version 4. */
function withOldReservations(db: ReturnType<typeof connect>): void {
  db.exec(`
    ALTER TABLE reservations RENAME TO reservations_5;
    CREATE TABLE reservations (
      request_id TEXT PRIMARY KEY, until_ms REAL NOT NULL, holds TEXT NOT NULL, entry TEXT NOT NULL
    ) WITHOUT ROWID;
    INSERT INTO reservations SELECT request_id, until_ms, (
      SELECT json_group_array(json(hold)) FROM (
        SELECT json_array('tokens', value ->> 0, value ->> 1, value ->> 2, value ->> 3) AS hold
        FROM json_each(holds) WHERE value ->> 2 IS NOT NULL
        UNION ALL SELECT json_array('concurrent', value ->> 0, value ->> 1)
        FROM json_each(holds) WHERE value ->> 4 = 1
        UNION ALL SELECT json_array('usd_day', value ->> 0, value ->> 1, value ->> 5, value ->> 6)
        FROM json_each(holds) WHERE value ->> 5 IS NOT NULL
        UNION ALL SELECT json_array('usd_month', value ->> 0, value ->> 1, value ->> 7, value ->> 8)
        FROM json_each(holds) WHERE value ->> 7 IS NOT NULL
      )
    ), entry FROM reservations_5;
    DROP TABLE reservations_5;
    CREATE INDEX reservations_by_end ON reservations (until_ms);
  `)
}
