/**
 * Goal: the same request has one key in every client format, and requests that may have different replies
 * have different keys.
 * Method: decodes bodies with the codecs of the formats; for the second part, every concept of the reference
 * of dialects is compared with the request without it.
 */
import t, { type Test } from 'tap'
import { CLIENTS } from '../../docs/generate/dialect-matrix/messages-clients.js'
import { PLAIN_REQUEST, REQUEST_GROUPS } from '../../src/gateway/explain/request-concepts.js'
import { loadConfig } from '../../src/config/load-config.js'
import type { JsonObject, JsonValue } from '../../src/base/json.js'
import type { ModelFacts } from '../../src/formats/chat/model-facts.js'
import { GatewayError } from '../../src/errors.js'
import { resolveEndpoint } from '../../src/formats/index.js'
import { atOnce } from '../../src/base/steps.js'
import { keySteps, routeContent, type KeyParts } from '../../src/policy/cache-key.js'
import { skipWithoutFixtures } from '../helpers/fixtures.js'
import { ofToday, SHARE } from '../helpers/long-suite.js'
import { BODIES, changed, placesIn, recordedRequests, valueAt } from './request-places.js'

const FACTS: ModelFacts = { id: 'm', family: 'anthropic', createdAtSeconds: 0 }

interface Sent {
  readonly path: string
  readonly body: JsonObject
  readonly headers?: Record<string, string>
  readonly parts?: Partial<KeyParts>
}

function keyOf({ path, body, headers = {}, parts = {} }: Sent): string {
  const resolved = resolveEndpoint('POST', path)
  if (resolved === null) throw new Error(`no endpoint ${path}`)
  const { clientCodec, endpoint, wire } = resolved
  const request = clientCodec.decodeRequest(body, endpoint, headers)
  const fixed = { route: 'r', priceVersion: 'p', scope: 'account', scopeId: 'a' } as const
  const of = { ...fixed, guardrails: [], query: '', targetFacts: [FACTS] }
  return atOnce(keySteps({ request, wire, body, facts: () => FACTS, ...of, ...parts }))
}

const NONE = { guardrails: [], plugins: [] }
const CHAT = '/v1/chat/completions'
const MESSAGES = '/v1/messages'
const RESPONSES = '/v1/responses'
const GEMINI = '/v1beta/models/m:generateContent'
const schema = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
}

const chat: JsonObject = {
  model: 'm',
  messages: [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'Weather?' },
    {
      role: 'assistant',
      content: 'I look.',
      tool_calls: [
        {
          id: 'call_1',
          type: 'function',
          function: { name: 'look', arguments: '{ "city": "B" }' },
        },
      ],
    },
    { role: 'tool', tool_call_id: 'call_1', content: 'sun' },
  ],
  tools: [{ type: 'function', function: { name: 'look', description: 'd', parameters: schema } }],
  max_tokens: 100,
  temperature: 0.2,
}

const messages: JsonObject = {
  model: 'm',
  max_tokens: 100,
  temperature: 0.2,
  system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
  messages: [
    { role: 'user', content: 'Weather?' },
    {
      role: 'assistant',
      content: [
        { type: 'text', text: 'I look.' },
        { type: 'tool_use', id: 'toolu_9', name: 'look', input: { city: 'B' } },
      ],
    },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_9', content: 'sun' }] },
  ],
  tools: [{ name: 'look', description: 'd', input_schema: schema }],
}

void t.test('the same request has the same key in every format', (t) => {
  const key = keyOf({ path: CHAT, body: chat })
  t.equal(keyOf({ path: MESSAGES, body: messages }), key, 'Messages')
  const headers = { 'anthropic-version': '2023-06-01' }
  t.equal(keyOf({ path: MESSAGES, body: messages, headers }), key, 'with the version header')
  const responses = {
    model: 'm',
    instructions: 'Be brief.',
    max_output_tokens: 100,
    temperature: 0.2,
    store: false,
    input: [
      { role: 'user', content: 'Weather?' },
      { role: 'assistant', content: [{ type: 'output_text', text: 'I look.' }] },
      { type: 'function_call', call_id: 'c', name: 'look', arguments: '{"city":"B"}' },
      { type: 'function_call_output', call_id: 'c', output: 'sun' },
    ],
    tools: [{ type: 'function', name: 'look', description: 'd', parameters: schema }],
  }
  t.equal(keyOf({ path: RESPONSES, body: responses }), key, 'Responses')
  const plain = {
    model: 'm',
    max_tokens: 50,
    temperature: 0.5,
    stop: ['X'],
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
    ],
  }
  const gemini = {
    system_instruction: { parts: [{ text: 'Be brief.' }] },
    contents: [{ role: 'user', parts: [{ text: 'Hi' }] }],
    generationConfig: { maxOutputTokens: 50, temperature: 0.5, stopSequences: ['X'] },
  }
  t.equal(keyOf({ path: GEMINI, body: gemini }), keyOf({ path: CHAT, body: plain }), 'Gemini')
  t.end()
})

void t.test('defaults that are written out count as absent', (t) => {
  const base = { model: 'm', messages: [{ role: 'user', content: 'Hi' }] }
  const key = keyOf({ path: CHAT, body: base })
  const written: JsonObject = {
    temperature: 1,
    top_p: 1,
    n: 1,
    frequency_penalty: 0,
    presence_penalty: 0,
    logprobs: false,
    response_format: { type: 'text' },
    service_tier: 'auto',
    verbosity: 'medium',
    parallel_tool_calls: true,
    modalities: ['text'],
    stop: [],
    tools: null,
  }
  for (const [name, value] of Object.entries(written)) {
    t.equal(keyOf({ path: CHAT, body: { ...base, [name]: value } }), key, name)
  }
  t.equal(keyOf({ path: CHAT, body: { ...base, ...written } }), key, 'all together')
  const auto = { ...chat, tool_choice: 'auto' }
  t.equal(keyOf({ path: CHAT, body: auto }), keyOf({ path: CHAT, body: chat }), 'tool_choice')
  t.end()
})

void t.test('streaming, marks and names of the end user have no influence', (t) => {
  const key = keyOf({ path: CHAT, body: chat })
  const ignored: JsonObject = {
    stream: true,
    user: 'u',
    metadata: { a: 'b' },
    safety_identifier: 's',
    prompt_cache_key: 'k',
    store: true,
  }
  for (const [name, value] of Object.entries(ignored)) {
    t.equal(keyOf({ path: CHAT, body: { ...chat, [name]: value } }), key, name)
  }
  const streamed = { ...chat, stream: true, stream_options: { include_usage: true } }
  t.equal(keyOf({ path: CHAT, body: streamed }), key, 'stream_options')
  t.end()
})

void t.test('model, its facts, route, prices and scope are parts of the key', (t) => {
  const keys = [
    keyOf({ path: CHAT, body: chat }),
    keyOf({ path: CHAT, body: { ...chat, model: 'n' } }),
    ...(['route', 'priceVersion', 'scopeId'] as const).map((name) =>
      keyOf({ path: CHAT, body: chat, parts: { [name]: 'other' } }),
    ),
    keyOf({ path: CHAT, body: chat, parts: { scope: 'key' } }),
    keyOf({ path: CHAT, body: chat, parts: { targetFacts: [{ ...FACTS, maxOutputTokens: 9 }] } }),
  ]
  t.equal(new Set(keys).size, keys.length)
  t.end()
})

void t.test('the content of a route is that of its upstreams, without credentials', (t) => {
  const loaded = loadConfig('config/gateway.yaml', { OPENAI_API_KEY: 'k' })
  if (!loaded.ok) throw new Error('the shipped configuration is not valid')
  const { routes, upstreams } = loaded.config
  const [route] = routes
  const target = route?.targets[0]
  const upstream = upstreams[target?.upstream ?? '']
  if (route === undefined || upstream === undefined) throw new Error('no route')
  const contentOf = (change: object): string =>
    routeContent(
      { ...route },
      { ...NONE, upstreams: { ...upstreams, [upstream.name]: { ...upstream, ...change } } },
    )
  const content = contentOf({})
  t.equal(contentOf({ apiKeys: ['other'], timeouts: {} }), content, 'credentials and timeouts')
  t.not(contentOf({ baseUrl: 'http://other' }), content, 'an address')
  t.not(contentOf({ allowBetas: ['one'] }), content, 'the beta features that reach it')
  t.not(contentOf({ models: [{ id: 'm', max_output_tokens: 9 }] }), content, 'facts of its models')
  t.not(routeContent({ ...route, sticky: 'key' }, { ...NONE, upstreams }), content, 'a setting of the route')
  t.end()
})

/** Concepts that do not change what the model writes, or that restate what the request has already. */
const WITHOUT_EFFECT =
  /`stream`|include_usage|`user`|metadata|`store`|safety_identifier|prompt_cache_key|`cache_control`|cache marks|disabled|effort`: none|AUTO|`tool_choice`: auto|as items/

void t.test('every other concept of a request changes the key', (t) => {
  const same: string[] = []
  const compare = (where: string, sent: Sent, changed: JsonObject, name: string): void => {
    const body = { ...sent.body, ...changed }
    try {
      if (keyOf({ ...sent, body }) === keyOf(sent)) same.push(`${where}: ${name}`)
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
    }
  }
  for (const { concepts } of REQUEST_GROUPS) {
    for (const { name, base, members } of concepts) {
      compare('chat', { path: CHAT, body: { model: 'm', ...PLAIN_REQUEST, ...base } }, members, name)
    }
  }
  for (const { path, plain, concepts } of CLIENTS) {
    const at = path.replace('{model}', 'm')
    for (const { name, base, members } of concepts) {
      compare(path, { path: at, body: { model: 'm', ...plain, ...base } }, members, name)
    }
  }
  t.same(
    same.filter((each) => !WITHOUT_EFFECT.test(each)),
    [],
  )
  t.end()
})

void t.test('members that the gateway does not know change the key, wherever they are', (t) => {
  const unchanged: string[] = []
  const visit = (value: unknown, path: string, keyNow: () => string): void => {
    if (typeof value !== 'object' || value === null) return
    for (const [name, member] of Object.entries(value)) visit(member, `${path}.${name}`, keyNow)
    if (Array.isArray(value)) return
    const object = value as Record<string, unknown>
    const before = keyNow()
    object['zzz'] = 'x'
    if (keyNow() === before) unchanged.push(path)
    delete object['zzz']
  }
  for (const [path, body] of [
    [CHAT, chat],
    [MESSAGES, messages],
  ] as const) {
    const copy = structuredClone(body)
    visit(copy, path, () => keyOf({ path, body: copy }))
  }
  t.same(unchanged, [])
  const named = { ...chat, messages: [{ role: 'user', content: 'Hi', name: 'ann' }] }
  const other = { ...chat, messages: [{ role: 'user', content: 'Hi', name: 'bob' }] }
  t.not(keyOf({ path: CHAT, body: named }), keyOf({ path: CHAT, body: other }), 'a speaker')
  t.end()
})

/** Places that do not change what the model writes, with the indices as 0. */
const WITHOUT_INFLUENCE = new RegExp(
  [
    '^(?:stream|stream_options|user|metadata|safety_identifier|prompt_cache_key|store|labels)\\b',
    '(?:^|\\.)(?:cache_control|prompt_cache_breakpoint)\\.',
    // Ids that each gateway and provider makes for itself; a choice of two types that providers accept alike.
    '^input\\.0\\.id$',
    '^input\\.0\\.summary\\.0\\.type$',
  ].join('|'),
)

/** Another value of the same type. */
function otherThan(value: JsonValue | undefined): JsonValue {
  if (typeof value === 'boolean') return !value
  if (typeof value === 'number') return value + 1
  return typeof value === 'string' ? `${value}zz` : 'zz'
}

/** The key; null if the request is refused, or continues a reply that the provider keeps. */
function keyOrNull(path: string, body: JsonObject): string | null {
  if ('previous_response_id' in body) return null
  try {
    return keyOf({ path, body })
  } catch (error) {
    if (error instanceof GatewayError) return null
    throw error
  }
}

/** Fails for each place whose value does not change the key; returns the number of places. */
function comparePlaces(t: Test, path: string, body: JsonObject): number {
  const key = keyOrNull(path, body)
  let places = 0
  if (key === null) return places
  for (const place of placesIn(body)) {
    const name = place.join('.').replaceAll(/\b\d+\b/g, '0')
    if (WITHOUT_INFLUENCE.test(name)) continue
    places += 1
    const other = keyOrNull(path, changed(body, place, otherThan(valueAt(body, place))))
    if (other === key) t.fail(`${path} ${name}`)
  }
  return places
}

void t.test('two bodies of one format with different values never share a key', (t) => {
  let places = 0
  for (const [path, body] of BODIES) places += comparePlaces(t, path, body)
  t.ok(places > 100, `${String(places)} places`)
  t.end()
})

void t.test('nor do the recorded requests', skipWithoutFixtures(), (t) => {
  let places = 0
  for (const { path, body } of ofToday(recordedRequests())) places += comparePlaces(t, path, body)
  t.ok(places > 10_000 * SHARE, `${String(places)} places`)
  t.end()
})

void t.test('a query that passes on, and another version of the format, have keys of their own', (t) => {
  const key = keyOf({ path: MESSAGES, body: messages })
  t.not(keyOf({ path: MESSAGES, body: messages, parts: { query: 'beta=true' } }), key)
  t.not(keyOf({ path: MESSAGES, body: messages, headers: { 'anthropic-version': '2026-10-21' } }), key)
  t.end()
})
