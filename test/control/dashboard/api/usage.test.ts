/**
 * Goal: usage is correct by time, model and key; single requests have their hops; CSV file and live view
 * agree.
 * Method: entries are put into the ledger, and each reply is compared with their sums.
 */
import t from 'tap'
import { createAccount } from '../../../../src/accounts/changes/change-accounts.js'
import { quantile } from '../../../../src/control/dashboard/usage-figures.js'
import {
  createdKeyReply,
  liveReply,
  requestReply,
  requestsReply,
  usageGroupsReply,
  usageReply,
} from '../../../../src/control/dashboard/schema/schema.js'
import { csvHeader } from '../../../../src/ledger/export-columns.js'
import { FIRST_CONTENT_BOUNDS_MS } from '../../../../src/store/first-content.js'
import { aRow, startStage } from '../../../dashboard/fixtures/stage.js'

const HOUR_MS = 3_600_000

void t.test('sums by hour, model and key', async (t) => {
  const stage = await startStage(t)
  const ada = await stage.signedIn('ada@example.com')
  const bob = await stage.account('bob@example.com')
  const { key } = createdKeyReply.parse((await ada.ask('POST', '/keys', { body: { name: 'ci' } })).json)
  const { accountId } = key
  const { ledger } = stage.store
  const hour = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 3 * HOUR_MS
  const models = Array.from({ length: 11 }, (_, at) => `model-${at}`)
  for (const [at, model] of models.entries()) {
    const over = { model, keyId: key.id, atMs: hour + at, costNanoUsd: (at + 1) * 1_000 }
    await ledger.settle(aRow(accountId, over))
  }
  const later = { model: 'model-0', keyId: 'playground', atMs: hour + HOUR_MS }
  const failed = { outcome: 'upstream_failed', status: 502, usage: {}, source: 'none' } as const
  await ledger.settle(aRow(accountId, { ...later, ...failed, costNanoUsd: 0, hops: {} }))
  const hit = { cacheHit: true, savedNanoUsd: 5_000 }
  await ledger.settle(aRow(accountId, { ...later, ...hit, costNanoUsd: null, source: 'estimated' }))
  await ledger.settle(aRow(bob.id, { atMs: hour, costNanoUsd: 999_999 }))

  const range = `by=hour&fromMs=${hour}&toMs=${hour + HOUR_MS + 1}`
  const usage = usageReply.parse((await ada.get(`/usage?${range}&group=model`)).json)
  t.match(usage, { fromMs: hour, toMs: hour + HOUR_MS + 1, extendedTo: null })
  t.match(usage.total, {
    requests: 13,
    failed: 1,
    inputTokens: 1_200,
    outputTokens: 240,
    cachedTokens: 480,
    reasoningTokens: 60,
    costNanoUsd: 66_000,
    unpricedRequests: 1,
    estimatedRequests: 1,
    assumedRequests: 0,
    ...{ cacheHits: 1, cacheSavedNanoUsd: 5_000 },
  })
  t.match(usage.points, [
    { startMs: hour, requests: 11, costNanoUsd: 66_000 },
    { startMs: hour + HOUR_MS, requests: 2, failed: 1 },
  ])
  t.equal(usage.groups.length, 9, 'eight and the rest')
  t.match(usage.groups[0], { id: 'model-10', total: { costNanoUsd: 11_000 } })
  t.match(usage.groups[8], { id: 'other', isRest: true, total: { requests: 5, costNanoUsd: 6_000 } })
  const p95 = usage.total.firstTokenP95Ms ?? 0
  t.equal(p95, 320, 'of few requests, the exact time')

  const byKey = usageReply.parse((await ada.get(`/usage?${range}&group=key`)).json)
  t.match(byKey.groups, [
    { id: key.id, label: 'ci', total: { requests: 11 } },
    { id: 'playground', label: 'playground', total: { requests: 2 } },
  ])
  const one = usageReply.parse((await ada.get(`/usage?${range}&model=model-3`)).json)
  t.match([one.total.requests, one.groups], [1, []])
  const none = usageReply.parse((await ada.get(`/usage?${range}&keyId=key_none`)).json)
  t.match([none.total, none.points], [{ requests: 0, firstTokenP50Ms: null }, []])

  const root = await stage.signedIn('root@example.com', 'max', 'admin')
  const all = usageReply.parse((await root.get(`/usage?${range}&account=all`)).json)
  t.equal(all.total.requests, 14, 'an administrator sees all')
  const his = usageReply.parse((await root.get(`/usage?${range}&account=${bob.id}`)).json)
  t.equal(his.total.costNanoUsd, 999_999, 'or one')
})

void t.test('K-176: ranges are bounded, and unknown parameters are refused', async (t) => {
  const stage = await startStage(t)
  const browser = await stage.signedIn('root@example.com', 'max', 'admin')
  const [day, now] = [86_400_000, Date.now()]
  const bad = [
    '/usage',
    '/usage?by=second&fromMs=0&toMs=1',
    '/usage?range=2h',
    `/usage?range=1h&fromMs=${now}`,
    `/usage?by=minute&fromMs=${now - 9 * HOUR_MS}&toMs=${now}`,
    `/usage?by=hour&fromMs=${now}`,
    '/providers?range=1y',
    `/usage?by=hour&fromMs=${now - 32 * day}&toMs=${now}`,
    `/usage?by=day&fromMs=${now - 401 * day}&toMs=${now}`,
    `/usage?by=day&fromMs=${now}&toMs=${now - 2 * day}`,
    '/usage?by=day&fromMs=-1&toMs=1',
    '/usage?by=day&fromMs=1e9&toMs=1',
    '/requests?limit=1000000000',
    '/requests?limit=0',
    '/requests?status=ok',
    '/requests?status=99',
    '/requests?limit=201',
    '/requests?limit=ten',
    '/requests?sort=colour',
    '/requests?order_by=1;drop',
    '/requests?outcome=*',
    '/requests?after=%00',
    '/requests?model=%25%25%25%25%20',
    '/requests.csv?limit=5',
    '/keys?limit=501',
    '/keys?state=*',
    `/keys?search=${'x'.repeat(101)}`,
    '/accounts?limit=201',
    '/audit?limit=201',
    '/live?limit=1',
    '/models?x=1',
    '/models/explain?model=a%20%20b',
  ]
  for (const path of bad) {
    const answer = await browser.get(path)
    t.match(
      [answer.status, answer.error['kind']],
      [400, /^(?:malformed_request|(?:invalid|unknown)_field)$/],
      path,
    )
  }
  const advice = async (by: string, days: number): Promise<unknown> => {
    return (await browser.get(`/usage?by=${by}&fromMs=${now - days * day}&toMs=${now}`)).error['message']
  }
  t.match(await advice('hour', 32), /31 days\. Choose a shorter one, or usage by day\.$/)
  t.match(await advice('day', 401), /400 days\. Choose a shorter one\.$/)
  for (const words of ['%%%%', '*', '(a+)+$', '[', '\\']) {
    const answer = await browser.get(`/accounts?search=${encodeURIComponent(words)}`)
    t.match([answer.status, answer.json['accounts']], [200, []], words)
  }
  for (const after of ['nothing', '*', '0']) {
    t.equal((await browser.get(`/audit?after=${after}`)).status, 200)
    t.equal((await browser.get(`/keys?after=${after}`)).status, 200)
  }
})

void t.test('requests are filtered, paged, opened and exported', async (t) => {
  const stage = await startStage(t)
  const ada = await stage.signedIn('ada@example.com')
  const made = createdKeyReply.parse((await ada.ask('POST', '/keys', { body: { name: '=cmd()' } })).json)
  const { accountId, id: keyId } = made.key
  const { ledger } = stage.store
  const start = Date.now() - 60_000
  for (let at = 0; at < 12; at += 1) {
    const isBad = at % 4 === 0
    const over = isBad ? ({ outcome: 'upstream_timeout', status: 504 } as const) : {}
    await ledger.settle(aRow(accountId, { keyId, atMs: start + at, ...over }))
  }
  const odd = { modelAsked: '@SUM(1,"2")\n', costNanoUsd: 12_345_678_901, atMs: start + 50 }
  const last = aRow(accountId, { keyId: 'playground', model: 'other', ...odd })
  await ledger.settle(last)

  const times: number[] = []
  for (let after = ''; ;) {
    const answer = await ada.get(`/requests?limit=5${after === '' ? '' : `&after=${after}`}`)
    const page = requestsReply.parse(answer.json)
    times.push(...page.rows.map(({ atMs }) => atMs))
    if (page.next === null) break
    after = encodeURIComponent(page.next)
  }
  t.same(
    times,
    [...times].sort((a, b) => b - a),
    'newest first',
  )
  t.equal(times.length, 13)
  const failed = requestsReply.parse((await ada.get('/requests?outcome=failed')).json)
  t.equal(failed.rows.length, 3)
  t.ok(failed.rows.every(({ status, keyName }) => status === 504 && keyName === '=cmd()'))
  const range = `/requests?fromMs=${start + 3}&toMs=${start + 5}`
  t.equal(requestsReply.parse((await ada.get(range)).json).rows.length, 2)

  const one = requestReply.parse((await ada.get(`/requests/${last.requestId}`)).json)
  t.match(one.row, { keyName: 'playground', hops: { firstByte: 300 }, losses: ['logit_bias'] })
  t.match(one.row.usage, { input: 100, output: 20 })

  const why = {
    ...{ errorMessage: 'Too many requests', limit: 'account requests/minute', attempted: 'a:ok' },
    ...{ upstreamStatus: 429, upstreamRequestId: 'up-1', labels: 'team=web' },
  }
  const refused = {
    status: 429,
    outcome: 'rate_limited',
    upstream: 'mistral',
    ingress: 'image_edits',
    ...why,
  } as const
  const other = aRow(accountId, { atMs: start - 50, modelAsked: 'fast', ...refused })
  await ledger.settle(other)
  for (const filter of ['status=429', 'upstream=mistral', 'modelAsked=fast', 'clientFormat=image_edits']) {
    const { rows } = requestsReply.parse((await ada.get(`/requests?${filter}`)).json)
    t.strictSame(
      rows.map(({ requestId }) => requestId),
      [other.requestId],
      filter,
    )
    t.match(rows[0], { ...why, clientFormat: 'image_edits' }, 'the entry explains itself')
  }
  const byId = `/requests?requestId=${other.requestId}`
  t.equal(requestsReply.parse((await ada.get(byId)).json).rows.length, 1)
  t.equal(requestsReply.parse((await ada.get(`${byId}&status=200`)).json).rows.length, 0)
  const eve = await stage.signedIn('eve@example.com')
  t.equal(requestsReply.parse((await eve.get(byId)).json).rows.length, 0, "not another account's")

  const file = await ada.get('/requests.csv?outcome=failed&status=504')
  t.match(file.headers.get('content-disposition'), /^attachment; filename="requests-.*\.csv"$/)
  t.match(file.headers.get('content-type'), 'text/csv')
  t.equal(file.text.split('\r\n').length, 5, 'a head, three rows, and the end')
  const whole = await ada.get('/requests.csv')
  const columns = `${csvHeader()},key_name,account_name,cause`
  t.equal(whole.text.split('\r\n')[0], columns, 'the columns of the export, and those of the page')
  t.match(whole.text, `"'@SUM(1,""2"")\n"`, 'no cell is a formula')
  t.match(whole.text, ",'=cmd(),")
  t.match(whole.text, ',12.345678901,', 'money is exact')
})

void t.test('live: the newest rows, also of accounts below, and 304 if there are no new ones', async (t) => {
  const stage = await startStage(t)
  const ada = await stage.signedIn('ada@example.com')
  const account = await stage.store.accountByEmail('ada@example.com')
  const accountId = account?.id ?? ''
  await stage.store.ledger.settle(aRow(accountId, { atMs: Date.now() }))
  const first = await ada.get('/live')
  t.equal(liveReply.parse(first.json).rows.length, 1)
  const etag = first.headers.get('etag') ?? ''
  t.equal(first.headers.get('cache-control'), 'private, no-cache')
  const same = await ada.get('/live', { 'if-none-match': etag })
  t.same([same.status, same.text], [304, ''])
  await stage.store.ledger.settle(aRow(accountId, { atMs: Date.now() }))
  const next = await ada.get('/live', { 'if-none-match': etag })
  t.equal(liveReply.parse(next.json).rows.length, 2)
  const below = { name: 'below', plan: 'max', password: null, parentId: accountId } as const
  const { id } = (await createAccount(stage.store, below)).account
  const requestId = `req_${'b'.repeat(20)}`
  const path = { accountPath: `${account?.name ?? ''}/below` }
  await stage.store.ledger.settle(aRow(id, { atMs: Date.now(), requestId, ...path }))
  t.equal(liveReply.parse((await ada.get('/live')).json).rows.length, 2, 'of the account itself')
  t.equal(liveReply.parse((await ada.get('/live?tree=true')).json).rows[0]?.requestId, requestId)
})

void t.test('a quantile is within the bounds of its bucket', (t) => {
  const none = FIRST_CONTENT_BOUNDS_MS.map(() => 0).concat(0)
  t.equal(quantile(none, 0.5), null)
  const counted = (...pairs: [at: number, count: number][]): number[] => {
    const counts = [...none]
    for (const [at, count] of pairs) counts[at] = count
    return counts
  }
  t.equal(quantile(counted([0, 10]), 0.5), 5)
  t.equal(quantile(counted([1, 4]), 1), 13)
  t.equal(quantile(counted([0, 50], [3, 50]), 0.5), 10)
  t.equal(quantile(counted([0, 50], [3, 50]), 0.75), 20)
  t.equal(quantile(counted([none.length - 1, 1]), 0.95), 89_000, 'above all bounds')
  t.end()
})

void t.test('ranges that end now have every request of their time, and no other', async (t) => {
  const stage = await startStage(t)
  const ada = await stage.signedIn('ada@example.com')
  const { accountId } = createdKeyReply.parse(
    (await ada.ask('POST', '/keys', { body: { name: 'ci' } })).json,
  ).key
  const now = Date.now()
  const minutesAgo = [
    1,
    10,
    20,
    55,
    70,
    300,
    400,
    23 * 60 + 55,
    24 * 60 + 5,
    7 * 24 * 60 - 5,
    7 * 24 * 60 + 5,
  ]
  for (const minutes of minutesAgo) {
    await stage.store.ledger.settle(aRow(accountId, { atMs: now - minutes * 60_000, costNanoUsd: minutes }))
  }
  const spans = { '15m': 15, '1h': 60, '6h': 360, '24h': 1_440, '7d': 7 * 1_440, '30d': 30 * 1_440 }
  for (const [range, minutes] of Object.entries(spans)) {
    const inside = minutesAgo.filter((each) => each < minutes)
    const costNanoUsd = inside.reduce((sum, each) => sum + each, 0)
    const usage = usageReply.parse((await ada.get(`/usage?range=${range}&group=model`)).json)
    const { total, points, groups, fromMs, toMs } = usage
    t.match(total, { requests: inside.length, costNanoUsd }, range)
    t.equal(toMs - fromMs, minutes * 60_000)
    t.ok(toMs >= now && toMs <= Date.now(), 'by the clock of the server')
    t.equal(
      points.reduce((sum, { requests }) => sum + requests, 0),
      inside.length,
      'the points add up',
    )
    t.ok(points.every(({ startMs }) => usage.starts.includes(startMs)))
    t.match(groups, [{ total: { requests: inside.length, costNanoUsd } }])
    const rows = usageGroupsReply.parse((await ada.get(`/usage/groups?range=${range}&group=key`)).json).rows
    t.match(rows, [{ requests: inside.length, costNanoUsd }])
    const file = (await ada.get(`/usage.csv?range=${range}&group=model`)).text.split('\r\n')
    t.equal(Number(file[1]?.split(',')[1]), inside.length, 'the file has the same')
  }
  const hour = usageReply.parse((await ada.get('/usage?range=1h')).json)
  t.match([hour.by, hour.stepMs, hour.starts.length], ['minute', 60_000, 61])
  t.match(usageReply.parse((await ada.get('/usage?range=6h')).json), { by: 'minute', stepMs: 300_000 })
})
