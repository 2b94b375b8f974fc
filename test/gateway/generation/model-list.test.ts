/**
 * Goal: the model list comes in the format that the client reads, page by page, with the models of its key.
 * Method: the vendors' SDKs on a running gateway, and requests by hand for the pages.
 */
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import t from 'tap'
import { startGateway } from '../../helpers/gateway.js'

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
