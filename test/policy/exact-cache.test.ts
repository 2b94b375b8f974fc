/**
 * Goal: the exact cache of a route answers equal requests, and only those, from stored replies.
 * Method: gateways in this process before emulated providers; each case has prompts of its own.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { setTimeout as delay } from 'node:timers/promises'
import { createAccount } from '../../src/accounts/changes/change-accounts.js'
import { createKey } from '../helpers/keys.js'
import { objectOf } from '../../src/base/json.js'
import type { LedgerEntry } from '../../src/ledger/entry.js'
import { openStore } from '../../src/store/open-store.js'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { rowsOf } from '../helpers/ledger.js'

type Call = (path: string, body: object, headers?: Record<string, string>) => Promise<Answer>

interface Answer {
  readonly status: number
  readonly cache: string | null
  readonly age: string | null
  readonly id: string
  readonly headers: Headers
  readonly text: string
  readonly json: Record<string, unknown>
}

function callsOf(gateway: TestGateway, secret = gateway.secret): Call {
  return async (path, body, headers = {}) => {
    const response = await fetch(gateway.origin + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${secret}`,
        'content-type': 'application/json',
        ...headers,
      },
      body: JSON.stringify(body),
    })
    // A failed stream ends with its connection.
    const text = await response.text().catch(() => '')
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true
    return {
      status: response.status,
      cache: response.headers.get('x-sluice-cache'),
      age: response.headers.get('age'),
      id: response.headers.get('x-request-id') ?? '',
      headers: response.headers,
      text,
      json: isJson ? objectOf(JSON.parse(text)) : {},
    }
  }
}

/** The entry of a request. */
async function entryOf(gateway: TestGateway, id: string): Promise<LedgerEntry> {
  const entry = (await rowsOf(gateway)).find(({ requestId }) => requestId === id)
  if (entry === undefined) throw new Error(`no entry of ${id}`)
  return entry
}

const CHAT = '/v1/chat/completions'

function chat(content: string, more: object = {}): object {
  return { model: 'cached-gpt', messages: [{ role: 'user', content }], ...more }
}

const ROUTES = `
  - { model: cached-gpt, targets: [{ upstream: openai, model: gpt-4o-mini }], cache: {} }
  - { model: cached-claude, targets: [{ upstream: anthropic, model: claude-haiku-4-5 }], cache: {} }
  - { model: cached-gemini, targets: [{ upstream: google, model: gemini-2.5-flash }], cache: {} }
  - { model: cached-embed, targets: [{ upstream: openai, model: text-embedding-3-small }], cache: {} }
  - { model: plain-gpt, targets: [{ upstream: openai, model: gpt-4o-mini }] }
  - { model: chats-only, upstream: openai, cache: { methods: [chat] } }
  - { model: cold, targets: [{ upstream: openai, model: gpt-4o-mini }], cache: { when: { temperature_max: 0.2 } } }
  - { model: brief, targets: [{ upstream: openai, model: gpt-4o-mini }], cache: { ttl_seconds: 1 } }
  - { model: tiny, targets: [{ upstream: openai, model: gpt-4o-mini }], cache: { max_bytes: 100 } }
`

function textOf(stream: string): string {
  let text = ''
  for (const line of stream.split('\n')) {
    if (!line.startsWith('data: {')) continue
    const { choices, delta } = objectOf(JSON.parse(line.slice(6)))
    const first = Array.isArray(choices) ? objectOf(choices[0]) : {}
    const content = objectOf(first['delta'])['content'] ?? objectOf(delta)['text']
    if (typeof content === 'string') text += content
  }
  return text
}

function contentOf({ json }: Answer): unknown {
  const { choices } = json
  return Array.isArray(choices) ? objectOf(objectOf(choices[0])['message'])['content'] : undefined
}

await t.test('a second equal request is a hit', async (t) => {
  const gateway = await startGateway(t, { routes: ROUTES })
  const call = callsOf(gateway)
  const first = await call(CHAT, chat('What is a lock?'))
  t.same([first.status, first.cache, first.age], [200, 'miss', null])
  const before = gateway.emulator.ledger.length
  const second = await call(CHAT, chat('What is a lock?', { temperature: 1, user: 'u' }))
  t.equal(gateway.emulator.ledger.length, before, 'no upstream request')
  t.same([second.status, second.cache, second.age], [200, 'hit', '0'])
  t.equal(contentOf(second), contentOf(first), 'the same text')
  t.match(first.json['usage'], objectOf(second.json['usage']), 'and the same usage')
  t.not(second.json['id'], first.json['id'], 'with an id of its own')
  const [miss, hit] = [await entryOf(gateway, first.id), await entryOf(gateway, second.id)]
  t.same([miss.cacheHit, miss.savedNanoUsd], [false, null])
  t.match(hit, {
    cacheHit: true,
    attempts: 0,
    usage: {},
    costNanoUsd: 0,
    source: 'none',
    status: 200,
    outcome: 'ok',
    savedNanoUsd: miss.costNanoUsd,
  })
  const plain = await call(CHAT, { ...chat('What is a lock?'), model: 'plain-gpt' })
  t.equal(plain.cache, null, 'no header without a cache')
  t.equal((await entryOf(gateway, plain.id)).cacheHit, null)
  const metrics = await gateway.metrics.text()
  t.match(metrics, 'sluice_cache_requests_total{route="cached-gpt",result="hit"} 1')
  t.match(metrics, 'sluice_cache_requests_total{route="cached-gpt",result="miss"} 1')
  t.match(metrics, /sluice_cache_saved_usd_total\{route="cached-gpt"\} [\d.e-]+/)
  t.match(metrics, 'sluice_cache_entries 1')
  t.match(metrics, /sluice_cache_bytes [1-9]/)
})

await t.test('one reply serves every format, whole and as a stream', async (t) => {
  const gateway = await startGateway(t, { routes: ROUTES })
  const call = callsOf(gateway)
  for (const model of ['cached-gpt', 'cached-claude', 'cached-gemini']) {
    const prompt = `Say hello to ${model}.`
    const first = await call(CHAT, { ...chat(prompt, { max_tokens: 50, stream: true }), model })
    t.equal(first.cache, 'miss', model)
    const text = textOf(first.text)
    const requests = gateway.emulator.ledger.length
    const whole = await call(CHAT, { ...chat(prompt, { max_tokens: 50 }), model })
    t.same([whole.cache, contentOf(whole)], ['hit', text], 'whole')
    const streamed = await call(CHAT, { ...chat(prompt, { max_tokens: 50, stream: true }), model })
    t.equal(textOf(streamed.text), text, 'stream')
    t.match(streamed.headers.get('content-type'), 'text/event-stream')
    t.match(streamed.text, /data: \[DONE\]\n\n$/)
    const messages = { model, max_tokens: 50, messages: [{ role: 'user', content: prompt }] }
    const claude = await call('/v1/messages', messages)
    t.match(claude.json, { type: 'message', content: [{ type: 'text', text }] }, 'Messages')
    const events = await call('/v1/messages', { ...messages, stream: true })
    t.equal(textOf(events.text), text, 'Messages as a stream')
    const response = await call('/v1/responses', { model, max_output_tokens: 50, input: prompt })
    t.match(response.json, { output: [{ content: [{ text }] }] }, 'Responses')
    t.equal(response.cache, 'hit')
    const contents = [{ role: 'user', parts: [{ text: prompt }] }]
    const gemini = await call(`/v1beta/models/${model}:generateContent`, {
      contents,
      generationConfig: { maxOutputTokens: 50 },
    })
    t.match(gemini.json, { candidates: [{ content: { parts: [{ text }] } }] }, 'Gemini')
    const array = await call(`/v1beta/models/${model}:streamGenerateContent`, {
      contents,
      generationConfig: { maxOutputTokens: 50 },
    })
    t.ok(Array.isArray(JSON.parse(array.text)), 'the events in an array')
    t.equal(gateway.emulator.ledger.length, requests, 'all without the upstream')
  }
})

await t.test('a stored response of a hit can be continued', async (t) => {
  const gateway = await startGateway(t, { routes: ROUTES })
  const call = callsOf(gateway)
  const body = { model: 'cached-gpt', input: 'Count to three.' }
  await call('/v1/responses', body)
  const hit = await call('/v1/responses', body)
  t.equal(hit.cache, 'hit')
  const next = await call('/v1/responses', {
    model: 'cached-gpt',
    input: 'And on.',
    previous_response_id: hit.json['id'],
  })
  t.same([next.status, next.cache], [200, 'bypass'], 'a stored conversation is not cached')
})

await t.test('embeddings', async (t) => {
  const gateway = await startGateway(t, { routes: ROUTES })
  const call = callsOf(gateway)
  const body = { model: 'cached-embed', input: ['one', 'two'] }
  const first = await call('/v1/embeddings', body)
  const second = await call('/v1/embeddings', { ...body, encoding_format: 'float' })
  t.same([first.cache, second.cache], ['miss', 'hit'])
  t.same(second.json['data'], first.json['data'])
  t.same(second.json['usage'], first.json['usage'])
  const other = await call('/v1/embeddings', { ...body, encoding_format: 'base64' })
  t.equal(other.cache, 'miss')
  const batch = await call('/v1beta/models/cached-embed:batchEmbedContents', {
    requests: ['one', 'two'].map((text) => ({
      model: 'models/cached-embed',
      content: { parts: [{ text }] },
    })),
  })
  t.equal(batch.cache, 'hit', 'in the format of Gemini')
})

await t.test('cache-control of the request', async (t) => {
  const gateway = await startGateway(t, { routes: ROUTES })
  const call = callsOf(gateway)
  const body = chat('Control.')
  const ask = (control: string) => call(CHAT, body, { 'cache-control': control })
  t.equal((await ask('no-store')).cache, 'bypass')
  t.equal((await call(CHAT, body)).cache, 'miss', 'no-store stored nothing')
  t.equal((await ask('no-cache')).cache, 'stored')
  t.equal((await ask('max-age=0')).cache, 'stored')
  t.equal((await ask('max-age=60')).cache, 'hit')
  t.equal((await ask('MAX-AGE=60, foo')).cache, 'hit')
  await delay(1_100)
  t.equal((await ask('max-age=1')).cache, 'miss', 'too old')
  t.equal((await call(CHAT, body)).cache, 'hit')
})

await t.test('what is not cached', async (t) => {
  const gateway = await startGateway(t, { routes: ROUTES })
  const call = callsOf(gateway)
  const bypassed = async (name: string, body: object, path = CHAT): Promise<void> => {
    const one = await call(path, body)
    const two = await call(path, body)
    t.same([one.cache, two.cache], ['bypass', 'bypass'], name)
  }
  await bypassed('n', chat('Twice.', { n: 2 }))
  const image = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } }
  await bypassed('an image by URL', {
    model: 'cached-gpt',
    messages: [{ role: 'user', content: [{ type: 'text', text: 'What?' }, image] }],
  })
  await bypassed('another method', { model: 'chats-only', input: 'x' }, '/v1/embeddings')
  await bypassed('no temperature', { ...chat('Cold.'), model: 'cold' })
  await bypassed('a high temperature', { ...chat('Cold.', { temperature: 0.3 }), model: 'cold' })
  const cold = { ...chat('Cold.', { temperature: 0.2 }), model: 'cold' }
  t.same([(await call(CHAT, cold)).cache, (await call(CHAT, cold)).cache], ['miss', 'hit'])
  const tiny = { ...chat('Large.'), model: 'tiny' }
  t.same([(await call(CHAT, tiny)).cache, (await call(CHAT, tiny)).cache], ['miss', 'miss'])
  const brief = { ...chat('Brief.'), model: 'brief' }
  t.same([(await call(CHAT, brief)).cache, (await call(CHAT, brief)).cache], ['miss', 'hit'])
  await delay(1_050)
  t.equal((await call(CHAT, brief)).cache, 'miss', 'expired')
})

await t.test('replies are not shared between accounts, keys, models and routes', async (t) => {
  const gateway = await startGateway(t, {
    routes: `
  - { model: by-account, targets: [{ upstream: openai, model: gpt-4o-mini }], cache: {} }
  - { model: by-key, targets: [{ upstream: openai, model: gpt-4o-mini }], cache: { scope: key } }
  - { model: everyone, targets: [{ upstream: openai, model: gpt-4o-mini }], cache: { scope: shared } }
`,
  })
  const { store, plans } = gateway
  const opened = await openStore(store)
  const own = await opened.accountByEmail('test@example.com')
  if (own === null) throw new Error('no account')
  const { account: other } = await createAccount(opened, {
    email: 'other@example.com',
    plan: 'max',
    password: 'correct horse battery staple',
  })
  const second = await createKey(opened, { plans, account: own, name: 'second' })
  const foreign = await createKey(opened, { plans, account: other, name: 'other' })
  await opened.close()
  const calls = [gateway.secret, second.secret, foreign.secret].map((key) => callsOf(gateway, key))
  const results = async (model: string): Promise<(string | null)[]> => {
    const found: (string | null)[] = []
    for (const call of calls) found.push((await call(CHAT, { ...chat('Mine.'), model })).cache)
    return found
  }
  t.same(await results('by-account'), ['miss', 'hit', 'miss'])
  t.same(await results('by-key'), ['miss', 'miss', 'miss'])
  t.same(await results('everyone'), ['miss', 'hit', 'hit'])
  t.same(await results('by-key'), ['hit', 'hit', 'hit'])
})

await t.test('failed, truncated and refused replies are not stored', async (t) => {
  const gateway = await startGateway(t, { routes: ROUTES })
  const call = callsOf(gateway)
  const cases: Record<string, object> = {
    'an error': chat('[[fault:status code=400]] No.'),
    max_tokens: chat('[[words:50]] Long.', { max_tokens: 5 }),
    'max_tokens of a stream': chat('[[words:50]] Long stream.', { max_tokens: 5, stream: true }),
    'a cut stream': chat('[[words:50]] [[fault:cut event=9]] Cut.', { stream: true }),
    'a stream without a terminator': chat('[[fault:unterminated]] Ends.', { stream: true }),
  }
  for (const [name, body] of Object.entries(cases)) {
    const caches = [(await call(CHAT, body)).cache, (await call(CHAT, body)).cache]
    t.same(caches, ['miss', 'miss'], name)
  }
})

await t.test('tool calls and reasoning of a hit are those of the reply', async (t) => {
  const gateway = await startGateway(t, { routes: ROUTES })
  const call = callsOf(gateway)
  const parameters = { type: 'object', properties: { city: { type: 'string' } } }
  const body = {
    model: 'cached-claude',
    messages: [{ role: 'user', content: 'Weather in Rome?' }],
    tools: [{ type: 'function', function: { name: 'weather', parameters } }],
    tool_choice: 'required',
    max_tokens: 2000,
  }
  const first = await call(CHAT, { ...body, stream: true })
  const second = await call(CHAT, body)
  t.same([first.cache, second.cache], ['miss', 'hit'])
  t.match(second.json, { choices: [{ finish_reason: 'tool_calls' }] })
  const id = /"id":"(toolu?_?[\w-]+|call_[\w-]+)"/.exec(first.text)?.[1]
  t.match(JSON.stringify(second.json), id ?? 'no id')
  const thinking = {
    model: 'cached-claude',
    max_tokens: 3000,
    thinking: { type: 'enabled', budget_tokens: 1024 },
    messages: [{ role: 'user', content: 'Think.' }],
  }
  const thought = await call('/v1/messages', thinking)
  const again = await call('/v1/messages', thinking)
  t.same([thought.cache, again.cache], ['miss', 'hit'])
  t.same(again.json['content'], thought.json['content'], 'with its reasoning and signature')
})

await t.test('a changed route drops its entries, and no others', async (t) => {
  const gateway = await startGateway(t, { routes: ROUTES })
  const call = callsOf(gateway)
  const others = { ...chat('Kept?'), model: 'brief' }
  await call(CHAT, chat('Kept?'))
  await call(CHAT, { ...chat('Kept?'), model: 'cached-claude' })
  const file = readFileSync(gateway.configFile, 'utf8')
  writeFileSync(
    gateway.configFile,
    file.replace(
      'model: cached-claude, targets: [{ upstream: anthropic, model: claude-haiku-4-5 }], cache: {}',
      'model: cached-claude, targets: [{ upstream: anthropic, model: claude-haiku-4-5 }], sticky: key, cache: {}',
    ),
  )
  gateway.reload()
  t.match(await gateway.metrics.text(), 'sluice_cache_evictions_total{reason="route"} 1')
  t.equal((await call(CHAT, chat('Kept?'))).cache, 'hit')
  t.equal((await call(CHAT, { ...chat('Kept?'), model: 'cached-claude' })).cache, 'miss')
  t.equal((await call(CHAT, others)).cache, 'miss')
})

await t.test('a catalogue with other facts of a model answers none of its requests', async (t) => {
  const gateway = await startGateway(t, { routes: ROUTES })
  const call = callsOf(gateway)
  const claude = { ...chat('Known?'), model: 'cached-claude' }
  for (const body of [chat('Known?'), claude]) await call(CHAT, body)
  const file = join(dirname(gateway.configFile), 'models.yaml')
  const catalogue = readFileSync(file, 'utf8')
  const at = catalogue.indexOf('  - id: gpt-4o-mini\n')
  const change = (from: string, to: string) => {
    writeFileSync(file, catalogue.slice(0, at) + catalogue.slice(at).replace(from, to))
    gateway.reload()
  }
  change('input: 0.15', 'input: 0.150')
  for (const body of [chat('Known?'), claude])
    t.equal((await call(CHAT, body)).cache, 'hit', 'the same facts')
  change('max_output_tokens: 16384', 'max_output_tokens: 16000')
  t.equal((await call(CHAT, chat('Known?'))).cache, 'miss', 'other facts')
  t.equal((await call(CHAT, claude)).cache, 'hit', 'another model')
})

await t.test('a hit counts as a request towards limits, not in tokens or money', async (t) => {
  const gateway = await startGateway(t, {
    routes: ROUTES,
    more: 'limits:\n  - { scope: account, requests_per_minute: 4, tokens_per_minute: 100000 }\n',
  })
  const call = callsOf(gateway)
  const remaining = async (body: object) => {
    const { headers, status } = await call(CHAT, body)
    const left = headers.get('x-ratelimit-remaining-tokens')
    return { status, requests: headers.get('x-ratelimit-remaining-requests'), left: Number(left) }
  }
  await remaining(chat('Count me.', { max_tokens: 100 }))
  const two = await remaining(chat('Count me.', { max_tokens: 100 }))
  const three = await remaining(chat('Count me.', { max_tokens: 100 }))
  t.equal(three.status, 200)
  t.ok(three.left >= two.left, 'no tokens of the second')
  await remaining(chat('Count me.', { max_tokens: 100 }))
  t.equal((await remaining(chat('Count me.', { max_tokens: 100 }))).status, 429)
})
