/**
 * A gateway over an upstream whose replies, in every format, report tools that the provider ran; and requests
 * with such tools.
 */
import type { Test } from 'tap'
import { findAccount } from '../../src/accounts/changes/change-accounts.js'
import { createKey } from '../helpers/keys.js'
import { type NewKeySettings } from '../helpers/keys.js'
import { loadConfig } from '../../src/config/load-config.js'
import { openStore } from '../../src/store/open-store.js'
import { startGateway, type GatewaySettings, type TestGateway } from '../helpers/gateway.js'
import { startRawUpstream, type Canned, type RawUpstream } from '../helpers/raw-upstream.js'

export const JSON_TYPE = 'application/json'
const SSE = 'text/event-stream'
export const BUDGET = { limits: { nanoUsdPerDay: 100e9 } }

export interface Setup {
  readonly gateway: TestGateway
  readonly upstream: RawUpstream
  /** The secret of a new key. */
  readonly key: (settings?: NewKeySettings) => Promise<string>
  /** The status and the error of a request. */
  readonly ask: (secret: string, request: Asked) => Promise<Asked & Answer>
}

export interface Asked {
  readonly path: string
  readonly body: object
}

interface Answer {
  readonly status: number
  readonly text: string
  readonly kind: string
  readonly param: unknown
}

export async function setUp(t: Test, settings: GatewaySettings = {}): Promise<Setup> {
  const upstream = await startRawUpstream(t, ({ url, body }) => replyTo(url, body))
  const { origin } = upstream
  const upstreams = {
    openai: `${origin}/v1`,
    anthropic: `${origin}/v1`,
    gemini: `${origin}/v1beta`,
  }
  const gateway = await startGateway(t, {
    upstreams,
    upstreamOptions: 'native_sharing: shared',
    ...settings,
  })
  const loaded = loadConfig(gateway.configFile, process.env)
  if (!loaded.ok) throw new Error('the file does not load')
  const { config } = loaded
  return {
    gateway,
    upstream,
    async key(keySettings = {}) {
      const store = await openStore(config.store)
      try {
        const account = await findAccount(store, 'test@example.com')
        if (account === null) throw new Error('no account')
        const { plans } = config
        return (await createKey(store, { plans, account, name: 'key', ...keySettings })).secret
      } finally {
        await store.close()
      }
    },
    async ask(secret, { path, body }) {
      const res = await fetch(gateway.origin + path, {
        method: 'POST',
        body: JSON.stringify(body),
        headers: { authorization: `Bearer ${secret}`, 'content-type': JSON_TYPE },
      })
      const text = await res.text()
      const { kind, param } = errorIn(text)
      return { path, body, status: res.status, text, kind, param }
    },
  }
}

function errorIn(text: string): { kind: string; param: unknown } {
  const [, kind = ''] = /"kind":"(\w+)"/.exec(text) ?? []
  const [, param] = /"param":"([^"]*)"/.exec(text) ?? []
  return { kind, param }
}

const CALL_ITEMS = [
  { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search' } },
  { type: 'web_search_call', id: 'ws_2', status: 'completed', action: { type: 'open_page' } },
  { type: 'web_search_call', id: 'ws_3', status: 'completed', action: { type: 'search' } },
]
export const MESSAGE = {
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: 'Found.', annotations: [] }],
}
const CITATION = {
  type: 'url_citation',
  url_citation: { url: 'https://example.com/', title: 'A', start_index: 0, end_index: 5 },
}
const GROUNDING = {
  webSearchQueries: ['one', 'two'],
  groundingChunks: [{ web: { uri: 'https://example.com/', title: 'A' } }],
}

/** A reply with two searches of the web (one in chat completions), 100 prompt tokens and 10 reply tokens. */
function replyTo(url: string, bytes: Buffer): Canned {
  const body = JSON.parse(bytes.toString()) as { model?: string; stream?: boolean }
  const isStream = body.stream === true || url.includes(':streamGenerateContent')
  const events = isStream ? streamOf(url, body.model ?? '') : null
  if (events !== null) return { type: SSE, chunks: events }
  return { type: JSON_TYPE, chunks: [JSON.stringify(wholeOf(url, body.model ?? ''))] }
}

export function wholeOf(url: string, model: string): object {
  if (url.includes('/chat/completions')) {
    const message = { role: 'assistant', content: 'Found.', annotations: [CITATION] }
    const choices = [{ index: 0, message, finish_reason: 'stop' }]
    const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 }
    return { id: 'c', object: 'chat.completion', created: 1, model, choices, usage }
  }
  if (url.includes('/responses')) return response(model)
  if (url.includes('/messages')) return { ...message(model), ...END, usage: USAGE }
  return chunk({ groundingMetadata: GROUNDING, finishReason: 'STOP' })
}

export function response(model: string): object {
  return {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    status: 'completed',
    model,
    output: [...CALL_ITEMS, MESSAGE],
    usage: { input_tokens: 100, output_tokens: 10, total_tokens: 110 },
  }
}

const USAGE = {
  input_tokens: 100,
  output_tokens: 10,
  server_tool_use: { web_search_requests: 2, web_fetch_requests: 3 },
}
const END = { stop_reason: 'end_turn', stop_sequence: null }

function message(model: string): object {
  const content = [{ type: 'text', text: 'Found.' }]
  return { id: 'msg_1', type: 'message', role: 'assistant', model, content }
}

function chunk(candidate: object): object {
  const content = { role: 'model', parts: [{ text: 'Found.' }] }
  return {
    candidates: [{ index: 0, content, ...candidate }],
    usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 10, totalTokenCount: 110 },
    modelVersion: 'gemini-3.5-flash',
    responseId: 'r',
  }
}

function streamOf(url: string, model: string): string[] {
  if (url.includes('/chat/completions')) {
    const base = { id: 'c', object: 'chat.completion.chunk', created: 1, model }
    const delta = { role: 'assistant', content: 'Found.' }
    const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 }
    return [
      data({ ...base, choices: [{ index: 0, delta, finish_reason: null }] }),
      data({
        ...base,
        choices: [{ index: 0, delta: { annotations: [CITATION] }, finish_reason: null }],
      }),
      data({ ...base, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
      data({ ...base, choices: [], usage }),
      'data: [DONE]\n\n',
    ]
  }
  if (url.includes('/responses')) {
    const events = [
      { type: 'response.created', response: { ...response(model), output: [], usage: null } },
      ...[...CALL_ITEMS, MESSAGE].map((item, index) => {
        return { type: 'response.output_item.done', output_index: index, item }
      }),
      { type: 'response.completed', response: response(model) },
    ]
    return events.map((event, index) => named(event.type, { ...event, sequence_number: index }))
  }
  if (url.includes('/messages')) {
    const usage = { input_tokens: 100, output_tokens: 1, server_tool_use: null }
    const start = { ...message(model), content: [], stop_reason: null, usage }
    const text = { type: 'text', text: '' }
    return [
      named('message_start', { type: 'message_start', message: start }),
      named('content_block_start', { type: 'content_block_start', index: 0, content_block: text }),
      named('content_block_delta', {
        type: 'content_block_delta',
        index: 0,
        delta: { type: 'text_delta', text: 'Found.' },
      }),
      named('content_block_stop', { type: 'content_block_stop', index: 0 }),
      named('message_delta', { type: 'message_delta', delta: END, usage: USAGE }),
      named('message_stop', { type: 'message_stop' }),
    ]
  }
  return [
    data(chunk({})),
    data(chunk({ groundingMetadata: GROUNDING })),
    data(chunk({ finishReason: 'STOP' })),
  ]
}

function data(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`
}

function named(name: string, value: object): string {
  return `event: ${name}\n${data(value)}`
}

const CHAT = '/v1/chat/completions'
export const RESPONSES = '/v1/responses'
const MESSAGES = '/v1/messages'
const GEMINI = '/v1beta/models/gemini-3.5-flash:generateContent'
const HI = [{ role: 'user', content: 'Hi' }]

export function chat(more: object): Asked {
  return { path: CHAT, body: { model: 'gpt-5.4-mini', messages: HI, max_tokens: 50, ...more } }
}

export function responses(more: object): Asked {
  const body = { model: 'gpt-5.4-mini', input: 'Hi', max_output_tokens: 50, ...more }
  return { path: RESPONSES, body }
}

export function messages(more: object): Asked {
  const body = { model: 'claude-sonnet-4-6', messages: HI, max_tokens: 50, ...more }
  return { path: MESSAGES, body }
}

export function gemini(more: object, path = GEMINI): Asked {
  const generationConfig = { maxOutputTokens: 50 }
  const contents = [{ role: 'user', parts: [{ text: 'Hi' }] }]
  return { path, body: { contents, generationConfig, ...more } }
}

export function user(...content: object[]): object {
  return { role: 'user', content: content.length === 0 ? 'Hi' : content }
}

export function document(source: object): object {
  return user({ type: 'document', source })
}

export function file(fileUri: string, mimeType: string): object {
  return { role: 'user', parts: [{ fileData: { fileUri, mimeType } }, { text: 'Hi' }] }
}
