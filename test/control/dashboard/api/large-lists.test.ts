/**
 * Goal: with 10,000 keys of 1,000 accounts and a million requests, every list of keys, accounts and requests,
 * sorted by every column, takes at most 300 ms and has the order of SQL.
 * Method: a store of that size with SLUICE_LONG=1, else a small one without limits of time; SQL computes the
 * orders from the records and the ledger entries. On a busy machine the processor time of the test, gateway
 * included, is the measure.
 */
import { join } from 'node:path'
import t from 'tap'
import { keysReply, accountsReply, requestsReply } from '../../../../src/control/dashboard/schema/schema.js'
import { ACCOUNT_COLUMNS, KEY_COLUMNS } from '../../../../src/store/account-and-key-lists.js'
import { ENTRY_COLUMNS } from '../../../../src/store/entry-order.js'
import { openStore } from '../../../../src/store/open-store.js'
import { connect, textIn, type Connection } from '../../../../src/store/sqlite/driver.js'
import { fillStore, LOGIN } from '../../../dashboard/fixtures/large-store.js'
import { startStage } from '../../../dashboard/fixtures/stage.js'
import { IS_LONG, ofToday } from '../../../helpers/long-suite.js'

const IS_WHOLE = IS_LONG
const AMOUNT = IS_WHOLE
  ? { keys: 10_000, accounts: 1_000, rows: 1_000_000, isSpread: true }
  : { keys: 300, accounts: 30, rows: 2_000, isSpread: true }
const LIMIT_MS = 300
const REPEATS = 5
const DAY_MS = 86_400_000

/** Keys and accounts with the values by which they are sorted; `?1` is the start of the figures. */
const KEY_VALUES = `WITH uses AS (
    SELECT key_id, count(*) AS requests, sum(cost_nano_usd) AS cost
    FROM ledger_entries WHERE at_ms >= ?1 GROUP BY key_id),
  last AS (SELECT key_id, max(at_ms) AS last_at FROM ledger_entries GROUP BY key_id),
  listed AS (
    SELECT keys.id AS id, lower(keys.record ->> 'name') AS name, accounts.name AS account,
      keys.record ->> 'createdAtMs' AS createdAt, keys.record ->> 'expiresAtMs' AS expiresAt,
      last_at AS lastUsedAt, coalesce(requests, 0) AS requests, coalesce(cost, 0) AS cost,
      iif(keys.record ->> 'revokedAtMs' IS NULL, 'live', 'revoked') AS state
    FROM keys JOIN accounts ON accounts.id = keys.account_id
    LEFT JOIN uses ON uses.key_id = keys.id LEFT JOIN last ON last.key_id = keys.id)`
const ACCOUNT_VALUES = `WITH uses AS (
    SELECT account_id, count(*) AS requests, sum(cost_nano_usd) AS cost
    FROM ledger_entries WHERE at_ms >= ?1 GROUP BY account_id),
  live AS (SELECT account_id, sum(record ->> 'revokedAtMs' IS NULL) AS n FROM keys GROUP BY account_id),
  listed AS (
    SELECT accounts.id AS id, accounts.name AS name, accounts.record ->> 'email' AS email,
      accounts.record ->> 'plan' AS plan, accounts.record ->> 'createdAtMs' AS createdAt,
      coalesce(n, 0) AS liveKeys, coalesce(requests, 0) AS requests, coalesce(cost, 0) AS cost,
      above.name AS parent
    FROM accounts LEFT JOIN accounts AS above ON above.id = accounts.parent_id
    LEFT JOIN uses ON uses.account_id = accounts.id LEFT JOIN live ON live.account_id = accounts.id)`

const REQUEST_VALUES = `WITH listed AS (
    SELECT request_id AS id, at_ms AS atMs, status, ledger_entries.model, upstream,
      accounts.name || ' ' || accounts.id AS account,
      lower(keys.record ->> 'name') || ' ' || keys.id AS key,
      input_tokens + output_tokens AS tokens, cost_nano_usd AS costNanoUsd,
      first_content_ms AS firstTokenMs, duration_ms AS durationMs
    FROM ledger_entries JOIN keys ON keys.id = key_id JOIN accounts ON accounts.id = keys.account_id
    AND ?1 > 0)`
const VALUES = { keys: KEY_VALUES, accounts: ACCOUNT_VALUES, requests: REQUEST_VALUES } as const

/** The first ids in the order of a column. */
function idsOf(db: Connection, list: keyof typeof VALUES, sort: string, sinceMs: number): readonly string[] {
  const column = sort.replace(/^-/, '')
  const direction = sort.startsWith('-') ? 'DESC' : 'ASC'
  const ties = list !== 'requests' ? 'id' : column === 'atMs' ? `id ${direction}` : 'atMs DESC, id DESC'
  return db
    .prepare(
      `${VALUES[list]} SELECT id FROM listed ORDER BY ${column} ${direction} NULLS LAST, ${ties} LIMIT 100`,
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
    ...KEY_COLUMNS.map((column) => ['keys', '?account=all&state=all&limit=100', column] as const),
    ...ACCOUNT_COLUMNS.map((column) => ['accounts', '?limit=100', column] as const),
    ...ENTRY_COLUMNS.map((column) => ['requests', '?account=all&limit=100', column] as const),
  ].flatMap(([list, query, column]) =>
    [column, `-${column}`].map((sort) => {
      return { list, path: `/${list}${query}`, sort, wanted: idsOf(db, list, sort, sinceMs) }
    }),
  )
  const root = stage.browser()
  t.equal((await root.signIn(LOGIN.email, LOGIN.password)).status, 200)
  const idsIn = {
    keys: (json: unknown) => keysReply.parse(json).keys.map(({ id }) => id),
    accounts: (json: unknown) => accountsReply.parse(json).accounts.map(({ id }) => id),
    requests: (json: unknown) => requestsReply.parse(json).rows.map(({ requestId }) => requestId),
  }
  for (const { list, path, sort, wanted } of ofToday(orders, 3)) {
    const times: number[] = []
    let ids: string[] = []
    let next: unknown = null
    for (let repeat = 0; repeat < (IS_WHOLE ? REPEATS : 1); repeat += 1) {
      const [began, used] = [performance.now(), process.cpuUsage()]
      const answer = await root.get(`${path}&sort=${sort}`)
      const { user, system } = process.cpuUsage(used)
      times.push(Math.min(performance.now() - began, (user + system) / 1_000))
      ids = idsIn[list](answer.json)
      next = answer.json['next']
    }
    // A page of requests also ends after some time, which a busy machine needs for fewer rows.
    while (list === 'requests' && ids.length < wanted.length && typeof next === 'string') {
      const { json } = await root.get(`${path}&sort=${sort}&after=${encodeURIComponent(next)}`)
      ids = [...ids, ...idsIn[list](json)].slice(0, wanted.length)
      next = json['next']
    }
    t.strictSame(ids, wanted, `${path}&sort=${sort}`)
    if (!IS_WHOLE) continue
    times.sort((a, b) => a - b)
    const medianMs = Math.round(times[REPEATS >> 1] ?? 0)
    t.comment(`FIGURES ${medianMs} ms ${path}&sort=${sort}`)
    t.ok(medianMs <= LIMIT_MS, `${sort}: ${medianMs} ms`)
  }
})
