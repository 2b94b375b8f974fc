/**
 * Goal: requests are sorted by every column of the page, in both directions, over all pages, with filters of
 * one or several values, ranges, accounts with all below them and the person who made a key. On both stores.
 * Method: requests of three accounts whose values repeat; a plain sort and plain filters of all rows.
 */
import { putAccount, putKey } from '../../../helpers/store-changes.js'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import {
  failuresReply,
  requestsReply,
  type RequestRow,
} from '../../../../src/control/dashboard/schema/schema.js'
import { ENTRY_COLUMNS, type EntryColumn } from '../../../../src/store/entry-order.js'
import { freshDatabases, redisMissing, startRedis } from '../../../helpers/redis.js'
import { dice } from '../../../helpers/seeded-random.js'
import { aKey, anAccount } from '../../../store/contract/sample-records.js'
import { aRow, startStage, type Browser, type Stage } from '../../../dashboard/fixtures/stage.js'
import { anotherDay } from '../../../helpers/long-suite.js'

const START = Date.UTC(2026, 10, 20, 12)

void t.test('SQLite', { skip: anotherDay(0, 2) }, async (t) => {
  await listed(t, await startStage(t))
})

void t.test('Redis', { skip: anotherDay(1, 2) || redisMissing() }, async (t) => {
  const store = freshDatabases(await startRedis(t))()
  const stage = await startStage(t, { store })
  const root = await listed(t, stage)
  await tooMany(t, root, store)
})

async function listed(t: Test, stage: Stage): Promise<Browser> {
  const root = await stage.signedIn('root@example.com', 'max', 'admin')
  const { top, below } = await filled(stage)
  const all = await walked(root, 'account=all&limit=200')
  t.equal(all.length, 90)
  await orders(t, root, all)
  await filters(t, root, { all, top, below })
  await counts(t, root, { all, top, below })
  await refusals(t, root)
  await ranges(t, { root, store: stage.store })
  const eve = await stage.signedIn('eve@example.com', 'max')
  t.strictSame(await walked(eve, `accountId=${top}`), [], 'no requests of another account')
  t.strictSame(await walked(eve, `parent=${top}`), [])
  const file = await root.get('/requests.csv?account=all&model=gpt-a&model=other')
  const wanted = all.filter(({ model }) => model === 'gpt-a' || model === 'other')
  const ids = file.text.trimEnd().split('\r\n').slice(1)
  t.strictSame(
    ids.map((line) => line.split(',')[0]),
    wanted.map(({ requestId }) => requestId),
    'the file has every request of the filters',
  )
  return root
}

/** Ninety requests: some of a key without a record, some of the playground. */
async function filled({ store }: Stage): Promise<{ top: string; below: string }> {
  const top = anAccount({ name: 'top', email: 'top@example.com' })
  const accounts = [
    top,
    anAccount({ name: 'below', email: 'below@example.com', parentId: top.id }),
    anAccount({ name: 'apart', email: 'apart@example.com' }),
  ]
  for (const account of accounts) await putAccount(store, account)
  const keys = accounts.flatMap(({ id }) =>
    ['Web', 'api'].map((name, at) =>
      aKey(id, { name, createdBy: at === 0 ? 'ada@example.com' : 'bob@example.com' }),
    ),
  )
  for (const key of keys) await putKey(store, key, null)
  const chance = dice(34)
  const pick = <Item>(items: readonly Item[]): Item => {
    const item = items[Math.floor(chance() * items.length)]
    if (item === undefined) throw new Error('no items')
    return item
  }
  for (let at = 0; at < 90; at += 1) {
    const key = pick(keys)
    const account = accounts.find(({ id }) => id === key.accountId) ?? top
    const failed = chance() < 0.2
    await store.ledger.settle(
      aRow(account.id, {
        atMs: START + Math.floor(chance() * 40) * 1_000,
        keyId: pick([key.id, key.id, key.id, 'key_gone', 'playground']),
        accountPath: account.name === 'below' ? 'top/below' : account.name,
        model: pick(['gpt-a', 'gpt-b', 'other']),
        modelAsked: pick(['fast', 'slow']),
        upstream: pick(['openai', 'anthropic', null]),
        status: failed ? 504 : 200,
        outcome: failed ? 'upstream_timeout' : 'ok',
        usage: chance() < 0.1 ? {} : { input: pick([10, 20]), output: pick([1, 11]) },
        costNanoUsd: pick([null, 5, 7, 9]),
        durationMs: pick([1.5, 2.5, 1_000]),
        hops: chance() < 0.2 ? {} : { firstContent: pick([0.25, 12, 13]) },
        labels: pick([null, 'team=web', 'env=ci team=data']),
      }),
    )
  }
  return { top: top.id, below: accounts[1]?.id ?? '' }
}

/** All rows, page by page. */
async function walked(browser: Browser, query: string): Promise<RequestRow[]> {
  const rows: RequestRow[] = []
  for (let after = ''; ;) {
    const answer = await browser.get(`/requests?${query}${after}`)
    if (answer.status !== 200) throw new Error(answer.text)
    const page = requestsReply.parse(answer.json)
    rows.push(...page.rows)
    if (page.next === null) return rows
    after = `&after=${encodeURIComponent(page.next)}`
  }
}

type Value = string | number | null

const VALUES: Readonly<Record<EntryColumn, (row: RequestRow) => Value>> = {
  atMs: ({ atMs }) => atMs,
  status: ({ status }) => status,
  model: ({ model, modelAsked }) => (model === 'other' ? modelAsked : model),
  account: ({ accountName, accountId }) => `${accountName ?? accountId} ${accountId}`,
  upstream: ({ upstream }) => upstream,
  key: ({ keyName, keyId }) => `${(keyName ?? keyId).toLowerCase()} ${keyId}`,
  tokens: ({ usage: { input, output } }) =>
    input === undefined || output === undefined ? null : input + output,
  costNanoUsd: ({ costNanoUsd }) => costNanoUsd,
  firstTokenMs: ({ hops }) => hops.firstContent ?? null,
  durationMs: ({ durationMs }) => durationMs,
}

/** Ids in the order of a column; null is last, and the same values are newest first. */
function idsBy(rows: readonly RequestRow[], column: EntryColumn, isDescending: boolean): string[] {
  const sign = isDescending ? -1 : 1
  const timeSign = column === 'atMs' ? sign : -1
  const compare = (a: RequestRow, b: RequestRow): number => {
    const [one, other] = [VALUES[column](a), VALUES[column](b)]
    if (one !== other) {
      if (one === null || other === null) return one === null ? 1 : -1
      return one < other ? -sign : sign
    }
    if (a.atMs !== b.atMs) return a.atMs < b.atMs ? -timeSign : timeSign
    return a.requestId < b.requestId ? -timeSign : timeSign
  }
  return [...rows].sort(compare).map(({ requestId }) => requestId)
}

function idsOf(rows: readonly RequestRow[]): string[] {
  return rows.map(({ requestId }) => requestId)
}

async function orders(t: Test, root: Browser, all: readonly RequestRow[]): Promise<void> {
  for (const column of ENTRY_COLUMNS) {
    for (const sort of [column, `-${column}`]) {
      const found = await walked(root, `account=all&limit=23&sort=${sort}`)
      t.strictSame(idsOf(found), idsBy(all, column, sort !== column), sort)
      const range = `fromMs=${START + 5_000}&toMs=${START + 30_000}&outcome=failed`
      const some = await walked(root, `account=all&limit=7&sort=${sort}&${range}`)
      const wanted = all.filter(({ atMs, outcome }) => {
        return outcome !== 'ok' && atMs >= START + 5_000 && atMs < START + 30_000
      })
      t.strictSame(idsOf(some), idsBy(wanted, column, sort !== column), `${sort} of a range`)
    }
  }
}

interface Rows {
  readonly all: readonly RequestRow[]
  readonly top: string
  readonly below: string
}

async function filters(t: Test, root: Browser, { all, top, below }: Rows): Promise<void> {
  const [one, two] = [...new Set(all.map(({ keyId }) => keyId))]
  const made = await root.get('/keys?account=all&createdBy=ada@example.com&limit=100')
  const hers = new Set((made.json['keys'] as { id: string }[]).map(({ id }) => id))
  const cases: [query: string, keeps: (row: RequestRow) => boolean][] = [
    ['model=gpt-a&model=gpt-b', ({ model }) => model !== 'other'],
    ['model=(unknown)&model=gpt-b', ({ model }) => model !== 'gpt-a'],
    ['status=504&status=429', ({ status }) => status === 504],
    ['outcome=ok&outcome=failed', () => true],
    ['outcome=failed&outcome=rate_limited', ({ outcome }) => outcome !== 'ok'],
    [`keyId=${one}&keyId=${two}`, ({ keyId }) => keyId === one || keyId === two],
    ['upstream=openai&upstream=none', ({ upstream }) => upstream === 'openai'],
    ['label=team=web&label=env=ci', ({ labels }) => labels !== null],
    [`accountId=${below}`, ({ accountId }) => accountId === below],
    [`parent=${top}`, ({ accountName }) => accountName !== 'apart'],
    ['parent=below', ({ accountName }) => accountName === 'below'],
    ['member=ada@example.com', ({ keyId }) => hers.has(keyId)],
    ['member=other@example.com', () => false],
    [`member=ada@example.com&keyId=${one}`, ({ keyId }) => hers.has(keyId) && keyId === one],
  ]
  for (const [query, keeps] of cases) {
    const wanted = all.filter(keeps)
    t.strictSame(idsOf(await walked(root, `account=all&limit=50&${query}`)), idsOf(wanted), query)
    const sorted = await walked(root, `account=all&limit=50&sort=-costNanoUsd&${query}`)
    t.strictSame(idsOf(sorted), idsBy(wanted, 'costNanoUsd', true), `${query}, by cost`)
  }
  const own = await walked(root, `account=${top}&sort=key&limit=7`)
  t.strictSame(
    idsOf(own),
    idsBy(
      all.filter(({ accountId }) => accountId === top),
      'key',
      false,
    ),
  )
}

/** The number of all matches, from sums and from entries, and failures in groups; with accounts below. */
async function counts(
  t: Test,
  root: Browser,
  { all, top, below }: { all: readonly RequestRow[]; top: string; below: string },
): Promise<void> {
  const ofTop = all.filter(({ accountId }) => accountId === top || accountId === below)
  const isFailed = ({ outcome }: RequestRow): boolean => outcome !== 'ok'
  const cases: readonly (readonly [query: string, rows: readonly RequestRow[]])[] = [
    ['account=all', all],
    ['account=all&outcome=failed', all.filter(isFailed)],
    ['account=all&cause=provider', all.filter(isFailed)],
    ['account=all&model=gpt-a', all.filter(({ model }) => model === 'gpt-a')],
    ['account=all&upstream=openai', all.filter(({ upstream }) => upstream === 'openai')],
    ['account=all&label=team%3Dweb', all.filter(({ labels }) => labels === 'team=web')],
    [`account=${top}`, all.filter(({ accountId }) => accountId === top)],
    [`account=${top}&tree=true`, ofTop],
    [`account=${top}&tree=true&outcome=failed`, ofTop.filter(isFailed)],
    [`account=${top}&tree=true&upstream=openai`, ofTop.filter(({ upstream }) => upstream === 'openai')],
  ]
  for (const [query, rows] of cases) {
    const reply = requestsReply.parse((await root.get(`/requests?${query}&count=true&limit=1`)).json)
    const failed = rows.filter(isFailed).length
    t.same(reply.count, { requests: rows.length, failed, isPart: false }, query)
    t.equal((await walked(root, query)).length, rows.length, `${query}: the list`)
    const { requests, groups } = failuresReply.parse((await root.get(`/failures?${query}&fromMs=0`)).json)
    t.equal(requests, failed, `${query}: the groups`)
    t.equal(
      groups.reduce((sum, group) => sum + group.requests, 0),
      failed,
    )
  }
  const file = await root.get(`/requests.csv?account=${top}&tree=true`)
  t.equal(file.text.trimEnd().split('\r\n').length - 1, ofTop.length, 'the file has those below')
}

/** Ranges that end now: the rows of the last span, however old the test's are today. */
async function ranges(t: Test, { root, store }: { root: Browser; store: Stage['store'] }): Promise<void> {
  const now = Date.now()
  const ages = [5, 30, 120].map((minutes) => minutes * 60_000)
  const rows = ages.map((age) => aRow('acc_now', { atMs: now - age }))
  for (const row of rows) await store.ledger.settle(row)
  const found = async (range: string): Promise<number> =>
    (await walked(root, `account=all&range=${range}`)).filter(({ accountId }) => accountId === 'acc_now')
      .length
  t.same([await found('15m'), await found('1h'), await found('6h')], [1, 2, 3])
  for (const more of ['', '&upstream=none', '&outcome=failed']) {
    const counted = await root.get(`/requests?account=all&range=1h&count=true&limit=1${more}`)
    t.equal(requestsReply.parse(counted.json).count?.requests, more === '' ? 2 : 0, `the number${more}`)
  }
  const file = await root.get('/requests.csv?account=all&range=1h')
  t.equal(file.text.split('acc_now').length - 1, 2, 'the file as well')
}

async function refusals(t: Test, root: Browser): Promise<void> {
  t.match(await root.get('/requests?sort=colour'), {
    status: 400,
    error: { kind: 'invalid_field', field: 'sort', message: /atMs, status, model/ },
  })
  const first = await root.get('/requests?account=all&limit=5&sort=-costNanoUsd')
  const { next } = requestsReply.parse(first.json)
  for (const sort of ['', '&sort=costNanoUsd', '&sort=-tokens']) {
    const answer = await root.get(`/requests?account=all${sort}&after=${next ?? ''}`)
    t.match(answer, { status: 400, error: { field: 'after' } }, 'the cursor of another order')
  }
  t.match(await root.get('/requests?sort=-costNanoUsd&after=x'), { json: { rows: [], next: null } })
  t.match(await root.get('/requests?fromMs=1&fromMs=2'), {
    status: 400,
    error: { field: 'fromMs' },
  })
  t.match(await root.get('/requests?range=1h&fromMs=1'), { status: 400, error: { field: 'range' } })
  t.match(await root.get('/requests?tree=false'), { status: 400, error: { field: 'tree' } })
  t.match(await root.get('/requests?status=1&status=2'), {
    status: 400,
    error: { field: /status/ },
  })
}

/** More requests than Redis can sort: the index alone decides it. */
async function tooMany(t: Test, root: Browser, url: string): Promise<void> {
  const redis = new Redis(url)
  const atMs = (START + 3_600_000).toString(36).padStart(9, '0')
  const members = Array.from({ length: 20_001 }, (_, at) => [0, `${atMs}~x${at}\0none`]).flat()
  await redis.zadd('sluice:ledger:names', ...members)
  redis.disconnect()
  t.match(await root.get('/requests?account=all&sort=-costNanoUsd'), {
    status: 400,
    error: { field: 'sort', message: /up to 20,000\. Choose a shorter time range/ },
  })
  const range = `fromMs=${START}&toMs=${START + 3_600_000}`
  t.equal((await walked(root, `account=all&sort=-costNanoUsd&limit=50&${range}`)).length, 90)
}
