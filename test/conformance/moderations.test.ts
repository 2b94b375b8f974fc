/**
 * Goal: clients of OpenAI's moderations get OpenAI's form from upstreams of OpenAI and of Mistral, with an
 * entry for each request; a category that was not judged is absent.
 * Method: OpenAI's SDK on a running gateway, with a vendor on a real socket.
 */
import { createServer } from 'node:http'
import OpenAI, { APIError } from 'openai'
import t from 'tap'
import { startGateway } from '../helpers/gateway.js'
import { rowsOf } from '../helpers/ledger.js'
import { listen } from '../helpers/listen.js'

const OPENAI_RESULT = {
  flagged: true,
  categories: { violence: true, hate: false },
  category_scores: { violence: 0.9, hate: 0.01 },
  category_applied_input_types: { violence: ['text'], hate: ['text'] },
}
const MISTRAL_RESULT = {
  categories: { selfharm: true, pii: false, dangerous: false, criminal: true },
  category_scores: { selfharm: 0.8, pii: 0.1, dangerous: 0.2, criminal: 0.7 },
}

void t.test('moderations of both vendors', async (t) => {
  const bodies: Record<string, unknown>[] = []
  const server = createServer((req, res) => {
    let text = ''
    req.on('data', (chunk: Buffer) => (text += chunk.toString()))
    req.on('end', () => {
      const body = JSON.parse(text) as Record<string, unknown>
      bodies.push({ path: req.url, ...body })
      const count =
        Array.isArray(body['input']) && typeof body['input'][0] === 'string' ? body['input'].length : 1
      const isMistral = req.url?.startsWith('/mistral') === true
      const result = isMistral ? MISTRAL_RESULT : OPENAI_RESULT
      res.setHeader('content-type', 'application/json')
      res.end(JSON.stringify({ id: 'modr-1', model: body['model'], results: Array(count).fill(result) }))
    })
  })
  const origin = `http://127.0.0.1:${await listen(t, server)}`
  const gateway = await startGateway(t)
  const upstreams = ['openai', 'mistral'].map((name) => {
    return `  mod-${name}: { preset: ${name}, base_url: "${origin}/${name}/v1", api_key: vendor-key }\n`
  })
  const routes = ['omni-', 'mistral-'].map((prefix, at) => {
    return `  - { prefix: ${prefix}, upstream: mod-${['openai', 'mistral'][at] ?? ''} }\n`
  })
  gateway.add(upstreams.join(''), routes.join(''))
  const client = new OpenAI({ apiKey: gateway.secret, baseURL: gateway.baseUrl, maxRetries: 0 })

  const { data: one } = await client.moderations.create({ input: 'A text.' }).withResponse()
  t.same(one.results, [OPENAI_RESULT])
  t.same(bodies.at(-1), {
    path: '/openai/v1/moderations',
    input: 'A text.',
    model: 'omni-moderation-latest',
  })
  t.match((await rowsOf(gateway)).at(-1), { ingress: 'moderations', outcome: 'ok', costNanoUsd: 0 })
  const parts = await client.moderations.create({
    model: 'omni-moderation-latest',
    input: [
      { type: 'text', text: 'A text.' },
      { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
    ],
  })
  t.equal(parts.results.length, 1)

  const { data: two, response } = await client.moderations
    .create({ model: 'mistral-moderation-latest', input: ['a', 'b'] })
    .withResponse()
  t.equal(two.results.length, 2)
  t.match(two.results[0], {
    flagged: true,
    categories: { 'self-harm': true, pii: false, illicit: true },
    category_scores: { 'self-harm': 0.8, illicit: 0.7 },
    category_applied_input_types: { 'self-harm': ['text'] },
  })
  t.notOk('hate' in (two.results[0]?.categories ?? {}))
  t.equal(response.headers.get('x-sluice-lost'), 'categories')
  t.match(bodies.at(-1), { path: '/mistral/v1/moderations', input: ['a', 'b'] })

  await t.rejects(
    client.moderations.create({
      model: 'mistral-moderation-latest',
      input: [{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }],
    }),
    new RegExp('reads texts only'),
  )
  const refused = await client.moderations
    .create({ model: 'claude-opus-5-5', input: 'a' })
    .catch((error: unknown) => error)
  t.match(refused instanceof APIError ? refused.message : '', 'serves moderations; anthropic does not')
  const below = new OpenAI({ apiKey: gateway.secret, baseURL: `${gateway.origin}/openai/v1`, maxRetries: 0 })
  t.same((await below.moderations.create({ input: 'A text.' })).results, [OPENAI_RESULT])
})
