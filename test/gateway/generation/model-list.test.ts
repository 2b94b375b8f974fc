/**
 * Goal: the model list comes in the format that the client reads, page by page, with the models of its key.
 * Method: the vendors' SDKs on a running gateway, and requests by hand for the pages.
 */
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import t from 'tap'
import { createAccount } from '../../../src/accounts/changes/change-accounts.js'
import { createKey } from '../../helpers/keys.js'
import { arrayOf, objectOf, stringOf, type JsonObject, type JsonValue } from '../../../src/base/json.js'
import { openStore } from '../../../src/store/open-store.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { freshDatabases, startRedis } from '../../helpers/redis.js'
import { ofToday } from '../../helpers/long-suite.js'

const gateway = await startGateway(t)
const { secret, origin } = gateway

async function get(path: string, headers: Record<string, string>): Promise<unknown> {
  const res = await fetch(origin + path, { headers })
  return [res.status, await res.json()]
}

void t.test('all three SDKs read the same models', async (t) => {
  const openai = new OpenAI({ apiKey: secret, baseURL: `${origin}/v1` })
  const anthropic = new Anthropic({ apiKey: secret, baseURL: origin })
  const google = new GoogleGenAI({ apiKey: secret, httpOptions: { baseUrl: origin } })
  const ids: string[] = []
  for await (const { id } of openai.models.list()) ids.push(id)
  const claude: string[] = []
  for await (const each of anthropic.models.list({ limit: 3 })) {
    t.equal(each.type, 'model')
    t.ok(Date.parse(each.created_at) > 0)
    claude.push(each.id)
  }
  const gemini: string[] = []
  for await (const { name } of await google.models.list({ config: { pageSize: 2 } })) {
    gemini.push((name ?? '').replace(/^models\//, ''))
  }
  t.ok(ids.length > 6)
  t.same(claude, ids)
  t.same(gemini, ids)
  const id = ids[0] ?? ''
  t.equal((await openai.models.retrieve(id)).id, id)
  t.equal((await anthropic.models.retrieve(id)).id, id)
  t.equal((await google.models.get({ model: id })).name, `models/${id}`)
})

void t.test('the format follows the headers', async (t) => {
  const key = { authorization: `Bearer ${secret}` }
  t.match(await get('/v1/models', key), [200, { object: 'list' }])
  const version = { 'anthropic-version': '2023-06-01' }
  t.match(await get('/v1/models', { ...key, ...version }), [200, { has_more: true }])
  t.match(await get('/v1/models', { 'x-goog-api-key': secret }), [200, { models: Array }])
  t.match(await get(`/v1/models?key=${secret}`, {}), [200, { models: Array }])
  t.match(await get('/v1beta/models', key), [200, { models: Array }])
  t.match(await get('/v1beta/models/gpt-4o', key), [200, { name: 'models/gpt-4o' }])
  t.match(await get('/v1/models/gpt-4o', { ...key, ...version }), [200, { type: 'model' }])
})

void t.test('pages can be read in both directions, and invalid ones are refused', async (t) => {
  const headers = { 'x-api-key': secret, 'anthropic-version': '2023-06-01' }
  const page = async (query: string): Promise<{ ids: string[]; more: boolean }> => {
    const res = await fetch(`${origin}/v1/models?${query}`, { headers })
    const body = (await res.json()) as { data: { id: string }[]; has_more: boolean }
    return { ids: body.data.map(({ id }) => id), more: body.has_more }
  }
  const { ids: all, more } = await page('limit=1000')
  t.notOk(more)
  const first = await page('limit=2')
  t.same(first, { ids: all.slice(0, 2), more: true })
  const next = await page(`limit=2&after_id=${first.ids[1] ?? ''}`)
  t.same(next.ids, all.slice(2, 4))
  t.same(await page(`limit=2&before_id=${next.ids[0] ?? ''}`), { ids: first.ids, more: false })
  t.same(await page(`limit=1&before_id=${next.ids[0] ?? ''}`), { ids: [all[1]], more: true })
  t.same(await page(`limit=2&after_id=${all.at(-1) ?? ''}`), { ids: [], more: false })
  for (const query of ['limit=0', 'limit=1001', 'limit=x', 'after_id=none', 'before_id=none']) {
    t.match(await get(`/v1/models?${query}`, headers), [400])
  }
  for (const query of ['pageSize=-1', 'pageToken=none']) {
    t.match(await get(`/v1beta/models?${query}`, headers), [400])
  }
})

/** Aliases, an upstream whose key is not set, and one of a server that no catalogue lists. */
const ROUTED = {
  cloud: "dialect: openai-chat, base_url: 'http://127.0.0.1:9/v1', api_key: '${SLUICE_TEST_UNSET_KEY}'",
  routes: `
  - { model: fast, targets: [{ upstream: cloud, model: m }, { upstream: google, model: gemini-2.5-flash }] }
  - { model: big, upstream: anthropic }
  - { model: claude-opus-5-5, upstream: cloud }
  - { prefix: llama-, upstream: cloud }
  - { model: llama-x, upstream: cloud }
`,
}

const FORMATS = {
  openai: { path: '/v1/models', headers: {}, list: 'data' },
  anthropic: { path: '/v1/models', headers: { 'anthropic-version': '2023-06-01' }, list: 'data' },
  gemini: { path: '/v1beta/models', headers: {}, list: 'models' },
} as const

async function listed(
  { origin, secret }: Pick<TestGateway, 'origin' | 'secret'>,
  format: keyof typeof FORMATS,
  query = '',
): Promise<Map<string, JsonObject>> {
  const { path, headers, list } = FORMATS[format]
  const size = format === 'openai' ? '' : 'limit=1000&pageSize=1000&'
  const res = await fetch(`${origin}${path}?${size}${query}`, {
    headers: { ...headers, authorization: `Bearer ${secret}` },
  })
  const body = objectOf(JSON.parse(await res.text()) as JsonValue)
  const models = arrayOf(body[list]).map(objectOf)
  return new Map(models.map((model) => [stringOf(model['id'] ?? model['baseModelId']) ?? '', model]))
}

void t.test('aliases are listed, and models without a usable upstream are not', async (t) => {
  const gateway = await startGateway(t, ROUTED)
  for (const format of ['openai', 'anthropic', 'gemini'] as const) {
    const models = await listed(gateway, format)
    for (const id of ['fast', 'big', 'gpt-4o']) t.ok(models.has(id), `${format} ${id}`)
    for (const id of ['claude-opus-5-5', 'llama-x']) t.notOk(models.has(id), `${format} ${id}`)
    const all = await listed(gateway, format, 'all=true')
    t.ok(all.size > models.size)
    t.equal(all.get('fast')?.['unavailable_reason'], undefined)
    const reason = "The upstream 'cloud' has no API key: set SLUICE_TEST_UNSET_KEY."
    for (const id of ['claude-opus-5-5', 'llama-x']) t.match(all.get(id), { unavailable_reason: reason })
  }
})

void t.test('each format has sizes, modalities, abilities, prices and the owner', async (t) => {
  const gateway = await startGateway(t, ROUTED)
  for (const format of ['openai', 'anthropic', 'gemini'] as const) {
    const models = await listed(gateway, format)
    const fast = models.get('fast')
    t.match(fast, {
      context_length: 1_048_576,
      max_output_tokens: 65_536,
      top_provider: { context_length: 1_048_576, max_completion_tokens: 65_536 },
      input_modalities: ['text', 'image', 'audio'],
      output_modalities: ['text'],
      architecture: { input_modalities: ['text', 'image', 'audio'], output_modalities: ['text'] },
      pricing: { prompt: '0.0000003', completion: '0.0000025' },
      owned_by: 'google',
    })
    const abilities = arrayOf(fast?.['supported_parameters'])
    for (const name of ['temperature', 'top_k', 'tools', 'reasoning', 'structured_outputs', 'max_tokens']) {
      t.ok(abilities.includes(name), name)
    }
    t.notOk(abilities.includes('logit_bias'))
    t.notOk(arrayOf(models.get('gpt-5.4')?.['supported_parameters']).includes('temperature'))
    t.match(models.get('text-embedding-3-small'), { output_modalities: ['embeddings'] })
    t.equal(models.get('big')?.['pricing'], undefined, 'an unknown price is absent')
    t.equal(models.get('big')?.['owned_by'], 'anthropic')
    t.equal(models.get('big')?.['context_length'], undefined)
  }
})

void t.test('one model has the same members, and is not found without a usable upstream', async (t) => {
  const gateway = await startGateway(t, ROUTED)
  for (const format of ['openai', 'anthropic', 'gemini'] as const) {
    const { path, headers } = FORMATS[format]
    const key = { ...headers, authorization: `Bearer ${gateway.secret}` }
    const one = async (id: string): Promise<unknown> => {
      const res = await fetch(`${gateway.origin}${path}/${id}`, { headers: key })
      return [res.status, await res.json()]
    }
    t.same(await one('fast'), [200, (await listed(gateway, format)).get('fast')])
    t.match(await one('claude-opus-5-5'), [404])
    t.match(await one('llama-3'), [404])
    t.match(await one('llama-3?all=true'), [200, { unavailable_reason: /SLUICE_TEST_UNSET_KEY/ }])
  }
})

for (const name of ofToday(['sqlite', 'redis'] as const, 2)) {
  void t.test(`${name}: a key's list holds for aliases and models alike`, async (t) => {
    const store = name === 'redis' ? { store: freshDatabases(await startRedis(t))() } : {}
    const gateway = await startGateway(t, { ...ROUTED, ...store })
    const opened = await openStore(gateway.store)
    const login = { email: 'lists@example.com', plan: 'max', password: 'correct horse battery' } as const
    const { account } = await createAccount(opened, login)
    const { plans } = gateway
    const models = ['fast', 'gpt-4o*', 'claude-opus-5-5']
    const { secret: limited } = await createKey(opened, { plans, account, name: 'limited', models })
    await opened.close()
    const ids = [...(await listed({ ...gateway, secret: limited }, 'openai')).keys()]
    t.ok(ids.includes('fast'))
    t.ok(
      ids.every((id) => id === 'fast' || id.startsWith('gpt-4o')),
      ids.join(),
    )
    const all = await listed({ ...gateway, secret: limited }, 'openai', 'all=true')
    t.ok(all.has('claude-opus-5-5'))
  })
}
