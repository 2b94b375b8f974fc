/**
 * Goal: `operations: { moderations: chat }` lets a chat model of any vendor answer OpenAI's moderations: one
 * chat for each input, OpenAI's categories, the header that names it, and the charge of the chats.
 * Method: OpenAI's SDK on a running gateway, with the emulator, and a vendor on a real socket whose replies
 * the test chooses.
 */
import { createServer } from 'node:http'
import OpenAI, { APIError } from 'openai'
import t from 'tap'
import { startGateway } from '../helpers/gateway.js'
import { rowsOf } from '../helpers/ledger.js'
import { listen } from '../helpers/listen.js'

const CHAT = 'operations: { moderations: chat }'
const CATEGORIES = [
  ...['harassment', 'harassment/threatening', 'hate', 'hate/threatening', 'illicit', 'illicit/violent'],
  ...['self-harm', 'self-harm/instructions', 'self-harm/intent', 'sexual', 'sexual/minors'],
  ...['violence', 'violence/graphic'],
]

void t.test('chat models of each format', async (t) => {
  const gateway = await startGateway(t, { upstreamOptions: CHAT })
  const client = new OpenAI({ apiKey: gateway.secret, baseURL: gateway.baseUrl, maxRetries: 0 })
  for (const model of ['gpt-5.6-sol', 'gpt-4.1', 'claude-sonnet-4-5', 'gemini-3.5-flash']) {
    const { data, response } = await client.moderations
      .create({ model, input: ['A text.', 'Another.', 'A third.'] })
      .withResponse()
    t.equal(data.results.length, 3, model)
    t.ok(data.model.startsWith(model))
    for (const { categories, category_scores: scores, flagged } of data.results) {
      t.same(Object.keys(categories).toSorted(), CATEGORIES, model)
      t.same(Object.keys(scores).toSorted(), CATEGORIES)
      t.equal(flagged, Object.values(categories).includes(true))
    }
    t.equal(response.headers.get('x-sluice-emulated'), 'chat', model)
    t.equal(response.headers.get('x-sluice-lost'), null, model)
    const row = (await rowsOf(gateway)).at(-1)
    t.match(row, { ingress: 'moderations', outcome: 'ok', attempts: 3, source: 'reported' }, model)
    t.ok((row?.costNanoUsd ?? 0) > 0 && (row?.usage.output ?? 0) > 0, `${model} is charged as chats`)
  }
  const bodies = gateway.emulator.ledger.map(({ body }) => JSON.stringify(body))
  t.equal(bodies.length, 12)
  t.ok(bodies.slice(0, 3).every((body, at) => body.includes(['A text.', 'Another.', 'A third.'][at] ?? '')))
  t.notOk(bodies[1]?.includes('A text.'), 'each input is judged alone')

  const many = await client.moderations
    .create({ model: 'gpt-5.6-sol', input: Array<string>(17).fill('a') })
    .catch((error: unknown) => error)
  t.match(many instanceof APIError ? many.message : '', /at most 16 inputs/)
  const chat = await client.chat.completions
    .create({ model: 'gpt-5.6-sol', messages: [{ role: 'user', content: 'a' }] })
    .withResponse()
  t.equal(chat.response.headers.get('x-sluice-emulated'), null)
})

void t.test('a reply from the cache has the header, too', async (t) => {
  const routes =
    '  - { model: gpt-5.6-luna, upstream: openai, cache: { methods: [moderations], ttl_seconds: 60 } }'
  const gateway = await startGateway(t, { upstreamOptions: CHAT, routes })
  const client = new OpenAI({ apiKey: gateway.secret, baseURL: gateway.baseUrl, maxRetries: 0 })
  const judged = async (): Promise<(string | null)[]> => {
    const asked = client.moderations.create({ model: 'gpt-5.6-luna', input: 'A text.' })
    const { headers } = await asked.asResponse()
    return ['x-sluice-cache', 'x-sluice-emulated'].map((name) => headers.get(name))
  }
  t.strictSame(await judged(), ['miss', 'chat'])
  t.strictSame(await judged(), ['hit', 'chat'])
  const shared = await Promise.all([1, 2, 3].map(() => judged()))
  t.ok(shared.every(([, emulated]) => emulated === 'chat'))
})

/** The JSON of a verdict. */
function verdictText(flagged: readonly string[], score = 0.9): string {
  const categories = Object.fromEntries(CATEGORIES.map((name) => [name, flagged.includes(name)]))
  const category_scores = Object.fromEntries(
    CATEGORIES.map((name) => [name, flagged.includes(name) ? score : 0]),
  )
  return JSON.stringify({ categories, category_scores })
}

void t.test('limits count the chats', async (t) => {
  const more = 'limits: [{ scope: key, tokens_per_minute: 6000 }]'
  const gateway = await startGateway(t, { upstreamOptions: CHAT, more })
  const client = new OpenAI({ apiKey: gateway.secret, baseURL: gateway.baseUrl, maxRetries: 0 })
  const create = (input: string[]): Promise<unknown> =>
    client.moderations.create({ model: 'claude-sonnet-4-5', input }).catch((error: unknown) => error)
  t.match(await create(['a', 'b']), { status: 429 }, 'the outputs of both chats are reserved')
  t.match(await create(['a']), { results: [{}] })
})

void t.test('verdicts, refusals and replies that are none', async (t) => {
  const bodies: Record<string, unknown>[] = []
  const replies: Record<string, unknown>[] = []
  const server = createServer((req, res) => {
    let text = ''
    req.on('data', (chunk: Buffer) => (text += chunk.toString()))
    req.on('end', () => {
      bodies.push({ path: req.url, ...(JSON.parse(text) as Record<string, unknown>) })
      const { finish_reason = 'stop', usage, ...message } = replies.shift() ?? {}
      res.setHeader('content-type', 'application/json')
      const choice = { index: 0, finish_reason, message: { role: 'assistant', content: null, ...message } }
      const model = 'judge-1-0125'
      res.end(
        JSON.stringify({ id: 'c', object: 'chat.completion', created: 1, model, choices: [choice], usage }),
      )
    })
  })
  const base = `http://127.0.0.1:${await listen(t, server)}/v1`
  const gateway = await startGateway(t)
  const upstream =
    `  judge: { preset: vllm, base_url: "${base}", ${CHAT}, ` +
    `prices: { judge-1: { input: 1, output: 10 } } }\n`
  gateway.add(upstream, '  - { prefix: judge-, upstream: judge }\n')
  const client = new OpenAI({ apiKey: gateway.secret, baseURL: gateway.baseUrl, maxRetries: 0 })
  const usage = { prompt_tokens: 400, completion_tokens: 100, total_tokens: 500 }

  replies.push(
    { content: verdictText(['hate', 'self-harm/intent'], 0.8), usage },
    { content: verdictText([]), usage },
  )
  const both = await client.moderations.create({ model: 'judge-1', input: ['a', 'b'] })
  t.match(both, { model: 'judge-1-0125' })
  t.match(both.results[0], {
    flagged: true,
    categories: { hate: true, 'self-harm/intent': true, violence: false },
    category_scores: { hate: 0.8, violence: 0 },
    category_applied_input_types: { hate: ['text'] },
  })
  t.match(both.results[1], { flagged: false })
  t.match(bodies[1], {
    path: '/v1/chat/completions',
    model: 'judge-1',
    temperature: 0,
    messages: [{ role: 'system' }, { role: 'user', content: 'b' }],
    response_format: { type: 'json_schema', json_schema: { strict: true } },
  })
  const two = (await rowsOf(gateway)).at(-1)
  t.match(two, { usage: { input: 800, output: 200 }, costNanoUsd: 800 * 1000 + 200 * 10_000 })

  replies.push({ refusal: 'I cannot judge that.', usage })
  const refused = await client.moderations.create({ model: 'judge-1', input: 'a' })
  t.match(refused.results, [{ flagged: true, categories: {}, category_scores: {} }])
  replies.push({ content: '', finish_reason: 'content_filter', usage })
  const filtered = await client.moderations.create({ model: 'judge-1', input: 'a' })
  t.match(filtered.results, [{ flagged: true, categories: {} }])

  for (const content of ['No.', '{"categories": {}}', verdictText(['hate'], 2), `${verdictText([])} Done.`]) {
    replies.push({ content, usage })
    const failed = await client.moderations
      .create({ model: 'judge-1', input: 'a' })
      .catch((error: unknown) => error)
    t.match(failed, { status: 502, error: { kind: 'upstream_malformed' } }, content)
    const row = (await rowsOf(gateway)).at(-1)
    t.match(row, { outcome: 'upstream_malformed', costNanoUsd: 400 * 1000 + 100 * 10_000 }, content)
  }
  replies.push({ content: `\`\`\`json\n${verdictText(['violence'])}\n\`\`\``, usage })
  const fenced = await client.moderations.create({ model: 'judge-1', input: 'a' })
  t.match(fenced.results, [{ flagged: true, categories: { violence: true } }])

  replies.push({ content: verdictText([]) })
  await client.moderations.create({ model: 'judge-1', input: 'a' })
  const uncounted = (await rowsOf(gateway)).at(-1)
  t.equal(uncounted?.source, 'estimated')
  t.ok((uncounted?.usage.input ?? 0) > 200, 'the instruction counts')
  t.ok((uncounted?.usage.output ?? 0) > 50, 'the verdict counts')
})
