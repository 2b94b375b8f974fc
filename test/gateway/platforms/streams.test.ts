/**
 * Goal: the recorded traffic of Bedrock (InvokeModel with Claude), Vertex and Azure passes through every
 * client format, with any sizes of the chunks in which it arrives, and a cut stream is never complete.
 * Method: the recordings, or streams in their form, are replayed by a raw upstream behind a whole gateway.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { EventStreamCodec } from '@smithy/eventstream-codec'
import t, { type Test } from 'tap'
import type { RawUpstream } from '../../helpers/raw-upstream.js'
import type { TestGateway } from '../../helpers/gateway.js'
import { textUntilEnd } from '../../helpers/collect.js'
import { ofToday } from '../../helpers/long-suite.js'
import { AWS_AUTH, startCloud } from './capture.js'

const FIXTURES = '../shared/fixtures'
const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes).toString('utf8'),
  (text) => Buffer.from(text),
)

function frame(type: string, payload: object, messageType = 'event'): Buffer {
  const header = messageType === 'event' ? ':event-type' : ':exception-type'
  const text = (value: string) => ({ type: 'string' as const, value })
  const headers = {
    [header]: text(type),
    ':content-type': text('application/json'),
    ':message-type': text(messageType),
  }
  return Buffer.from(codec.encode({ headers, body: Buffer.from(JSON.stringify(payload)) }))
}

function chunk(event: object): Buffer {
  const bytes = Buffer.from(JSON.stringify(event)).toString('base64')
  return frame('chunk', { bytes, p: 'abcdefghijkl' })
}

const START = {
  type: 'message_start',
  message: {
    id: 'msg_bdrk_1',
    type: 'message',
    role: 'assistant',
    model: 'claude-sonnet-4-5-20250929',
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 10, output_tokens: 1 },
  },
}
const BLOCK = [
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Grüße' } },
]
const END = [
  { type: 'content_block_stop', index: 0 },
  {
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: { output_tokens: 5 },
  },
  {
    type: 'message_stop',
    'amazon-bedrock-invocationMetrics': { inputTokenCount: 10, outputTokenCount: 5 },
  },
]
const CLAUDE = Buffer.concat([START, ...BLOCK, ...END].map(chunk))
const TYPE = 'application/vnd.amazon.eventstream'

/** A streamed request in each client format; the reply as text. */
const CLIENTS: Readonly<Record<string, (gateway: TestGateway, model: string) => Promise<Response>>> = {
  chat: (gateway, model) => gateway.chat({ model, stream: true, messages: [user('Hi')] }),
  messages: (gateway, model) =>
    post(gateway, '/v1/messages', {
      model,
      max_tokens: 100,
      stream: true,
      messages: [user('Hi')],
    }),
  responses: (gateway, model) => post(gateway, '/v1/responses', { model, input: 'Hi', stream: true }),
  gemini: (gateway, model) =>
    post(gateway, `/v1beta/models/${encodeURIComponent(model)}:streamGenerateContent?alt=sse`, {
      contents: [{ role: 'user', parts: [{ text: 'Hi' }] }],
    }),
}

function user(content: string): object {
  return { role: 'user', content }
}

function post({ origin, secret }: TestGateway, path: string, body: object): Promise<Response> {
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
  return fetch(origin + path, { method: 'POST', headers, body: JSON.stringify(body) })
}

const MODEL = 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0'

async function bedrock(t: Test): Promise<{ cloud: RawUpstream; gateway: TestGateway }> {
  const settings = `platform: bedrock, dialect: anthropic, region: eu-west-1, auth: ${AWS_AUTH}`
  const { cloud, gateway } = await startCloud(t, 'eu.anthropic.', settings)
  return { cloud, gateway }
}

function chunksAt(bytes: Buffer, at: number): Buffer[] {
  return [bytes.subarray(0, at), bytes.subarray(at)].filter(({ length }) => length > 0)
}

void t.test('InvokeModel: every client format gets the same text', async (t) => {
  const { cloud, gateway } = await bedrock(t)
  const whole = new Map<string, string>()
  for (const [format, ask] of Object.entries(CLIENTS)) {
    for (const size of [CLAUDE.length, 1, 300]) {
      const chunks: Buffer[] = []
      for (let at = 0; at < CLAUDE.length; at += size) chunks.push(CLAUDE.subarray(at, at + size))
      cloud.answer = () => ({ type: TYPE, chunks: size === 1 ? chunksAt(CLAUDE, 150) : chunks })
      const reply = await ask(gateway, MODEL)
      t.equal(reply.status, 200, format)
      const text = (await textUntilEnd(reply)).replace(
        /"(?:id|created|created_at|item_id|responseId)":[^,}]+/g,
        '',
      )
      t.match(text, /Grüße/, format)
      t.notMatch(text, /invocationMetrics/)
      const normal = text.replace(/(?:msg|resp|req|chatcmpl|rs|fc)_?-?[0-9A-Za-z_]{8,}/g, 'ID')
      // Gemini's format joins fragments that arrive together.
      if (format !== 'gemini') t.equal(whole.get(format) ?? normal, normal, `${format} in chunks of ${size}`)
      whole.set(format, normal)
    }
  }
  t.equal(
    (
      await post(gateway, '/v1/messages', {
        model: MODEL,
        max_tokens: 9,
        stream: true,
        messages: [user('Hi')],
      })
    ).headers
      .get('content-type')
      ?.startsWith('text/event-stream'),
    true,
  )
})

void t.test('InvokeModel: split at every byte boundary', async (t) => {
  const { cloud, gateway } = await bedrock(t)
  const sent = [START, ...BLOCK, ...END].map(chunk)
  const bytes = Buffer.concat(sent)
  // Whole requests are slow, so that each one checks many boundaries: chunks of a prime number of bytes.
  for (const size of [2, 3, 5, 11, 13, 17, 61]) {
    const chunks: Buffer[] = []
    for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size))
    cloud.answer = () => ({
      type: TYPE,
      chunks: [Buffer.concat(chunks.slice(0, 40)), ...chunks.slice(40, 60), Buffer.concat(chunks.slice(60))],
    })
    const reply = await gateway.chat({ model: MODEL, stream: true, messages: [user('Hi')] })
    const text = await textUntilEnd(reply)
    t.match(text, /Grüße/)
    t.match(text, /data: \[DONE\]/)
  }
})

void t.test('InvokeModel: a cut stream, a wrong checksum and exceptions are failures', async (t) => {
  const { cloud, gateway } = await bedrock(t)
  const damaged = Buffer.from(CLAUDE)
  damaged.writeUInt8(damaged.readUInt8(damaged.length - 40) ^ 1, damaged.length - 40)
  const begun = Buffer.concat([START, ...BLOCK].map(chunk))
  const throttled = frame('throttlingException', { message: 'Too many tokens' }, 'exception')
  const cases: [string, Buffer, RegExp][] = [
    [
      'without message_stop',
      Buffer.concat([START, ...BLOCK, ...END.slice(0, 2)].map(chunk)),
      /upstream_truncated/,
    ],
    ['within a frame', CLAUDE.subarray(0, CLAUDE.length - 5), /upstream_truncated/],
    ['a wrong checksum', damaged, /upstream_malformed/],
    ['an exception', Buffer.concat([begun, throttled]), /upstream_busy/],
  ]
  for (const [name, bytes, error] of cases) {
    cloud.answer = () => ({ type: TYPE, chunks: [bytes] })
    const reply = await gateway.chat({ model: MODEL, stream: true, messages: [user('Hi')] })
    const text = await textUntilEnd(reply)
    t.match(text, error, name)
    t.notMatch(text, /\[DONE\]/, name)
  }
  cloud.answer = () => ({ type: TYPE, chunks: [throttled] })
  const early = await gateway.chat({ model: MODEL, stream: true, messages: [user('Hi')] })
  t.equal(early.status, 429, 'before the first content it has a status')
  cloud.answer = () => ({
    type: 'application/json',
    chunks: ['{"Output":{"__type":"com.amazon.coral.service#UnknownOperationException"},"Version":"1.0"}'],
  })
  for (const body of [
    { model: MODEL, messages: [user('Hi')] },
    { model: MODEL, messages: [user('Hi')], stream: true },
  ]) {
    const reply = await gateway.chat(body)
    t.equal(reply.status, 502, 'a 200 with UnknownOperationException')
  }
  const own = await post(gateway, '/v1/messages', {
    model: MODEL,
    max_tokens: 9,
    messages: [user('Hi')],
  })
  t.equal(own.status, 502, 'also for a client of the same format')
})

/** Whether it is a complete reply; some recordings are errors, failures of the model, or were cut. */
function isGood({ status, response_body: body }: Fixture): boolean {
  if (status !== 200 || /^\s*\{\s*"error"/.test(body)) return false
  return (
    !/UNEXPECTED_TOOL_CALL|MALFORMED_FUNCTION_CALL/.test(body) &&
    !/^data:(?!.*finishReason).*candidates/s.test(body)
  )
}

interface Fixture {
  readonly url: string
  readonly model?: string
  readonly stream?: boolean
  readonly status: number
  readonly response_headers: Readonly<Record<string, string>>
  readonly response_body: string
  readonly response_body_form?: string
}

function fixtures(folder: string): [string, Fixture][] {
  const path = join(FIXTURES, folder)
  if (!existsSync(path)) return []
  return readdirSync(path)
    .filter((name) => name.endsWith('.json'))
    .map((name) => [name, JSON.parse(readFileSync(join(path, name), 'utf8')) as Fixture])
}

const REPLAYED: readonly (readonly [folder: string, path: RegExp, settings: string, model: string])[] = [
  [
    'vertex-gemini',
    /enerateContent/,
    'platform: vertex, dialect: gemini, project: p, location: global, api_key: k',
    'gemini-on-cloud',
  ],
  ['azure', /\/chat\/completions/, 'platform: azure, dialect: openai-chat, api_key: k', 'gpt-on-cloud'],
  ['azure', /\/responses/, 'platform: azure, dialect: openai-responses, api_key: k', 'gpt-on-cloud'],
]

for (const [folder, path, settings, model] of REPLAYED) {
  const recorded = fixtures(folder).filter(([, { url }]) => path.test(url))
  void t.test(`recordings of ${folder} ${path.source}`, { skip: recorded.length === 0 }, async (t) => {
    const { cloud, gateway } = await startCloud(t, model, settings)
    for (const [name, fixture] of ofToday(recorded, 3)) {
      const isStream = fixture.stream === true || fixture.response_body.startsWith('data:')
      cloud.answer = () => ({
        status: fixture.status,
        type: fixture.response_headers['content-type'] ?? usualType(isStream),
        chunks: [fixture.response_body],
      })
      for (const [format, ask] of Object.entries(isStream ? CLIENTS : WHOLE)) {
        const reply = await ask(gateway, model)
        const text = await textUntilEnd(reply)
        const isExpected = isGood(fixture) ? reply.status === 200 : reply.status >= 200
        t.ok(
          isExpected,
          `${name} as ${format}: ${fixture.status} became ${reply.status} ${text.slice(0, 300)}`,
        )
        t.notMatch(text, /"kind":"bug"|upstream_malformed/, name)
      }
    }
  })
}

function usualType(isStream: boolean): string {
  return isStream ? 'text/event-stream' : 'application/json'
}

/** The same for whole replies. */
const WHOLE: typeof CLIENTS = {
  chat: (gateway, model) => gateway.chat({ model, messages: [user('Hi')] }),
  messages: (gateway, model) =>
    post(gateway, '/v1/messages', { model, max_tokens: 100, messages: [user('Hi')] }),
  responses: (gateway, model) => post(gateway, '/v1/responses', { model, input: 'Hi' }),
  gemini: (gateway, model) =>
    post(gateway, `/v1beta/models/${model}:generateContent`, {
      contents: [{ role: 'user', parts: [{ text: 'Hi' }] }],
    }),
}

void t.test('recordings of Claude on Bedrock', { skip: !existsSync(FIXTURES) }, async (t) => {
  const { cloud, gateway } = await bedrock(t)
  const recorded = fixtures('bedrock').filter(
    ([, { url }]) => /anthropic\.claude-(?!v|instant)/.test(url) && /\/invoke/.test(url),
  )
  t.ok(recorded.length > 3, `${recorded.length} recordings`)
  for (const [name, fixture] of recorded) {
    const isStream = fixture.url.includes('with-response-stream')
    const type = fixture.response_headers['content-type'] ?? (isStream ? TYPE : 'application/json')
    const body = bytesOf(fixture)
    cloud.answer = () => ({ status: fixture.status, type, chunks: chunksAt(body, 13) })
    for (const [format, ask] of Object.entries(isStream ? CLIENTS : WHOLE)) {
      const reply = await ask(gateway, MODEL)
      const text = await textUntilEnd(reply)
      const isExpected = isGood(fixture) ? reply.status === 200 : reply.status >= 200
      t.ok(isExpected, `${name} as ${format}: ${fixture.status} became ${reply.status} ${text.slice(0, 200)}`)
    }
  }
})

/** The body of a recording, which is base64 if it is binary. */
function bytesOf({ response_body: body, response_body_form: form }: Fixture): Buffer {
  return Buffer.from(body, form === 'base64' ? 'base64' : 'utf8')
}
