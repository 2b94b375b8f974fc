/**
 * Goal: a key's secret is shown once, keys are limited by the plan, and revoked keys stop working.
 * Method: the page's own requests, and the keys used on the data plane.
 */
import { editKey } from '../../../helpers/store-changes.js'
import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import {
  auditReply,
  createdKeyReply,
  keyClientsReply,
  keyReply,
  keysReply,
  rotatedKeyReply,
  type Key,
} from '../../../../src/control/dashboard/schema/schema.js'
import { stopwatch } from '../../../helpers/stopwatch.js'
import { aRow, startStage, type Browser, type Stage } from '../../../dashboard/fixtures/stage.js'
import { eventually } from '../../../helpers/requests.js'

async function made(browser: Browser, body: object): Promise<{ key: Key; secret: string }> {
  const answer = await browser.ask('POST', '/keys', { body })
  if (answer.status !== 201) throw new Error(answer.text)
  return createdKeyReply.parse(answer.json)
}

async function statusWith(stage: Stage, secret: string, model = 'gpt-5.4-mini'): Promise<number> {
  const messages = [{ role: 'user', content: 'Name a colour.' }]
  const headers = { authorization: `Bearer ${secret}` }
  const response = await stage.gateway.chat({ model, messages }, { headers })
  await response.arrayBuffer()
  return response.status
}

void t.test('a key is created, used, renamed, rotated and revoked', async (t) => {
  const stage = await startStage(t)
  const browser = await stage.signedIn('ada@example.com')
  const limits = { requestsPerMinute: 600, nanoUsdPerDay: 5_000_000_000 }
  const expiresAtMs = Date.now() + 86_400_000
  const body = { name: ' ci ', models: ['gpt-5.4-mini', 'claude-*'], limits, expiresAtMs }
  const { key, secret } = await made(browser, body)
  t.match(key, { name: 'ci', state: 'live', limits, models: body.models, expiresAtMs, requests: 0 })
  t.match(secret, new RegExp(`^${key.prefix}.*${key.lastFour}$`))
  t.equal(await statusWith(stage, secret), 200)
  t.equal(await statusWith(stage, secret, 'gemini-2.5-flash'), 403, 'only the models it names')

  const listed = await browser.get('/keys')
  t.notMatch(listed.text, secret.slice(8, -4), 'the secret is never seen again')
  const renamed = await browser.ask('PATCH', `/keys/${key.id}`, {
    body: { name: 'runner', models: null },
  })
  t.match(keyReply.parse(renamed.json).key, { name: 'runner', models: null, limits, expiresAtMs })
  t.equal(await eventually(() => statusWith(stage, secret, 'gemini-2.5-flash'), 200), 200)

  const turned = await browser.ask('POST', `/keys/${key.id}/rotate`, { body: {} })
  t.equal(turned.status, 201)
  const next = rotatedKeyReply.parse(turned.json)
  t.match(next.key, { name: 'runner', replaces: key.id, limits, expiresAtMs })
  t.equal(next.oldEndsAtMs, expiresAtMs, 'the old key keeps its end while the plan has room')
  t.equal(await statusWith(stage, secret), 200, 'both work')
  t.equal(await statusWith(stage, next.secret), 200)
  const both = keysReply.parse((await browser.get('/keys')).json)
  t.match(both, { keys: [{ id: next.key.id }, { id: key.id, replacedBy: next.key.id }] })

  const watch = stopwatch()
  t.match(await browser.ask('DELETE', `/keys/${key.id}`), { json: { key: { state: 'revoked' } } })
  t.equal(await eventually(() => statusWith(stage, secret), 401), 401)
  t.ok(watch() < 1_000, 'within a second')
  t.equal(await statusWith(stage, next.secret), 200, 'its successor works on')
  t.equal(keysReply.parse((await browser.get('/keys')).json).keys.length, 1)
  t.equal(keysReply.parse((await browser.get('/keys?state=all')).json).keys.length, 2)
  t.equal((await browser.ask('POST', `/keys/${key.id}/rotate`, { body: {} })).status, 400)
  t.equal((await browser.ask('PATCH', `/keys/${key.id}`, { body: { name: 'x' } })).status, 404)
  t.equal((await browser.ask('DELETE', `/keys/${key.id}`)).status, 200, 'again is no error')

  const { entries } = auditReply.parse((await browser.get('/audit')).json)
  const actions = entries.map(({ action }) => action).reverse()
  t.same(actions, ['session.sign-in', 'key.create', 'key.change', 'key.rotate', 'key.revoke'])
  t.match(entries[2], { actor: 'ada@example.com', address: '127.0.0.1', target: key.id })
  t.match(entries[2]?.detail, /name: ci → runner; models: .* → none/)
})

void t.test('K-173: five keys on Starter, twenty on Pro, also with concurrent requests', async (t) => {
  const stage = await startStage(t)
  for (const [plan, limit] of [
    ['starter', 5],
    ['pro', 20],
  ] as const) {
    const browser = await stage.signedIn(`${plan}@example.com`, plan)
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, at) => browser.ask('POST', '/keys', { body: { name: `k ${at}` } })),
    )
    t.equal(answers.filter(({ status }) => status === 201).length, limit)
    const refused = answers.filter(({ status }) => status !== 201)
    t.ok(refused.every(({ status, error }) => status === 403 && error['kind'] === 'plan_limit'))
    t.match(refused[0]?.error['message'], /Revoke a key, or choose a larger plan/)
    t.match((await browser.get('/session')).json, { account: { liveKeys: limit } })
    const keys = keysReply.parse((await browser.get('/keys')).json)
    t.equal(keys.keys.length, limit)
    const [first] = keys.keys
    const turned = await browser.ask('POST', `/keys/${first?.id ?? ''}/rotate`, { body: {} })
    t.equal(turned.status, 201, 'a rotation may exceed the plan by one key')
    const { oldEndsAtMs } = rotatedKeyReply.parse(turned.json)
    t.ok(Math.abs((oldEndsAtMs ?? 0) - Date.now() - 86_400_000) < 60_000, 'for 24 hours')
    const second = await browser.ask('POST', `/keys/${keys.keys[1]?.id ?? ''}/rotate`, {
      body: {},
    })
    t.match([second.status, second.error['kind']], [403, 'plan_limit'], 'and not by two')
    t.match(
      await browser.ask('POST', '/keys', { body: { name: 'x' } }),
      { status: 403 },
      'nor with a new key',
    )
    await browser.ask('DELETE', `/keys/${first?.id ?? ''}`)
    t.equal((await browser.ask('POST', '/keys', { body: { name: 'x' } })).status, 403, 'the plan is full')
    await browser.ask('DELETE', `/keys/${keys.keys[2]?.id ?? ''}`)
    t.equal((await browser.ask('POST', '/keys', { body: { name: 'again' } })).status, 201)
  }
})

void t.test('K-172: invalid settings of a key are refused', async (t) => {
  const stage = await startStage(t)
  const { configFile } = stage.gateway
  const text = readFileSync(configFile, 'utf8')
  writeFileSync(configFile, text.replace('max_keys: 5', 'max_keys: 5, limits: { concurrent: 10 }'))
  stage.gateway.reload()
  const browser = await stage.signedIn('ada@example.com')
  const bob = await stage.account('bob@example.com')
  const bad: [body: object, param: string][] = [
    [{}, 'name'],
    [{ name: '' }, 'name'],
    [{ name: 'x'.repeat(101) }, 'name'],
    [{ name: 'a\u0000b' }, 'name'],
    [{ name: 7 }, 'name'],
    [{ name: 'k', accountId: bob.id }, 'accountId'],
    [{ name: 'k', expiresAtMs: Date.now() - 1 }, 'expiresAtMs'],
    [{ name: 'k', expiresAtMs: 1e20 }, 'expiresAtMs'],
    [{ name: 'k', models: [] }, 'models'],
    [{ name: 'k', models: ['g*t'] }, 'models.0'],
    [{ name: 'k', models: ['a  b'] }, 'models.0'],
    [{ name: 'k', limits: { requestsPerMinute: 0 } }, 'limits.requestsPerMinute'],
    [{ name: 'k', limits: { concurrent: 1.5 } }, 'limits.concurrent'],
    [{ name: 'k', limits: { usd: 1 } }, 'limits.usd'],
  ]
  for (const [body, param] of bad) {
    const answer = await browser.ask('POST', '/keys', { body })
    t.match([answer.status, answer.error['field']], [400, param], JSON.stringify(body).slice(0, 60))
  }
  const over = await browser.ask('POST', '/keys', {
    body: { name: 'k', limits: { concurrent: 11 } },
  })
  t.match([over.status, over.error['field']], [403, 'limits.concurrent'], 'more than the plan')
  for (const text of ['', '[]', '{"name":"a","name":"b"}', '{"name":"a"} x', 'null']) {
    t.equal((await browser.ask('POST', '/keys', { body: text })).status, 400, text)
  }
  const large = await browser.ask('POST', '/keys', { body: { name: 'x'.repeat(70_000) } })
  t.equal(large.status, 413)
  t.equal((await browser.ask('POST', `/keys?account=${bob.id}`, { body: { name: 'k' } })).status, 404)
  t.same((await browser.get('/keys')).json['keys'], [])
  t.equal(await stage.store.countKeys(bob.id), 0)
})

void t.test('labels are set at creation, kept by a rotation, and refused by name', async (t) => {
  const stage = await startStage(t)
  const browser = await stage.signedIn('ada@example.com')
  const labels = { team: 'research', env: 'ci' }
  const { key } = await made(browser, { name: 'ci', labels })
  t.same(key.labels, labels)
  t.match(keysReply.parse((await browser.get('/keys')).json), { keys: [{ labels }] })
  const turned = await browser.ask('POST', `/keys/${key.id}/rotate`, { body: {} })
  t.same(rotatedKeyReply.parse(turned.json).key.labels, labels)
  const refused = async (given: object): Promise<unknown> => {
    const answer = await browser.ask('POST', '/keys', { body: { name: 'x', labels: given } })
    return { status: answer.status, json: answer.json }
  }
  t.match(await refused({ team: '' }), { status: 400, json: { field: 'labels.team' } })
  t.match(await refused({ Team: 'x' }), { status: 400, json: { field: 'labels' } })
  t.match(await refused({ priority: 'high' }), {
    status: 403,
    json: { field: 'labels.priority' },
  })
})

void t.test('only administrators may allow tools of providers', async (t) => {
  const stage = await startStage(t)
  const owner = await stage.signedIn('ada@example.com')
  const grant = await owner.ask('POST', '/keys', { body: { name: 'x', allowTools: ['mcp'] } })
  t.match(grant, { status: 403, json: { field: 'allowTools' } })
  const { key } = await made(owner, { name: 'ci', allowTools: [] })
  t.same(key.allowTools, [], 'an empty list only restricts')
  const changed = async (body: object) => {
    return owner.ask('PATCH', `/keys/${key.id}`, { body })
  }
  t.match(await changed({ allowTools: ['*'] }), { status: 403 })
  const reference = { accountId: key.accountId, id: key.id }
  await editKey(stage.store, reference, { allowTools: ['web_search'] })
  t.match(await changed({ name: 'new', allowTools: ['web_search'] }), { status: 200 })
  t.match(await changed({ allowTools: ['web_search', 'mcp'] }), { status: 403 })
  const turned = await owner.ask('POST', `/keys/${key.id}/rotate`, { body: {} })
  t.same(rotatedKeyReply.parse(turned.json).key.allowTools, ['web_search'])
  t.match(await changed({ allowTools: null }), { status: 200 })
  const admin = await stage.signedIn('root@example.com', 'max', 'admin')
  const listed = await made(admin, { name: 'ci', allowTools: ['web_search_20250305', 'mcp'] })
  t.same(listed.key.allowTools, ['web_search', 'mcp'])
  const wrong = await admin.ask('POST', '/keys', { body: { name: 'x', allowTools: ['a  b'] } })
  t.match(wrong, { status: 400, json: { field: 'allowTools.0' } })
})

void t.test('a list of keys has pages, a search, and the usage of each key', async (t) => {
  const stage = await startStage(t)
  const browser = await stage.signedIn('ada@example.com', 'max')
  const names = Array.from({ length: 7 }, (_, at) => `key ${at}`)
  const keys: Key[] = []
  for (const name of [...names, '50% *off*']) keys.push((await made(browser, { name })).key)
  const [first] = keys
  const accountId = first?.accountId ?? ''
  const atMs = Date.now() - 5_000
  await stage.store.ledger.settle(aRow(accountId, { keyId: first?.id ?? '', atMs }))
  await stage.store.ledger.settle(
    aRow(accountId, { keyId: first?.id ?? '', atMs: atMs + 9, costNanoUsd: null }),
  )

  const seen: string[] = []
  let after = ''
  for (let page = 0; page < 9; page += 1) {
    const answer = await browser.get(`/keys?limit=3${after === '' ? '' : `&after=${after}`}`)
    const { keys: part, next } = keysReply.parse(answer.json)
    seen.push(...part.map(({ id }) => id))
    if (next === null) break
    after = next
  }
  t.same(seen, keys.map(({ id }) => id).reverse(), 'each once, newest first')
  const found = async (words: string): Promise<string[]> => {
    const answer = await browser.get(`/keys?search=${encodeURIComponent(words)}`)
    return keysReply.parse(answer.json).keys.map(({ name }) => name)
  }
  t.same(await found('KEY 3'), ['key 3'])
  for (const words of ['%', '*', '*off*']) t.same(await found(words), ['50% *off*'])
  for (const words of ['%%%%', '.*', '(a+)+$', '\\', 'nothing']) t.same(await found(words), [])
  t.match(keysReply.parse((await browser.get('/keys?search=key+0')).json).keys, [
    { requests: 2, costNanoUsd: 1_500_000, unpricedRequests: 1, lastUsedAtMs: atMs + 9 },
  ])
})

void t.test('the settings of clients for a key, with a model that it may use', async (t) => {
  const stage = await startStage(t)
  const ada = await stage.signedIn('ada@example.com')
  const made = await ada.ask('POST', '/keys', { body: { name: 'k', models: ['claude-haiku-4-5'] } })
  const { id } = createdKeyReply.parse(made.json).key
  const reply = await ada.get(`/keys/${id}/clients?url=https%3A%2F%2Fllm.example.com`)
  const { clients } = keyClientsReply.parse(reply.json)
  t.ok(clients.length >= 7)
  for (const { name, text } of clients) {
    t.match(text, 'https://llm.example.com', name)
    t.match(text, 'model claude-haiku-4-5', name)
    t.notMatch(text, 'sk_', name)
  }
  for (const url of ['javascript:alert(1)', 'https://a.example/path', 'https://u:p@a.example']) {
    t.equal((await ada.get(`/keys/${id}/clients?url=${encodeURIComponent(url)}`)).status, 400, url)
  }
  const rotated = await ada.ask('POST', `/keys/${id}/rotate`, { body: { overlapSeconds: 0 } })
  t.equal(rotated.status, 201)
  t.match((await ada.get(`/keys/${id}`)).json, { key: { state: 'revoked' } }, 'without an overlap')
})
