/**
 * Goal: emulated replies have the shape of recorded ones, so that a client that works here works with the
 * providers.
 * Method: key sets, event order, framing and headers compared with recordings of all three providers.
 */
import t from 'tap'
import { arrayOf, isObject, objectOf, stringOf } from '../../src/base/json.js'
import { eventsOf } from '../helpers/collect.js'
import { fixtures, skipWithoutFixtures } from '../helpers/fixtures.js'
import { startUpstream } from '../helpers/upstream.js'
import type { JsonObject } from '../../src/base/json.js'
import type { Recording } from '../helpers/fixtures.js'
import type { Emulator } from '../../src/emulator/server.js'

const PROMPT = 'Tell me about get_weather in Paris'
const SCHEMA = { type: 'object', properties: { city: { type: 'string' } } }

interface Received {
  readonly headers: Headers
  readonly text: string
}

async function send(url: string, headers: Record<string, string>, body: object): Promise<Received> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  return { headers: response.headers, text: await response.text() }
}

function openAi({ baseUrls }: Emulator, body: object): Promise<Received> {
  const messages = [{ role: 'user', content: PROMPT }]
  const headers = { authorization: 'Bearer key' }
  const url = `${baseUrls.openai}/chat/completions`
  return send(url, headers, { model: 'gpt-4o-mini', messages, ...body })
}

function claude({ baseUrls }: Emulator, body: object): Promise<Received> {
  const messages = [{ role: 'user', content: PROMPT }]
  const headers = { 'x-api-key': 'key', 'anthropic-version': '2023-06-01' }
  const url = `${baseUrls.anthropic}/messages`
  return send(url, headers, { model: 'claude-sonnet-4-6', max_tokens: 4096, messages, ...body })
}

function gemini({ baseUrls }: Emulator, method: string, body: object): Promise<Received> {
  const contents = [{ role: 'user', parts: [{ text: PROMPT }] }]
  const url = `${baseUrls.gemini}/models/gemini-2.5-flash:${method}`
  return send(url, { 'x-goog-api-key': 'key' }, { contents, ...body })
}

/** Every path of keys in a value, array positions as `[]`. Arguments of tools are not compared. */
function paths(value: unknown, at = ''): string[] {
  if (Array.isArray(value)) {
    return value.flatMap((item) => paths(item, `${at}[]`))
  }
  if (!isObject(value)) {
    return []
  }
  return Object.entries(value).flatMap(([key, inner]) => {
    const path = `${at}.${key}`
    return key === 'args' || key === 'input' ? [path] : [path, ...paths(inner, path)]
  })
}

function pathsIn(bodies: readonly string[]): Set<string> {
  return new Set(bodies.flatMap((body) => paths(JSON.parse(body))))
}

function dataOf(text: string): string[] {
  return eventsOf(text)
    .map(({ data }) => data)
    .filter((data) => data !== '[DONE]')
}

function headerNames(recordings: readonly Recording[]): Set<string> {
  return new Set(recordings.flatMap(({ response_headers }) => Object.keys(response_headers)))
}

/** Headers that Node's server adds, and the one with the account. */
const OWN = ['connection', 'keep-alive', 'date', 'openai-organization', 'anthropic-organization-id']

function strangeHeaders(received: Received, recordings: readonly Recording[]): string[] {
  const known = headerNames(recordings)
  return [...received.headers.keys()].filter((name) => !known.has(name) && !OWN.includes(name))
}

void t.test('OpenAI: whole replies have only recorded fields', skipWithoutFixtures(), async (t) => {
  const emulator = await startUpstream(t)
  const recordings = fixtures({
    provider: 'openai',
    api: 'chat.completions',
    stream: false,
    status: 200,
  })
  t.ok(recordings.length > 50)
  const known = pathsIn(recordings.map(({ response_body }) => response_body))
  const tools = [{ type: 'function', function: { name: 'get_weather', parameters: SCHEMA } }]
  for (const body of [{}, { tools }]) {
    const received = await openAi(emulator, body)
    t.same(
      [...pathsIn([received.text])].filter((path) => !known.has(path)),
      [],
    )
    t.same(strangeHeaders(received, recordings), [])
    t.equal(received.headers.get('content-type'), 'application/json')
    t.match(received.text, /^\{\n {2}"id": "chatcmpl-/, 'printed over several lines')
  }
})

void t.test('OpenAI: streams have recorded fields, order and framing', skipWithoutFixtures(), async (t) => {
  const emulator = await startUpstream(t)
  const recordings = fixtures({
    provider: 'openai',
    api: 'chat.completions',
    stream: true,
    raw: true,
  })
  const known = pathsIn(recordings.flatMap(({ response_body }) => dataOf(response_body)))
  const tools = [{ type: 'function', function: { name: 'get_weather', parameters: SCHEMA } }]
  for (const body of [{}, { tools }, { stream_options: { include_usage: true } }]) {
    const received = await openAi(emulator, { stream: true, ...body })
    const chunks = dataOf(received.text)
    t.same(
      [...pathsIn(chunks)].filter((path) => !known.has(path)),
      [],
    )
    t.same(strangeHeaders(received, recordings), [])
    t.equal(received.headers.get('content-type'), 'text/event-stream; charset=utf-8')
    t.notMatch(received.text, /\r/, 'LF only')
    t.ok(received.text.endsWith('\n\ndata: [DONE]\n\n'))
    const keys = chunks.map((chunk) => Object.keys(objectOf(JSON.parse(chunk))).join())
    const recorded = new Set(
      recordings.flatMap(({ response_body }) =>
        dataOf(response_body).map((chunk) => Object.keys(objectOf(JSON.parse(chunk))).join()),
      ),
    )
    t.same(
      [...new Set(keys)].filter((key) => !recorded.has(key)),
      [],
      'the very key order of recorded chunks',
    )
  }
})

/** The types of events in order; consecutive deltas count as one. */
function grammar(text: string): string {
  const kinds = eventsOf(text).map(({ name, data }) => {
    const delta = objectOf(objectOf(JSON.parse(data)).delta)
    return name === 'content_block_delta' ? `delta:${stringOf(delta.type) ?? ''}` : name
  })
  return kinds.filter((kind, index) => kind !== kinds[index - 1]).join(' ')
}

const CLAUDE_TOOLS = [{ name: 'get_weather', input_schema: SCHEMA }]
const THINKING = { type: 'enabled', budget_tokens: 1024 }

void t.test('Anthropic: whole replies hold only recorded fields', skipWithoutFixtures(), async (t) => {
  const emulator = await startUpstream(t)
  const recordings = fixtures({
    provider: 'anthropic',
    api: 'messages',
    stream: false,
    status: 200,
  })
  const known = pathsIn(recordings.map(({ response_body }) => response_body))
  for (const body of [{}, { tools: CLAUDE_TOOLS }, { thinking: THINKING }]) {
    const received = await claude(emulator, body)
    t.same(
      [...pathsIn([received.text])].filter((path) => !known.has(path)),
      [],
    )
    t.same(strangeHeaders(received, recordings), [])
    t.match(JSON.parse(received.text), {
      id: /^msg_01\w{22}$/,
      type: 'message',
      role: 'assistant',
    })
  }
})

void t.test(
  'Anthropic: streams have recorded fields, order and framing',
  skipWithoutFixtures(),
  async (t) => {
    const emulator = await startUpstream(t)
    const recordings = fixtures({ provider: 'anthropic', api: 'messages', stream: true, raw: true })
    const known = pathsIn(recordings.flatMap(({ response_body }) => dataOf(response_body)))
    const grammars = new Set(recordings.map(({ response_body }) => grammar(response_body)))
    for (const body of [{}, { tools: CLAUDE_TOOLS }, { thinking: THINKING }]) {
      const received = await claude(emulator, { stream: true, ...body })
      t.same(
        [...pathsIn(dataOf(received.text))].filter((path) => !known.has(path)),
        [],
      )
      t.ok(grammars.has(grammar(received.text)), `recorded too: ${grammar(received.text)}`)
      t.same(strangeHeaders(received, recordings), [])
      t.notMatch(received.text, /\r/, 'LF only')
      t.match(received.text, /\S {1,15}\}\n\n/, 'some events are padded inside the JSON')
      t.match(received.text, /content_block_start\ndata: [^\n]*\n\nevent: ping\ndata: \{"type": "ping"\}\n\n/)
      const last = eventsOf(received.text).map(({ data }) => objectOf(JSON.parse(data)))
      const start = objectOf(objectOf(last[0]?.message).usage)
      const end = objectOf(last.find(({ type }) => type === 'message_delta')?.usage)
      t.equal(end.input_tokens, start.input_tokens)
      t.ok(Number(end.output_tokens) >= Number(start.output_tokens), 'output is cumulative')
    }
  },
)

const GEMINI_TOOLS = [{ functionDeclarations: [{ name: 'get_weather', parameters: SCHEMA }] }]
const THOUGHTS = { generationConfig: { thinkingConfig: { includeThoughts: true } } }

void t.test('Gemini: whole replies have only recorded fields', skipWithoutFixtures(), async (t) => {
  const emulator = await startUpstream(t)
  const recordings = fixtures({ provider: 'gemini', api: 'generateContent', status: 200 })
  const known = pathsIn(recordings.map(({ response_body }) => response_body))
  for (const body of [{}, { tools: GEMINI_TOOLS }, THOUGHTS]) {
    const received = await gemini(emulator, 'generateContent', body)
    t.same(
      [...pathsIn([received.text])].filter((path) => !known.has(path)),
      [],
    )
    t.same(strangeHeaders(received, recordings), [])
    t.equal(received.headers.get('content-type'), 'application/json; charset=UTF-8')
  }
})

void t.test(
  'Gemini: streams have recorded fields and CRLF, with usage in every chunk',
  skipWithoutFixtures(),
  async (t) => {
    const emulator = await startUpstream(t)
    const recordings = fixtures({ provider: 'gemini', api: 'streamGenerateContent', status: 200 })
    const known = pathsIn(
      recordings.flatMap(({ response_body }) =>
        response_body.startsWith('[')
          ? arrayOf(JSON.parse(response_body)).map((chunk) => JSON.stringify(chunk))
          : dataOf(response_body),
      ),
    )
    for (const body of [{}, { tools: GEMINI_TOOLS }, THOUGHTS]) {
      const received = await gemini(emulator, 'streamGenerateContent?alt=sse', body)
      const chunks = dataOf(received.text).map((data): JsonObject => objectOf(JSON.parse(data)))
      t.same(
        paths(chunks, '').filter((path) => !known.has(path.replace(/^\[\]/, ''))),
        [],
      )
      t.equal(received.text.split('\r\n\r\n').length, chunks.length + 1, 'CRLF between events')
      t.notMatch(received.text.replace(/\r\n/g, ''), /[\r\n]/)
      t.ok(chunks.every((chunk) => isObject(chunk.usageMetadata)))
      const finishes = chunks.map((chunk) => objectOf(arrayOf(chunk.candidates)[0]).finishReason)
      t.equal(finishes.at(-1), 'STOP')
      t.ok(finishes.slice(0, -1).every((finish) => finish === undefined))
      t.same(strangeHeaders(received, recordings), [])
      const array = await gemini(emulator, 'streamGenerateContent', body)
      t.match(array.text, /^\[\{[\s\S]*\n\]$/)
      t.same(JSON.parse(array.text), chunks, 'without alt=sse the same chunks come as an array')
    }
  },
)
