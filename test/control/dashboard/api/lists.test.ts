/**
 * Goal: lists of keys and accounts are sorted over all rows, filtered and paged; administrators act on keys
 * of every account; the history of labels, the audit log, the search and saved views are complete. On both
 * stores.
 * Method: keys of several accounts with values that repeat, every column in both directions, compared with a
 * plain sort of the records.
 */
import { endKey, putAccount, putKey } from '../../../helpers/store-changes.js'
import t, { type Test } from 'tap'
import { ACCOUNT_COLUMNS, KEY_COLUMNS } from '../../../../src/store/account-and-key-lists.js'
import {
  accountsReply,
  auditReply,
  keyDetailReply,
  keyReply,
  keysReply,
  searchReply,
  viewsReply,
  type AccountRow,
  type Key,
} from '../../../../src/control/dashboard/schema/schema.js'
import type { Account } from '../../../../src/accounts/account.js'
import { freshDatabases, redisMissing, startRedis } from '../../../helpers/redis.js'
import { dice } from '../../../helpers/seeded-random.js'
import { aKey, anAccount } from '../../../store/contract/sample-records.js'
import { aRow, startStage, type Browser, type Stage } from '../../../dashboard/fixtures/stage.js'
import { anotherDay } from '../../../helpers/long-suite.js'

const DAY_MS = 86_400_000

/** The tests on one store. */
function suite(name: string, open: (t: Test) => Promise<Stage>, skip: string | false = false): void {
  void t.test(name, { skip }, async (t) => {
    const stage = await open(t)
    const root = await stage.signedIn('root@example.com', 'max', 'admin')
    const team = await filled(stage)
    await sortedLists(t, root, stage)
    await filters(t, root, team)
    await actions(t, { stage, root, account: team })
    await auditLog(t, root)
    await searchAndViews(t, { stage, root, account: team })
  })
}

suite('SQLite', (t) => startStage(t), anotherDay(1, 2))
suite(
  'Redis',
  async (t) => {
    const server = await startRedis(t)
    return startStage(t, { store: freshDatabases(server)() })
  },
  anotherDay(0, 2) || redisMissing(),
)

/** Forty keys of four accounts, with requests; one account is below another one. */
async function filled({ store }: Stage): Promise<Account> {
  const chance = dice(33)
  const pick = <Item>(items: readonly Item[]): Item => {
    const item = items[Math.floor(chance() * items.length)]
    if (item === undefined) throw new Error('no items')
    return item
  }
  const top = anAccount({ name: 'top', email: 'top@example.com', plan: 'max' })
  const accounts = [
    top,
    anAccount({ name: 'below', email: 'below@example.com', plan: 'pro', parentId: top.id }),
    anAccount({ name: 'apart', email: 'apart@example.com', plan: 'max', disabled: true }),
    anAccount({ name: 'idle', email: 'idle@example.com', plan: 'pro' }),
  ]
  for (const account of accounts) await putAccount(store, account)
  const nowMs = Date.now()
  for (let at = 0; at < 40; at += 1) {
    const { id } = pick(accounts.slice(0, 3))
    const key = aKey(id, {
      name: `${pick(['Web', 'api', 'Job'])} ${at}`,
      createdAtMs: nowMs - Math.floor(chance() * 5) * DAY_MS,
      ...(chance() < 0.3 ? { expiresAtMs: nowMs + Math.floor(chance() * 4 - 2) * DAY_MS } : {}),
      ...(chance() < 0.3 ? { models: ['gpt-*'] } : {}),
      ...(chance() < 0.5 ? { labels: { team: pick(['web', 'data']) } } : {}),
      ...(chance() < 0.5 ? { createdBy: pick(['ada@example.com', 'bob@example.com']) } : {}),
    })
    await putKey(store, key, null)
    for (let rows = Math.floor(chance() * 3); rows > 0; rows -= 1) {
      const atMs = nowMs - Math.floor(chance() * 20) * DAY_MS - 1_000
      const costNanoUsd = Math.floor(chance() * 3) * 1_000_000
      await store.ledger.settle(aRow(id, { keyId: key.id, atMs, costNanoUsd }))
    }
    if (chance() < 0.2) await endKey(store, { accountId: id, id: key.id }, nowMs)
  }
  return top
}

/** All rows of a list, page by page. */
async function walked<Row>(
  browser: Browser,
  path: string,
  rowsOf: (json: unknown) => { rows: Row[]; next: string | null; total: number },
): Promise<{ rows: Row[]; total: number }> {
  const rows: Row[] = []
  for (let after = ''; ;) {
    const answer = await browser.get(`${path}${after === '' ? '' : `&after=${after}`}`)
    if (answer.status !== 200) throw new Error(answer.text)
    const page = rowsOf(answer.json)
    rows.push(...page.rows)
    if (page.next === null) return { rows, total: page.total }
    after = page.next
  }
}

function keysIn(json: unknown) {
  const { keys, next, total } = keysReply.parse(json)
  return { rows: keys, next, total }
}

function accountsIn(json: unknown) {
  const { accounts, next, total } = accountsReply.parse(json)
  return { rows: accounts, next, total }
}

type Value = string | number | null

const KEY_VALUES: Readonly<Record<(typeof KEY_COLUMNS)[number], (key: Key) => Value>> = {
  name: ({ name }) => name.toLowerCase(),
  account: ({ accountName }) => accountName,
  createdAt: ({ createdAtMs }) => createdAtMs,
  expiresAt: ({ expiresAtMs }) => expiresAtMs,
  lastUsedAt: ({ lastUsedAtMs }) => lastUsedAtMs,
  requests: ({ requests }) => requests,
  cost: ({ costNanoUsd }) => costNanoUsd,
  state: ({ state }) => state,
}
const ACCOUNT_VALUES: Readonly<Record<(typeof ACCOUNT_COLUMNS)[number], (row: AccountRow) => Value>> = {
  name: ({ name }) => name,
  email: ({ email }) => email,
  plan: ({ plan }) => plan,
  createdAt: ({ createdAtMs }) => createdAtMs,
  liveKeys: ({ liveKeys }) => liveKeys,
  requests: ({ requests }) => requests,
  cost: ({ costNanoUsd }) => costNanoUsd,
  parent: ({ parent }) => parent,
}

/** Ids in the order of a value, ties by id, null last in both directions. */
function idsBy<Row extends { readonly id: string }>(
  rows: readonly Row[],
  valueOf: (row: Row) => Value,
  sign: number,
): string[] {
  const compare = (a: Row, b: Row): number => {
    const [one, other] = [valueOf(a), valueOf(b)]
    if (one === other) return a.id < b.id ? -1 : 1
    if (one === null || other === null) return one === null ? 1 : -1
    return one < other ? -sign : sign
  }
  return [...rows].sort(compare).map(({ id }) => id)
}

async function sortedLists(t: Test, root: Browser, { store }: Stage): Promise<void> {
  const all = await walked(root, '/keys?account=all&state=all&limit=500', keysIn)
  t.equal(all.rows.length, 41, 'the keys of every account')
  for (const column of KEY_COLUMNS) {
    for (const sort of [column, `-${column}`]) {
      const path = `/keys?account=all&state=all&limit=7&sort=${sort}`
      const { rows, total } = await walked(root, path, keysIn)
      const ids = idsBy(all.rows, KEY_VALUES[column], sort === column ? 1 : -1)
      t.strictSame(
        rows.map(({ id }) => id),
        ids,
        `keys by ${sort}`,
      )
      t.equal(total, 41)
    }
  }
  const accounts = await walked(root, '/accounts?limit=200', accountsIn)
  for (const column of ACCOUNT_COLUMNS) {
    for (const sort of [column, `-${column}`]) {
      const { rows, total } = await walked(root, `/accounts?limit=2&sort=${sort}`, accountsIn)
      const ids = idsBy(accounts.rows, ACCOUNT_VALUES[column], sort === column ? 1 : -1)
      t.strictSame(
        rows.map(({ id }) => id),
        ids,
        `accounts by ${sort}`,
      )
      t.equal(total, accounts.rows.length)
    }
  }
  // The figures are those of the ledger.
  const [first] = idsBy(all.rows, KEY_VALUES.cost, -1)
  const key = all.rows.find(({ id }) => id === first)
  const { entries } = await store.ledger.entries({
    ...{ accountId: key?.accountId ?? null, keyId: first ?? '', after: null, limit: 100 },
  })
  t.equal(
    key?.costNanoUsd,
    entries.reduce((sum, { costNanoUsd }) => sum + (costNanoUsd ?? 0), 0),
  )
  t.equal(key?.lastUsedAtMs, Math.max(...entries.map(({ atMs }) => atMs)))
  t.match(await root.get('/keys?sort=colour'), {
    status: 400,
    error: { kind: 'invalid_field', field: 'sort', message: /name, account, createdAt/ },
  })
  t.match(await root.get('/accounts?sort=-colour'), { status: 400, error: { field: 'sort' } })
  const { next } = keysReply.parse((await root.get('/keys?account=all&limit=2&sort=name')).json)
  t.match(await root.get(`/keys?account=all&sort=-name&after=${next ?? ''}`), {
    status: 400,
    error: { field: 'after' },
  })
}

async function filters(t: Test, root: Browser, team: Account): Promise<void> {
  const { rows } = await walked(root, '/keys?account=all&state=all&limit=500', keysIn)
  const cases: [query: string, keeps: (key: Key) => boolean][] = [
    ['', ({ state }) => state !== 'revoked'],
    ['&state=live', ({ state }) => state !== 'revoked'],
    ['&state=revoked', ({ state }) => state === 'revoked'],
    ['&state=expired', ({ state }) => state === 'expired'],
    ['&state=all&label=team=web', ({ labels }) => labels['team'] === 'web'],
    ['&state=all&model=claude-x', ({ models }) => models === null],
    ['&state=all&model=gpt-x', () => true],
    ['&state=all&createdBy=ada@example.com', ({ createdBy }) => createdBy === 'ada@example.com'],
    // Ids are searched too: a space is in none of them.
    ['&state=all&search=WEB+', ({ name }) => name.startsWith('Web')],
    [`&state=all&search=${rows[3]?.id ?? ''}`, ({ id }) => id === rows[3]?.id],
    ['&state=all&search=TEAM%3Dw', ({ labels }) => labels['team'] === 'web'],
    ['&state=all&search=apart', ({ accountName }) => accountName === 'apart'],
  ]
  for (const [query, keeps] of cases) {
    const found = await walked(root, `/keys?account=all&limit=5${query}`, keysIn)
    const wanted = rows.filter(keeps)
    t.strictSame(found.rows.map(({ id }) => id).sort(), wanted.map(({ id }) => id).sort(), query)
    t.equal(found.total, wanted.length)
  }
  const own = await walked(root, `/keys?account=${team.id}&state=all`, keysIn)
  t.ok(own.rows.length > 0 && own.rows.every(({ accountId }) => accountId === team.id))
  const names = async (query: string): Promise<string[]> => {
    const found = await walked(root, `/accounts?limit=2${query}`, accountsIn)
    return found.rows.map(({ name }) => name).sort()
  }
  t.strictSame(await names('&plan=pro'), ['below', 'idle'])
  t.strictSame(await names('&parent=top'), ['below'])
  t.strictSame(await names(`&parent=${team.id}`), ['below'])
  t.strictSame(await names('&state=disabled'), ['apart'])
  t.strictSame(await names('&state=active&search=ELOW'), ['below'])
}

interface Scene {
  readonly stage: Stage
  readonly root: Browser
  readonly account: Account
}

async function actions(t: Test, { stage, root, account }: Scene): Promise<void> {
  const key = aKey(account.id, { name: 'leaked', labels: { team: 'web', priority: 'high' } })
  await putKey(stage.store, key, null)
  const detail = async () => keyDetailReply.parse((await root.get(`/keys/${key.id}?account=all`)).json)
  t.match(await detail(), {
    key: { id: key.id, accountId: account.id, accountName: 'top', labels: key.labels },
    labelHistory: [{ atMs: key.createdAtMs, by: null, labels: key.labels }],
  })
  t.match((await detail()).limits, [])
  const patch = (query: string, body: object) => root.ask('PATCH', `/keys/${key.id}${query}`, { body })
  t.equal((await patch('', { limits: {} })).status, 404, 'another account, if none is named')
  const limited = await patch('?account=all', {
    limits: { requestsPerMinute: 7 },
    labels: { team: 'data', priority: 'high' },
    reason: 'leaked in a log',
  })
  t.match(keyReply.parse(limited.json).key, {
    limits: { requestsPerMinute: 7 },
    labels: { team: 'data', priority: 'high' },
  })
  const labels = { team: 'ml' }
  const moved = await patch(`?account=${account.id}`, { labels })
  t.strictSame(keyReply.parse(moved.json).key.labels, labels)
  t.match((await patch('?account=all', { labels: { NO: 'x' } })).status, 400)
  t.match(await detail(), {
    limits: [{ scope: 'key', kind: 'requests_per_minute', limit: 7, left: 7 }],
    labelHistory: [
      { by: 'root@example.com', labels },
      { by: 'root@example.com', labels: { team: 'data', priority: 'high' } },
      { by: null, labels: key.labels },
    ],
  })
  const rotated = await root.ask('POST', `/keys/${key.id}/rotate?account=all`, {
    body: { reason: 'leaked' },
  })
  t.equal(rotated.status, 201)
  t.match(rotated.json, { key: { accountId: account.id, replaces: key.id, labels } })
  const long = `/keys/${key.id}?account=all&reason=${'x'.repeat(501)}`
  t.match(await root.ask('DELETE', long), { status: 400, error: { field: 'reason' } })
  const gone = await root.ask('DELETE', `/keys/${key.id}?account=all&reason=leaked+again`)
  t.match(gone, { status: 200, json: { key: { state: 'revoked' } } })
  t.equal((await root.get('/keys/key_none?account=all')).status, 404)

  const owner = await stage.signedIn('eve@example.com', 'max')
  t.equal((await owner.ask('DELETE', `/keys/${key.id}?account=all`)).status, 404)
  t.equal((await owner.get(`/keys/${key.id}?account=all`)).status, 404)
  const own = await stage.store.accountByEmail('eve@example.com')
  const hers = aKey(own?.id ?? '', { labels: { priority: 'high' } })
  await putKey(stage.store, hers, null)
  const change = (changed: object) => owner.ask('PATCH', `/keys/${hers.id}`, { body: { labels: changed } })
  for (const refused of [{}, { priority: 'low' }]) {
    t.match(await change(refused), { status: 403, error: { field: 'labels.priority' } })
  }
  t.equal((await change({ priority: 'high', team: 'x' })).status, 200)
}

async function auditLog(t: Test, root: Browser): Promise<void> {
  const entriesOf = async (query: string) => {
    const found = await root.get(`/audit?account=all&limit=200${query}`)
    if (found.status !== 200) throw new Error(found.text)
    return auditReply.parse(found.json).entries
  }
  const all = await entriesOf('')
  const actions = async (query: string) => (await entriesOf(query)).map(({ action }) => action)
  t.strictSame(await actions('&action=key.&actor=root@example.com'), [
    ...['key.revoke', 'key.rotate', 'key.change', 'key.change'],
  ])
  t.strictSame(await actions('&action=key.revoke'), ['key.revoke'])
  t.strictSame(await actions('&action=key.&sort=atMs'), [
    ...['key.change', 'key.change', 'key.rotate', 'key.revoke', 'key.change'],
  ])
  const [revoked] = await entriesOf('&action=key.revoke')
  t.match(revoked, {
    ...{ actor: 'root@example.com', accountName: 'top', reason: 'leaked again' },
    requestId: String,
  })
  t.equal((await entriesOf('&search=KED+AGAIN')).length, 1)
  t.equal((await entriesOf(`&target=${revoked?.target ?? ''}`)).length, 4)
  const [middle] = await entriesOf('&action=key.rotate')
  const atMs = middle?.atMs ?? 0
  t.ok((await entriesOf(`&fromMs=${atMs}`)).every((entry) => entry.atMs >= atMs))
  t.ok((await entriesOf(`&toMs=${atMs}`)).every((entry) => entry.atMs < atMs))
  const pages: string[] = []
  for (let after = ''; ;) {
    const page = auditReply.parse((await root.get(`/audit?account=all&limit=3${after}`)).json)
    pages.push(...page.entries.map(({ id }) => id))
    if (page.next === null) break
    after = `&after=${page.next}`
  }
  t.strictSame(
    pages,
    all.map(({ id }) => id),
  )
  t.match(await root.get('/audit?sort=actor'), { status: 400, error: { field: 'sort' } })
  const file = await root.get('/audit.csv?account=all')
  const lines = file.text.trimEnd().split('\r\n')
  t.equal(lines.length, all.length + 1)
  t.equal(lines[0]?.startsWith('id,time,actor,action,account,'), true)
  t.match(file.text, /key\.revoke,top,.*leaked again/)
  const some = await root.get('/audit.csv?account=all&action=key.revoke')
  t.equal(some.text.trimEnd().split('\r\n').length, 2)
}

async function searchAndViews(t: Test, { stage, root, account }: Scene): Promise<void> {
  const row = aRow(account.id, { clientRequestId: 'client-77', keyId: 'key_x' })
  await stage.store.ledger.settle(row)
  const found = async (browser: Browser, q: string, scope = '&account=all') => {
    const answer = await browser.get(`/search?q=${q}${scope}`)
    if (answer.status !== 200) throw new Error(`${q}: ${answer.text}`)
    return searchReply.parse(answer.json)
  }
  for (const q of [row.requestId, 'client-77']) {
    t.match(await found(root, q), { requests: [{ requestId: row.requestId, status: 200 }] })
  }
  const keys = (await found(root, 'web')).keys
  t.ok(keys.length > 1 && keys.length <= 8)
  const [first] = keys
  t.match(await found(root, first?.id ?? ''), { keys: [{ id: first?.id, accountName: String }] })
  t.match(await found(root, 'apart'), { accounts: [{ name: 'apart', disabled: true }] })
  t.match(await found(root, 'sonnet'), { models: [{ id: /sonnet/ }] })
  const eve = stage.browser()
  await eve.signIn('eve@example.com')
  t.match(await found(eve, row.requestId, ''), { requests: [], keys: [], accounts: [] })
  t.match(await found(eve, 'apart', ''), { accounts: [] })
  t.match(await found(eve, 'eve', ''), { accounts: [{ name: 'eve' }] })
  t.equal((await eve.get('/search?q=x&account=all')).status, 404)

  const put = (browser: Browser, id: string, body: object) => browser.ask('PUT', `/views/${id}`, { body })
  const spend = { name: 'Most spend', url: '/keys?account=all&sort=-cost' }
  t.match(viewsReply.parse((await put(root, 'a', spend)).json).views, [{ id: 'a', ...spend }])
  await put(root, 'b', { name: 'Failed', url: '/requests?outcome=failed' })
  const renamed = { ...spend, name: 'Top' }
  t.match((await put(root, 'a', renamed)).json, { views: [{ id: 'a', name: 'Top' }, { id: 'b' }] })
  for (const url of ['keys', '//evil.example', 'https://evil.example', '/keys#x', '/a\\b', '/k k']) {
    t.match(await put(root, 'c', { name: 'x', url }), { status: 400, error: { field: 'url' } }, url)
  }
  t.match(await put(root, 'c', { name: ' ', url: '/keys' }), { status: 400 })
  t.same((await eve.get('/views')).json, { views: [] }, 'views are of one user')
  t.equal((await eve.ask('DELETE', '/views/a')).status, 200, 'none of hers')
  t.match((await root.ask('DELETE', '/views/a')).json, { views: [{ id: 'b' }] })
  for (let at = 0; at < 49; at += 1) await put(root, `v${at}`, spend)
  t.match(await put(root, 'one-more', spend), { status: 400, error: { message: /50 saved views/ } })
  t.match((await root.get('/session')).status, 200)
}
