/**
 * Goal: with 10,000 keys of 1,000 accounts and a million requests, every list of keys and accounts, sorted by
 * every column, takes at most 300 ms and has the order of SQL.
 * Method: a store of that size with SLUICE_LONG=1, else a small one without limits of time; SQL computes the
 * orders from the records and the ledger entries.
 */
import { join } from 'node:path'
import t from 'tap'
import { keysReply, accountsReply } from '../../../src/dashboard/server/schema/schema.js'
import { ACCOUNT_COLUMNS, KEY_COLUMNS } from '../../../src/store/directory.js'
import { openStore } from '../../../src/store/open-store.js'
import { connect, textIn, type Connection } from '../../../src/store/sqlite/driver.js'
import { fillStore, LOGIN } from '../fixtures/large-store.js'
import { startStage } from '../fixtures/stage.js'

const IS_WHOLE = process.env['SLUICE_LONG'] === '1'
const AMOUNT = IS_WHOLE
  ? { keys: 10_000, accounts: 1_000, rows: 1_000_000, isSpread: true }
  : { keys: 300, accounts: 30, rows: 2_000, isSpread: true }
const LIMIT_MS = 300
const REPEATS = 5
const DAY_MS = 86_400_000

/** Keys and accounts with the values by which they are sorted; `?1` is the start of the figures. */
const KEY_VALUES = `WITH uses AS (
    SELECT key_id, count(*) AS requests, sum(cost_nano_usd) AS spend
    FROM ledger_entries WHERE at_ms >= ?1 GROUP BY key_id),
  last AS (SELECT key_id, max(at_ms) AS last_at FROM ledger_entries GROUP BY key_id),
  listed AS (
    SELECT keys.id AS id, lower(keys.record ->> 'name') AS name, accounts.name AS account,
      keys.record ->> 'createdAtMs' AS createdAt, keys.record ->> 'expiresAtMs' AS expiresAt,
      last_at AS lastUsedAt, coalesce(requests, 0) AS requests, coalesce(spend, 0) AS spend,
      iif(keys.record ->> 'revokedAtMs' IS NULL, 'live', 'revoked') AS state
    FROM keys JOIN accounts ON accounts.id = keys.account_id
    LEFT JOIN uses ON uses.key_id = keys.id LEFT JOIN last ON last.key_id = keys.id)`
const ACCOUNT_VALUES = `WITH uses AS (
    SELECT account_id, count(*) AS requests, sum(cost_nano_usd) AS spend
    FROM ledger_entries WHERE at_ms >= ?1 GROUP BY account_id),
  live AS (SELECT account_id, sum(record ->> 'revokedAtMs' IS NULL) AS n FROM keys GROUP BY account_id),
  listed AS (
    SELECT accounts.id AS id, accounts.name AS name, accounts.record ->> 'email' AS email,
      accounts.record ->> 'plan' AS plan, accounts.record ->> 'createdAtMs' AS createdAt,
      coalesce(n, 0) AS liveKeys, coalesce(requests, 0) AS requests, coalesce(spend, 0) AS spend,
      above.name AS parent
    FROM accounts LEFT JOIN accounts AS above ON above.id = accounts.parent_id
    LEFT JOIN uses ON uses.account_id = accounts.id LEFT JOIN live ON live.account_id = accounts.id)`

/** The first ids in the order of a column. */
function idsOf(db: Connection, listed: string, sort: string, sinceMs: number): string[] {
  const column = sort.replace(/^-/, '')
  const direction = sort.startsWith('-') ? 'DESC' : 'ASC'
  return db
    .prepare(
      `${listed} SELECT id FROM listed ORDER BY ${column} ${direction} NULLS LAST, id LIMIT 100`,
    )
    .all(sinceMs)
    .map((row) => textIn(row, 'id'))
}

void t.test('large lists in every order', { timeout: 3_600_000 }, async (t) => {
  const file = join(t.testdir(), 'large.db')
  const nowMs = Date.now()
  const store = await openStore(`sqlite:${file}`)
  await fillStore(store, AMOUNT, nowMs)
  await store.close()
  // The gateway of the test makes an account and a key with it.
  const stage = await startStage(t, { store: `sqlite:${file}` })
  const db = connect(file)
  t.teardown(() => db.close())
  const sinceMs = Math.floor((nowMs - 30 * DAY_MS) / DAY_MS) * DAY_MS
  const orders = [
    ...KEY_COLUMNS.map((column) => ['/keys?account=all&state=all&limit=100', column] as const),
    ...ACCOUNT_COLUMNS.map((column) => ['/accounts?limit=100', column] as const),
  ].flatMap(([path, column]) =>
    [column, `-${column}`].map((sort) => {
      const listed = path.startsWith('/keys') ? KEY_VALUES : ACCOUNT_VALUES
      return { path, sort, wanted: idsOf(db, listed, sort, sinceMs) }
    }),
  )
  const root = stage.browser()
  t.equal((await root.signIn(LOGIN.email, LOGIN.password)).status, 200)
  for (const { path, sort, wanted } of orders) {
    const times: number[] = []
    let ids: string[] = []
    for (let repeat = 0; repeat < (IS_WHOLE ? REPEATS : 1); repeat += 1) {
      const began = performance.now()
      const answer = await root.get(`${path}&sort=${sort}`)
      times.push(performance.now() - began)
      ids = path.startsWith('/keys')
        ? keysReply.parse(answer.json).keys.map(({ id }) => id)
        : accountsReply.parse(answer.json).accounts.map(({ id }) => id)
    }
    t.strictSame(ids, wanted, `${path}&sort=${sort}`)
    if (!IS_WHOLE) continue
    times.sort((a, b) => a - b)
    const medianMs = Math.round(times[REPEATS >> 1] ?? 0)
    t.comment(`FIGURES ${medianMs} ms ${path}&sort=${sort}`)
    t.ok(medianMs <= LIMIT_MS, `${sort}: ${medianMs} ms`)
  }
})
