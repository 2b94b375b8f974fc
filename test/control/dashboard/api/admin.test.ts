/**
 * Goal: an administrator sees the state of the gateway and all accounts, and each change of an account has an
 * audit entry.
 * Method: accounts on a store, requests that fail, and configurations that change and are refused.
 */
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import {
  accountPageReply,
  accountReply,
  accountsReply,
  auditReply,
  explainReply,
  modelsReply,
  operationsReply,
  providersReply,
} from '../../../../src/control/dashboard/schema/schema.js'
import { gatewayStatusOf } from '../../../../src/control/gateway-status.js'
import { differencesOf } from '../../../../src/config/generations/diff-configs.js'
import { shownConfig } from '../../../../src/config/masked-config.js'
import { aRow, startStage } from '../../../dashboard/fixtures/stage.js'

void t.test('accounts: found, given a plan, disabled and enabled', async (t) => {
  const stage = await startStage(t)
  const root = await stage.signedIn('root@example.com', 'max', 'admin')
  const ada = await stage.signedIn('ada@example.com')
  const key = await ada.ask('POST', '/keys', { body: { name: 'mine' } })
  const secret = String((key.json as { secret?: string }).secret)
  const account = await stage.store.accountByEmail('ada@example.com')
  const id = account?.id ?? ''
  await stage.store.ledger.settle(aRow(id))

  const found = accountsReply.parse((await root.get('/accounts?search=ADA%40')).json)
  t.match(found, {
    next: null,
    accounts: [{ id, liveKeys: 1, requests: 1, costNanoUsd: 1_500_000 }],
  })
  const all = accountsReply.parse((await root.get('/accounts?limit=2')).json)
  t.match(all, {
    accounts: [{ email: 'ada@example.com' }, { email: 'root@example.com' }],
  })
  const rest = await root.get(`/accounts?limit=2&after=${all.next ?? ''}`)
  t.match(accountsReply.parse(rest.json), { accounts: [{ email: 'test@example.com' }], next: null })

  const changed = await root.ask('PATCH', `/accounts/${id}`, {
    body: { plan: 'pro', disabled: true },
  })
  t.match(accountReply.parse(changed.json).account, { plan: 'pro', disabled: true })
  t.equal((await ada.get('/keys')).status, 401, 'the session has ended')
  const statusNow = async () => {
    const headers = { authorization: `Bearer ${secret}` }
    return (await fetch(`${stage.gateway.baseUrl}/models`, { headers })).status
  }
  let status = await statusNow()
  for (let tries = 0; status !== 401 && tries < 1_000; tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 25))
    status = await statusNow()
  }
  t.equal(status, 401, 'and its keys with it')
  t.equal((await root.ask('PATCH', `/accounts/${id}`, { body: { disabled: false } })).status, 200)
  t.equal((await ada.get('/keys')).status, 401, 'an ended session stays so')
  t.equal((await ada.signIn('ada@example.com')).status, 200)

  const own = await stage.store.accountByEmail('root@example.com')
  const himself = await root.ask('PATCH', `/accounts/${own?.id ?? ''}`, {
    body: { disabled: true },
  })
  t.equal(himself.status, 400, 'administrators cannot disable their own account')
  t.equal((await root.ask('PATCH', '/accounts/acc_none', { body: { plan: 'pro' } })).status, 404)
  const gold = await root.ask('PATCH', `/accounts/${id}`, { body: { plan: 'gold' } })
  t.match(gold, { status: 400, error: { message: /"plan" is not valid. Use starter, pro, max/ } })
  t.equal((await root.ask('POST', '/accounts/acc_none/reset', { body: {} })).status, 404)

  const hers = auditReply.parse((await ada.get('/audit')).json)
  t.match(
    hers.entries.map(({ action }) => action),
    ['session.sign-in', 'account.enable', 'account.disable', 'account.plan', 'key.create'],
  )
  t.match(hers.entries[3], { actor: 'root@example.com', detail: /starter → pro/ })
  const page = auditReply.parse((await root.get('/audit?account=all&limit=2')).json)
  const more = auditReply.parse((await root.get(`/audit?account=all&after=${page.next ?? ''}`)).json)
  const kinds = async (action: string): Promise<Set<boolean>> => {
    const { entries } = auditReply.parse(
      (await root.get(`/audit?account=all&limit=200&action=${action}`)).json,
    )
    return new Set(entries.map((entry) => entry.action.startsWith('session.')))
  }
  t.same([...(await kinds('session.'))], [true], 'sign-ins')
  t.same([...(await kinds('!session.'))], [false], 'all others')
  t.equal(page.entries.length, 2)
  t.equal(more.entries.length, 5)
  t.equal(more.next, null)
})

void t.test('accounts: display name, labels and the account above, each in the audit trail', async (t) => {
  const stage = await startStage(t)
  const root = await stage.signedIn('root@example.com', 'max', 'admin')
  for (const name of ['acme', 'search']) {
    t.equal((await root.ask('POST', '/accounts', { body: { name, plan: 'pro' } })).status, 201)
  }
  const id = (await stage.store.accountByName('search'))?.id ?? ''
  const change = (body: object) => root.ask('PATCH', `/accounts/${id}`, { body })
  const shown = async () => accountPageReply.parse((await root.get(`/accounts/search`)).json).account
  const first = { displayName: 'Search team', parent: 'acme', labels: { team: 'red', env: 'prod' } }
  t.equal((await change(first)).status, 200)
  t.match(await shown(), { displayName: 'Search team', above: ['acme'], labels: first.labels })
  t.equal((await change({ labels: { team: 'blue' } })).status, 200)
  t.same((await shown()).labels, { team: 'blue' }, 'labels are replaced')
  t.equal((await change({ parent: null, displayName: 'search' })).status, 200)
  t.match(await shown(), { displayName: 'search', above: [], labels: { team: 'blue' }, plan: 'pro' })
  for (const [body, field] of [
    [{ displayName: ' a' }, 'displayName'],
    [{ labels: { 'A B': 'x' } }, 'labels'],
    [{ parent: 'none' }, 'parent'],
    [{ parent: 'search' }, 'parent'],
  ] as const) {
    const refused = await change(body)
    t.match(refused.status, /^4/, JSON.stringify(body))
    t.match(refused.error['field'], field)
  }
  const { entries } = auditReply.parse((await root.get(`/audit?account=search&limit=50`)).json)
  const changed = entries
    .filter(({ action }) => action !== 'account.create')
    .flatMap(({ changes }) => changes)
  const text = changed.map(({ path, before, after }) => `${path}: ${before ?? '–'} → ${after ?? '–'}`)
  t.same(text.sort(), [
    'display_name: Search team → search',
    'display_name: search → Search team',
    'labels.env: prod → –',
    'labels.env: – → prod',
    'labels.team: red → blue',
    'labels.team: – → red',
    'parent: acme → –',
    'parent: – → acme',
  ])
})

void t.test('operations: upstreams and the configuration', async (t) => {
  const stage = await startStage(t)
  const root = await stage.signedIn('root@example.com', 'max', 'admin')
  const { ledger } = stage.store
  const failed = { outcome: 'upstream_timeout', status: 504, hops: {} } as const
  for (let at = 0; at < 4; at += 1) await ledger.settle(aRow('acc_1', { atMs: Date.now() - 10 }))
  await ledger.settle(aRow('acc_1', { ...failed, atMs: Date.now() - 20 }))
  // A refusal by the gateway's own limits is not a failure of the provider.
  const refused = { outcome: 'rate_limited', status: 429, attempts: 0 } as const
  await ledger.settle(aRow('acc_1', { ...refused, atMs: Date.now() - 30 }))
  const attempted = 'openai:upstream_timeout, openai:ok'
  await ledger.settle(aRow('acc_1', { attempted, attempts: 2, atMs: Date.now() - 40 }))
  await ledger.settle(aRow('acc_1', { atMs: Date.now() - 600_000 }))
  const first = operationsReply.parse((await root.get('/operations')).json)
  const openai = first.upstreams.find(({ name }) => name === 'openai')
  t.match(openai, {
    configured: true,
    inFlight: null,
    attemptsPerMinute: 1.4,
    failures: { provider: 2, gateway: 0, limits: 1, client: 0 },
    failureShare: 2 / 7,
    kinds: [{ kind: 'upstream_timeout', count: 2 }],
    retries: { count: 1 },
    fallbacks: { count: 0, lastAtMs: null },
    breaker: null,
    breakerChangedAtMs: null,
  })
  t.match(first.config, { generation: 1, changes: [], refused: null })
  t.notMatch(JSON.stringify(first), 'emulated')

  const before = readFileSync(stage.gateway.configFile, 'utf8')
  appendFileSync(stage.gateway.configFile, 'on_loss: reject\n')
  stage.gateway.reload()
  const second = operationsReply.parse((await root.get('/operations')).json)
  t.equal(second.config.generation, 2)
  writeFileSync(stage.gateway.configFile, before)
})

void t.test('providers: each upstream, and shadow requests beside their originals', async (t) => {
  const stage = await startStage(t)
  const root = await stage.signedIn('root@example.com', 'max', 'admin')
  const { ledger } = stage.store
  const atMs = Date.now() - 60_000
  const openai = { atMs, upstream: 'openai', attempted: 'openai:ok', hops: { firstContent: 200 } }
  for (const id of ['one', 'two', 'three']) {
    await ledger.settle({ ...aRow('acc_1', openai), requestId: id })
  }
  const copy = { upstream: 'anthropic', attempted: 'anthropic:ok', hops: { firstContent: 100 } }
  const shadow = aRow('shadow', { atMs, ...copy, shadowOf: 'two' })
  await ledger.settle({ ...shadow, requestId: 'copy' })
  const failed = { outcome: 'upstream_failed', status: 502, hops: {} } as const
  const broken = aRow('acc_1', { atMs, ...copy, ...failed, attempted: 'anthropic:upstream_failed' })
  await ledger.settle({ ...broken, requestId: 'broken' })
  const reply = providersReply.parse((await root.get('/providers')).json)
  t.match(reply, { canaries: null, fromMs: reply.nowMs - 3_600_000 })
  t.match(
    reply.upstreams.find(({ upstream }) => upstream === 'openai'),
    { requests: 3, shadowRequests: 0, failureShare: 0, firstTokenP50Ms: 200 },
  )
  t.match(
    reply.upstreams.find(({ upstream }) => upstream === 'anthropic'),
    { requests: 2, shadowRequests: 1, failures: 1, failureShare: 0.5, firstTokenP50Ms: 100 },
  )
  t.match(reply.shadows, [
    {
      primary: { upstream: 'openai', requests: 1, firstTokenP50Ms: 200 },
      shadow: { upstream: 'anthropic', requests: 1, shadowRequests: 1, firstTokenP50Ms: 100 },
    },
  ])
  const model = reply.upstreams.find(({ upstream }) => upstream === 'openai')?.models[0]?.model ?? ''
  const wanted = encodeURIComponent(`${model} openai,none at all,${model} anthropic`)
  const { compared } = providersReply.parse((await root.get(`/providers?compare=${wanted}`)).json)
  t.match(compared, [
    { model, upstream: 'openai', points: [{ firstTokenP95Ms: Number, requestNanoUsd: Number }] },
    { model: 'none at', upstream: 'all', points: [] },
    { model, upstream: 'anthropic', points: [{ firstTokenP95Ms: Number }] },
  ])
  const ada = await stage.signedIn('ada@example.com')
  t.equal((await ada.get('/providers')).status, 403)
})

void t.test('what differs between two generations, and how many are with an upstream', async (t) => {
  const stage = await startStage(t)
  const { config: old } = stage.gateway.reload()
  appendFileSync(
    stage.gateway.configFile,
    'on_loss: reject\nescrow: { key: abcdefghijklmnopqrstuvwxyz0123456789 }\n',
  )
  const { config: next } = stage.gateway.reload()
  const changes = differencesOf(shownConfig(old), shownConfig(next))
  t.match(changes, [
    { path: 'escrow.key', before: 'null', after: /^"\*\*\*[0-9a-f]{4}"$/ },
    { path: 'on_loss', before: '"report"', after: '"reject"' },
  ])
  t.equal(changes.length, 2)
  const text =
    '# TYPE sluice_inflight gauge\nsluice_credential_expiry_timestamp_seconds{upstream="nova"} 60\nsluice_credential_refresh_failing{upstream="nova"} 1\nsluice_inflight{upstream="openai"} 3\nsluice_breaker_state{upstream="openai"} 2\nsluice_breaker_changed_timestamp_seconds{upstream="openai"} 12.5\nsluice_x 1\n'
  t.same(gatewayStatusOf(text, null), {
    credentialsExpireMs: { nova: 60_000 },
    credentialsFailing: { nova: 1 },
    inFlight: { openai: 3 },
    breakers: { openai: 'open' },
    breakersChangedMs: { openai: 12_500 },
    refused: null,
    canaries: [],
  })
})

void t.test('aliases and virtual models, with all their targets and prices', async (t) => {
  const stage = await startStage(t)
  const text = readFileSync(stage.gateway.configFile, 'utf8')
  const routes = `routes:
  - { model: fast, targets: [ { upstream: google, model: gemini-2.5-flash } ] }
  - model: mixed
    targets:
      - { upstream: anthropic, model: claude-sonnet-4-5, weight: 3 }
      - { upstream: openai, model: gpt-5.4, weight: 1 }
    fallback: [ { upstream: google, model: gemini-2.5-pro } ]
`
  writeFileSync(stage.gateway.configFile, text.replace(/^routes:\n/m, routes))
  stage.gateway.reload()
  const browser = await stage.signedIn('ada@example.com')
  const { aliases, upstreams } = modelsReply.parse((await browser.get('/models')).json)
  t.match(
    aliases.map(({ id }) => id),
    ['fast', 'mixed'],
    'not o1, which the catalogue has',
  )
  t.match(aliases[0]?.route.targets, [{ upstream: 'google', model: 'gemini-2.5-flash', share: 1 }])
  t.match(aliases[1]?.route.targets, [
    { upstream: 'anthropic', share: 0.75, isFallback: false, price: { input: Number } },
    { upstream: 'openai', share: 0.25, isFallback: false },
    { upstream: 'google', share: 0, isFallback: true },
  ])
  t.ok(upstreams.includes('openai'))
})

void t.test('a plan has a price only if the configuration sets it', async (t) => {
  const stage = await startStage(t)
  const root = await stage.signedIn('root@example.com', 'max', 'admin')
  t.match((await root.get('/plans')).json['plans'], [{ priceUsd: 20 }, { priceUsd: 50 }, { priceUsd: 100 }])
  const text = readFileSync(stage.gateway.configFile, 'utf8')
  writeFileSync(
    stage.gateway.configFile,
    text.replace(/^plans:\n(?: .*\n)+/m, 'plans: { pro: { max_keys: 3 } }\n'),
  )
  stage.gateway.reload()
  t.match((await root.get('/plans')).json['plans'], [
    { name: 'starter', priceUsd: 0, maxKeys: 5 },
    { name: 'pro', priceUsd: 0, maxKeys: 3 },
    { name: 'max', priceUsd: 0, maxKeys: null },
  ])
})

void t.test('models, and the route of an id', async (t) => {
  const stage = await startStage(t)
  const browser = await stage.signedIn('ada@example.com')
  const { models } = modelsReply.parse((await browser.get('/models')).json)
  t.ok(models.length >= 40)
  const claude = models.find(({ id }) => id === 'claude-sonnet-4-5')
  t.match(claude, {
    family: 'anthropic',
    tools: true,
    route: { label: 'claude-', upstream: 'anthropic', dialect: 'anthropic', configured: true },
  })
  t.type(claude?.price?.input, 'number')
  const why = await browser.get('/models/explain?model=gpt-5.9-preview')
  t.match(explainReply.parse(why.json), {
    route: { label: 'gpt-', upstream: 'openai' },
    why: /longest prefix/,
    catalogueId: null,
  })
  const none = await browser.get('/models/explain?model=nothing')
  t.match(explainReply.parse(none.json), { route: null, dialectWhy: null })
})

void t.test('the playground runs as the account, without a key', async (t) => {
  const stage = await startStage(t)
  const browser = await stage.signedIn('ada@example.com')
  const messages = [{ role: 'user', content: 'Name a colour.' }]
  const body = { model: 'claude-sonnet-4-5', messages }
  const whole = await browser.ask('POST', '/playground/chat', { body })
  t.match([whole.status, whole.json['object']], [200, 'chat.completion'])
  t.ok(whole.headers.get('x-request-id'))
  const stream = await browser.ask('POST', '/playground/chat', { body: { ...body, stream: true } })
  t.match(stream.headers.get('content-type'), 'text/event-stream')
  t.match(stream.text, /data: \[DONE\]/)
  const odd = await browser.ask('POST', '/playground/chat', {
    body: { model: 'nothing', messages },
  })
  t.match(odd, { status: 404, json: { error: { kind: 'unknown_model' } } }, 'in the form of the format')
  for (const { headers } of [whole, stream, odd]) {
    t.equal(headers.get('x-content-type-options'), 'nosniff', 'no browser runs it, …')
    t.match(headers.get('cache-control'), /\bno-store$/, '… or keeps it')
    t.match(headers.get('content-security-policy'), /default-src 'none'/)
  }
  t.equal((await stage.browser().ask('POST', '/playground/chat', { body })).status, 401)
  const forged = await browser.ask('POST', '/playground/chat', {
    body,
    headers: { 'x-sluice-csrf': 'x' },
  })
  t.equal(forged.status, 403)
  t.match((await browser.get('/session')).json, { account: { liveKeys: 0 } }, 'and counts as none')
  const lines = stage.gateway.lines.filter((line) => line['key_id'] === 'playground')
  t.equal(lines.length, 3)
})
