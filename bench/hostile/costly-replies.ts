/**
 * Builds replies of upstreams with maximum processing cost, whole ones and streams, at the accepted limits
 * and far beyond them.
 */
import type { OutgoingHttpHeaders } from 'node:http'

const MIB = 1024 * 1024
/** Just below the size limit of a whole reply, and half of it, which takes half the time. */
const WHOLE = 60 * MIB
const HALF = 30 * MIB
/** Just below the size limit of an event. */
const EVENT = 15 * MIB

/** What the test expects for the client. */
export type Expected =
  /** The upstream's own bytes. */
  | 'passed'
  /** A reply in the client's format. */
  | 'translated'
  /** A 502 that names the limit, or an error event after content. */
  | 'refused'

/** The client's endpoints, by the format of the client. */
export const CLIENTS = {
  chat: { path: '/v1/chat/completions', more: {} },
  messages: { path: '/v1/messages', more: { max_tokens: 1000 } },
  gemini: {
    path: '/v1beta/models/gpt-4o:generateContent',
    more: { contents: [{ role: 'user', parts: [{ text: 'Hi.' }] }] },
  },
  embeddings: { path: '/v1/embeddings', more: {} },
} as const

/** A reply of an upstream of OpenAI's chat format, or of Claude's. */
export interface CostlyReply {
  readonly name: string
  readonly model: string
  readonly client: keyof typeof CLIENTS
  /** Members of the client's request. */
  readonly fields?: Readonly<Record<string, unknown>>
  readonly expected: Expected
  /** The output tokens that the ledger has afterwards. */
  readonly output: number | null
  readonly headers: OutgoingHttpHeaders
  readonly body: () => string
}

const JSON_TYPE = { 'content-type': 'application/json' }
const EVENTS_TYPE = { 'content-type': 'text/event-stream' }
const USAGE = '"usage":{"prompt_tokens":7,"completion_tokens":1234,"total_tokens":1241}'

/** `unit` repeated up to `bytes` bytes. */
function fill(unit: string, bytes: number): string {
  return unit.repeat(Math.floor(bytes / Buffer.byteLength(unit)))
}

function many<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index))
}

/** A chat completion whose `members` are JSON text between the choices and the usage. */
function chat(content: string, members = ''): string {
  const choice = `{"index":0,"message":{"role":"assistant","content":"${content}"${members}},"finish_reason":"stop"}`
  return `{"id":"c","object":"chat.completion","created":1,"model":"gpt-4o","choices":[${choice}],${USAGE}}`
}

/** A chat completion with an unknown member of this JSON text before its usage. */
function padded(padding: string): string {
  return chat('Hi.').replace(`,${USAGE}`, () => `,"unknown":${padding},${USAGE}`)
}

function logprobs(choices: number, tokens: number): string {
  const alternatives = many(20, (at) => ({
    token: ` w${at}`,
    logprob: -at - 0.25,
    bytes: [32, 97],
  }))
  const token = { token: ' w0', logprob: -0.25, bytes: [32, 97], top_logprobs: alternatives }
  const content = JSON.stringify(many(tokens, () => token))
  const each = (index: number): string =>
    `{"index":${index},"message":{"role":"assistant","content":"${fill(' w0', 3 * tokens)}"},` +
    `"logprobs":{"content":${content},"refusal":null},"finish_reason":"stop"}`
  return `{"id":"c","object":"chat.completion","created":1,"model":"gpt-4o","choices":[${many(choices, each).join()}],${USAGE}}`
}

/** A stream with a first content, this JSON text in a member of the next event, and its end. */
function events(padding: string): string {
  const chunk = (delta: string, more = ''): string =>
    `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[{"index":0,"delta":${delta},"finish_reason":null}]${more}}\n\n`
  return (
    `${chunk('{"role":"assistant","content":"Hi"}')}${chunk('{"content":"."}', `,"unknown":${padding}`)}` +
    `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n` +
    `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[],${USAGE}}\n\ndata: [DONE]\n\n`
  )
}

function lists(bytes: number): string {
  return `[${fill('[],', bytes)}0]`
}

function nested(bytes: number): string {
  return '['.repeat(bytes / 2) + ']'.repeat(bytes / 2)
}

const PADDINGS: Readonly<Record<string, (bytes: number) => string>> = {
  'empty lists': lists,
  'nested lists': nested,
  'different names': (bytes) => `{${many(bytes / 14, (at) => `"k${at + 1e7}":0`).join()}}`,
  'escaped quotes': (bytes) => `"${fill('\\"', bytes)}"`,
  'Cyrillic text': (bytes) => `"${fill('я', bytes)}"`,
  numbers: (bytes) => `[${fill('0.123456789,', bytes)}0]`,
}

/** The costly replies, of which the client gets the same, a translated or no reply. */
export const COSTLY_REPLIES: readonly CostlyReply[] = [
  {
    name: '128 choices with 20 logprobs for each of 100 tokens',
    model: 'gpt-4o',
    client: 'chat',
    fields: { n: 128, logprobs: true, top_logprobs: 20 },
    expected: 'passed',
    output: 1234,
    headers: JSON_TYPE,
    body: () => logprobs(128, 100),
  },
  ...Object.entries(PADDINGS).flatMap(([name, padding]): CostlyReply[] => {
    const size = name === 'nested lists' ? WHOLE : HALF
    const body = (): string => padded(padding(size))
    const stream = (): string => events(padding(EVENT))
    const common = { model: 'gpt-4o', output: 1234 }
    return [
      {
        ...common,
        ...{
          name: `${size / MIB} MiB of ${name}, the same format`,
          client: 'chat',
          expected: 'passed',
        },
        ...{ headers: JSON_TYPE, body },
      },
      {
        ...common,
        ...{
          name: `${size / MIB} MiB of ${name}, another format`,
          client: 'messages',
          expected: 'refused',
        },
        ...{ headers: JSON_TYPE, body },
      },
      {
        ...common,
        ...{ name: `an event of 15 MiB of ${name}, the same format`, client: 'chat' },
        ...{
          expected: 'passed',
          fields: { stream: true, stream_options: { include_usage: true } },
        },
        ...{ headers: EVENTS_TYPE, body: stream },
      },
      {
        ...common,
        ...{ name: `an event of 15 MiB of ${name}, another format`, client: 'messages' },
        ...{ expected: 'refused', output: null, fields: { stream: true } },
        ...{ headers: EVENTS_TYPE, body: stream },
      },
    ]
  }),
  {
    name: '2 MB of text with escapes, another format',
    model: 'gpt-4o',
    client: 'messages',
    expected: 'translated',
    output: 1234,
    headers: JSON_TYPE,
    body: () => chat(fill('\\"я', 2_000_000)),
  },
  {
    name: 'an event of 2 MB of text with escapes, another format',
    model: 'gpt-4o',
    client: 'messages',
    fields: { stream: true },
    expected: 'translated',
    output: 1234,
    headers: EVENTS_TYPE,
    body: () => events(`0,"choices":[{"index":0,"delta":{"content":"${fill('\\"я', 2_000_000)}"}}]`),
  },
  {
    name: '130,000 tokens and 1,000 calls, another format',
    model: 'gpt-4o',
    client: 'messages',
    fields: { tools: [{ name: 'look', input_schema: { type: 'object' } }] },
    expected: 'translated',
    output: 1234,
    headers: JSON_TYPE,
    body: () => {
      const json = JSON.stringify(`{"at":[${fill('[12345678901234567890,{"b":1}],', 1_000)}0]}`)
      const call = (at: number): string =>
        `{"id":"call_${at}","type":"function","function":{"name":"look","arguments":${json}}}`
      const calls = `,"tool_calls":[${many(1_000, call).join()}]`
      return chat('Hi.', `${calls},"unknown":[${fill('[12345678901234567890],', 700_000)}0]`)
    },
  },
  {
    name: 'an image of 12 MB, another format',
    model: 'gpt-4o',
    client: 'gemini',
    expected: 'translated',
    output: 1234,
    headers: JSON_TYPE,
    body: () => {
      const url = `data:image/png;base64,${'A'.repeat(12_000_000)}`
      return chat('Hi.', `,"images":[{"type":"image_url","image_url":{"url":"${url}"}}]`)
    },
  },
  {
    name: '24 MiB of embeddings',
    model: 'text-embedding-3-small',
    client: 'embeddings',
    fields: { input: many(1_000, () => 'Hi') },
    expected: 'passed',
    output: 0,
    headers: JSON_TYPE,
    body: () => {
      const vector = (index: number): string =>
        `{"object":"embedding","index":${index},"embedding":[${fill('-0.012345,', 25_000)}0]}`
      return `{"object":"list","data":[${many(1_000, vector).join()}],"model":"text-embedding-3-small","usage":{"prompt_tokens":7,"total_tokens":7}}`
    },
  },
]

/** The body of a client's request for the reply; `model` replaces that of the reply. */
export function requestFor({ client, model, fields }: CostlyReply, other = model): string {
  const { more } = CLIENTS[client]
  const isChat = client === 'chat' || client === 'messages'
  const named = client === 'gemini' ? {} : { model: other }
  const messages = isChat ? { messages: [{ role: 'user', content: 'Hi.' }] } : {}
  return JSON.stringify({ ...named, ...messages, ...more, ...fields })
}
