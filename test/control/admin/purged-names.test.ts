/**
 * Goal: an account with the name of a purged one reads nothing of the purged one, and what the purged one
 * used stays readable by its id.
 * Method: an account with another below it uses the gateway, is purged and made again; then its usage,
 * statement, requests and audit lines are read with each of the ways that select an account.
 */
import t from 'tap'
import { SCOPES } from '../../../src/accounts/admin-tokens.js'
import { createAccount } from '../../../src/accounts/changes/change-accounts.js'
import { createUser, setMember } from '../../../src/accounts/members.js'
import { objectOf } from '../../../src/base/json.js'
import { openStore } from '../../../src/store/open-store.js'
import { accountReport } from '../../../src/usage/reports.js'
import { statementOf } from '../../../src/usage/statements.js'
import { aRow, Browser, PASSWORD } from '../../dashboard/fixtures/stage.js'
import { redisMissing, startRedis, until } from '../../helpers/redis.js'
import { putAccount } from '../../helpers/store-changes.js'
import { onBothStores, startAdmin, type Reply } from './admin-stage.js'
import { knownHash } from '../../helpers/password.js'
import { ofToday } from '../../helpers/long-suite.js'

const ADMIN = ['accounts:read', 'accounts:write', 'usage:read', 'audit:read']

/** A text or number of an object. */
function shown(value: unknown, name: string): string {
  const found = objectOf(value)[name]
  return typeof found === 'string' || typeof found === 'number' ? String(found) : ''
}

/** The ids, groups or names of the items of a reply, and their costs. */
function listed({ json }: Reply, name: string): string[] {
  const list = [json['items'], json['rows'], json['lines']].find(Array.isArray) ?? []
  return list.map((item) => `${shown(item, name)} ${shown(item, 'cost_nano_usd')}`).sort()
}

onBothStores(t, 'the name of a purged account', async (t, settings) => {
  const { ask, store, makeToken, gateway } = await startAdmin(t, settings)
  const root = await makeToken(ADMIN)
  const idOf = async (name: string) => (await store.accountByName(name))?.id ?? ''
  const use = async (accountId: string, accountPath: string, costNanoUsd: number) => {
    const atMs = Date.now()
    await store.ledger.settle(aRow(accountId, { atMs, accountPath, costNanoUsd, keyId: 'playground' }))
  }
  const put = (name: string, parent: string | null) => {
    const body = { plan: 'max', ...(parent === null ? {} : { parent }) }
    return ask('PUT', `/accounts/${name}`, { body, token: root })
  }
  await put('finance', null)
  await put('web', 'finance')
  const [former, web] = [await idOf('finance'), await idOf('web')]
  await use(former, 'finance', 1)
  await use(web, 'finance/web', 2)
  t.equal((await ask('PATCH', '/accounts/web', { body: { parent: null }, token: root })).status, 200)
  t.equal((await ask('DELETE', '/accounts/finance?purge=true', { token: root })).status, 204)

  const month = new Date().toISOString().slice(0, 7)
  const byName = await ask('GET', `/accounts/finance/statements/${month}`, { token: root })
  t.same(listed(byName, 'account'), ['finance 1', 'web 2'], 'the name is free')

  await put('finance', null)
  const id = await idOf('finance')
  t.not(id, former)
  const own = await makeToken(ADMIN, id)
  const span = 'by=account&from=2020-01-01T00:00:00Z&to=2100-01-01T00:00:00Z'
  const reads = async (token: string, account: string) => {
    const query = account === '' ? '' : `&account=${account}&tree=true`
    const [byAccount, byDay, requests, statement] = await Promise.all([
      ask('GET', `/usage?${span}${query}`, { token }),
      ask('GET', `/usage?${span.replace('by=account', 'by=day')}${query}`, { token }),
      ask('GET', `/requests?limit=100${query}`, { token }),
      ask('GET', `/accounts/${account === '' ? 'finance' : account}/statements/${month}`, { token }),
    ])
    const total = shown(byDay.json['total'], 'cost_nano_usd')
    const items = listed(requests, 'account_path')
    return { usage: listed(byAccount, 'group'), total, items, statement: listed(statement, 'account') }
  }
  const nothing = { usage: [], total: '0', items: [], statement: [] }
  t.same(await reads(own, ''), nothing)
  t.same(await reads(own, 'finance'), nothing)
  t.same(await reads(root, 'finance'), nothing)

  await put('shop', 'finance')
  await use(id, 'finance', 10)
  await use(await idOf('shop'), 'finance/shop', 20)
  const fresh = ['finance 10', 'shop 20']
  for (const [token, account] of [
    [own, ''],
    [own, 'finance'],
    [root, 'finance'],
  ] as const) {
    const found = await reads(token, account)
    t.match(found, { usage: fresh, total: '30', statement: fresh })
    t.same(found.items, ['finance 10', 'finance/shop 20'])
  }
  const left = await reads(root, former)
  t.match(left, { total: '1', usage: ['finance 1', 'web 2'], statement: ['finance 1', 'web 2'] }, 'by the id')
  t.equal((await ask('GET', `/usage?${span}&account=${former}`, { token: own })).status, 404)
  t.equal((await ask('GET', `/accounts/${former}/statements/${month}`, { token: own })).status, 404)
  t.match(await statementOf(store, 'finance', month), { total: { cost_nano_usd: 30 } })

  const login = { email: 'root@example.com', plan: 'max', role: 'admin', password: PASSWORD } as const
  await createAccount(store, login)
  const browser = new Browser(gateway.origin)
  await browser.signIn('root@example.com')
  const page = await browser.get('/requests?account=all&parent=finance')
  t.equal(Array.isArray(page.json['rows']) ? page.json['rows'].length : -1, 2, 'the list of requests')
})

onBothStores(t, 'a new account with the name finds nothing of the purged one', async (t, settings) => {
  const routes = '  - { model: kept, targets: [{ upstream: openai, model: gpt-4o-mini }], cache: {} }\n'
  const sections = 'escrow: { key: 0f4c9b1e7d2a85c36f10e9d8b7a6c5f4 }\nrecord: { sample: 1 }'
  const more = `${sections}\ndimensions: [{ name: run, from: [header:x-run-id] }]`
  const { ask, store, makeToken, gateway } = await startAdmin(t, { ...settings, routes, more })
  const root = await makeToken(SCOPES)
  const send = async (secret: string, path: string, body?: object) => {
    const headers = {
      authorization: `Bearer ${secret}`,
      'x-run-id': 'r-1',
      'content-type': 'application/json',
    }
    const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    const reply = await fetch(`${gateway.origin}${path}`, { ...init, headers })
    const text = await reply.text()
    const cache = reply.headers.get('x-sluice-cache')
    return { status: reply.status, cache, json: objectOf(JSON.parse(text)) }
  }
  const make = async (owner: string) => {
    const limits = { usd_per_day: 5, requests_total: 50 }
    t.equal((await ask('PUT', '/accounts/shop', { body: { plan: 'max', limits }, token: root })).status, 201)
    const key = await ask('PUT', '/accounts/shop/keys/ci', { body: { limits }, token: root })
    const account = await store.accountByName('shop')
    if (account === null) throw new Error('no account')
    const { user } = await createUser(store, {
      email: `${owner}@example.com`,
      password: PASSWORD,
      hash: knownHash,
    })
    await setMember(store, { account, user, role: 'owner', nowMs: Date.now(), audit: () => [] })
    const browser = new Browser(gateway.origin)
    t.equal((await browser.signIn(`${owner}@example.com`)).status, 200)
    return {
      id: account.id,
      secret: shown(key.json, 'secret'),
      token: await makeToken(ADMIN, account.id),
      browser,
    }
  }
  const chat = { model: 'kept', messages: [{ role: 'user', content: 'The plan of the fox.' }] }
  const former = await make('eve')
  const response = await send(former.secret, '/v1/responses', { model: 'gpt-4o-mini', input: 'A fox.' })
  const id = shown(response.json, 'id')
  const kept = [await send(former.secret, '/v1/chat/completions', chat)]
  kept.push(await send(former.secret, '/v1/chat/completions', chat))
  t.same(
    kept.map(({ cache }) => cache),
    ['miss', 'hit'],
  )
  const path = '/runs/r-1?account=shop'
  const isCounted = async () => (await ask('GET', path, { token: root })).status === 200
  await until(isCounted, 'the run')
  const pages = [
    '/recordings?',
    '/requests?',
    '/audit?',
    '/live?',
    '/limits?',
    '/budgets?',
    '/failures?fromMs=0&',
    '/keys?',
  ]
  const seen = async ({ browser, token }: { browser: Browser; token: string }) => {
    const texts = new Map<string, string>()
    for (const page of pages) {
      const { status, text } = await browser.get(`${page}account=shop`)
      t.equal(status, 200, `${page}: ${text}`)
      texts.set(page, text)
    }
    const month = new Date().toISOString().slice(0, 7)
    const paths = [
      '/usage?by=key',
      '/requests',
      '/audit',
      `/accounts/shop/statements/${month}`,
      '/accounts/shop/members',
    ]
    for (const path of paths) texts.set(`admin ${path}`, (await ask('GET', path, { token })).text)
    return texts
  }
  const before = await seen(former)
  t.match(before.get('/recordings?'), /gpt-4o-mini/)
  t.equal((await ask('DELETE', '/accounts/shop?purge=true', { token: root })).status, 204)

  const next = await make('fay')
  t.equal((await former.browser.get('/live?account=shop')).status, 401, 'its owner is signed out')
  t.equal((await send(former.secret, '/v1/models')).status, 401, 'its key')
  t.not((await ask('GET', '/accounts/shop', { token: former.token })).status, 200, 'its token')
  t.equal((await ask('GET', path, { token: root })).status, 404, 'a run')
  for (const [page, text] of await seen(next)) {
    t.notMatch(text, /eve@example\.com|r-1|gpt-4o-mini|kept/, page)
    t.notMatch(text, former.id, page)
  }
  t.equal((await send(next.secret, `/v1/responses/${id}`)).status, 404, 'a stored response')
  const continued = { model: 'gpt-4o-mini', input: 'And?', previous_response_id: id }
  t.ok([400, 404].includes((await send(next.secret, '/v1/responses', continued)).status))
  t.equal((await send(next.secret, '/v1/chat/completions', chat)).cache, 'miss', 'a cached reply')
})

for (const kind of ofToday(['sqlite', 'redis'] as const, 2)) {
  const skip = kind === 'redis' && redisMissing()
  void t.test(`after the trail has lost the purge (${kind})`, { skip }, async (t) => {
    // Its audit trail keeps few entries.
    const url = kind === 'sqlite' ? `sqlite:${t.testdir()}/small.db` : (await startRedis(t)).url()
    const store = await openStore(url, { capacity: { auditEntries: 3 } })
    t.teardown(() => store.close())
    const nowMs = Date.now()
    const monthMs = 40 * 86_400_000
    const make = (name: string, createdAtMs: number) => {
      const account = { id: `acc_${name}${createdAtMs}`, name, plan: 'max', disabled: false, createdAtMs }
      return putAccount(store, account).then(() => account)
    }
    const former = await make('finance', nowMs - 2 * monthMs)
    await store.ledger.settle(
      aRow('acc_web', { atMs: nowMs - monthMs, accountPath: 'finance/web', costNanoUsd: 7, keyId: 'k' }),
    )
    const entryOf = (accountId: string, atMs: number, action: string) => ({
      ...{ id: `aud_${String(atMs).padStart(16, '0')}`, atMs, accountId, action, target: accountId },
      ...{ actor: 'test', detail: 'finance', address: null },
    })
    const purge = entryOf(former.id, nowMs - monthMs + 1, 'account.purge')
    const decide = () => ({ write: { purge: true, audit: [purge] } }) as const
    const written = await store.transact({ accountId: former.id, reads: {}, decide, nowMs })
    t.equal(written.kind, 'written')
    await make('finance', nowMs - monthMs / 2)
    const month = new Date(nowMs - monthMs).toISOString().slice(0, 7)
    const costs = async () => {
      const range = { fromMs: 0, toMs: nowMs + 1_000 }
      const report = await accountReport(store, { by: 'account', ...range, account: 'finance', tree: true })
      return [report.total.cost_nano_usd, (await statementOf(store, 'finance', month)).total.cost_nano_usd]
    }
    t.same(await costs(), [0, 0], 'the trail has the purge')
    for (let at = 0; at < 5; at += 1)
      await store.auditTrail.add(entryOf(`acc_${at}`, nowMs + at, 'key.create'))
    // Another process, which has not read the purge before.
    const again = await openStore(url)
    t.teardown(() => again.close())
    const report = await accountReport(again, {
      ...{ by: 'account', fromMs: 0, toMs: nowMs + 1_000, account: 'finance', tree: true },
    })
    t.equal(report.total.cost_nano_usd, 0)
    t.equal((await statementOf(again, 'finance', month)).total.cost_nano_usd, 0)
  })
}

for (const kind of ofToday(['sqlite', 'redis'] as const, 2)) {
  const skip = kind === 'redis' && redisMissing()
  void t.test(`pruned entries of the month of a purge (${kind})`, { skip }, async (t) => {
    const url = kind === 'sqlite' ? `sqlite:${t.testdir()}/pruned.db` : (await startRedis(t)).url()
    const store = await openStore(url)
    t.teardown(() => store.close())
    const day = (number: number) => Date.UTC(2026, 9, number)
    const make = (name: string, createdAtMs: number) => {
      const account = { id: `acc_${name}${createdAtMs}`, name, plan: 'max', disabled: false, createdAtMs }
      return putAccount(store, account).then(() => account)
    }
    const use = (atMs: number, costNanoUsd: number) =>
      store.ledger.settle(aRow('acc_web', { atMs, accountPath: 'finance/web', costNanoUsd, keyId: 'k' }))
    const former = await make('finance', day(1))
    await use(day(2), 100)
    const audit = [
      {
        ...{ id: 'aud_1', atMs: day(12), accountId: former.id, action: 'account.purge', target: former.id },
        ...{ actor: 'test', detail: 'finance', address: null },
      },
    ]
    const decide = () => ({ write: { purge: true, audit } }) as const
    await store.transact({ accountId: former.id, reads: {}, decide, nowMs: day(12) })
    await make('finance', day(13))
    await use(day(25), 7)
    const cost = async () => {
      const query = { by: 'account', fromMs: day(1), toMs: day(31), account: 'finance', tree: true } as const
      return (await accountReport(store, query)).total.cost_nano_usd
    }
    t.equal(await cost(), 7)
    await store.ledger.prune({ entriesBeforeMs: day(20), hoursBeforeMs: 0, daysBeforeMs: 0 })
    t.equal(await cost(), 7, 'the entries of the purged account were pruned')
    t.equal((await statementOf(store, 'finance', '2026-10')).total.cost_nano_usd, 7)
  })
}
