/** A gateway with guardrails in front of a scripted provider, and requests to it in every client format. */
import type { Test } from 'tap'
import { objectOf, type JsonObject } from '../../src/base/json.js'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { startProvider, type Provider } from './provider.js'

/** The client formats. */
export type ClientFormat = 'chat' | 'messages' | 'responses' | 'gemini'
export const CLIENT_FORMATS: readonly ClientFormat[] = ['chat', 'messages', 'responses', 'gemini']
/** A model of an upstream of each dialect. */
export const MODELS = ['gpt-5.4', 'claude-opus-5', 'gpt-4.1', 'gemini-2.5-flash'] as const

/** A reply as the client reads it. */
export interface Read {
  readonly status: number
  readonly headers: Headers
  readonly raw: string
  /** All text of the reply, in order. */
  readonly text: string
  /** Arguments of calls. */
  readonly calls: readonly string[]
  /** Why the reply ended, as the format names it; null if it has no reason. */
  readonly finish: string | null
  /** The error; an empty object if there is none. */
  readonly error: JsonObject
}

/** A running scene. */
export interface Scene {
  readonly gateway: TestGateway
  readonly provider: Provider
  readonly ask: (format: ClientFormat, model: string, request?: Asked) => Promise<Read>
  readonly post: (path: string, body: object) => Promise<Response>
}

/** The request of a client. */
export interface Asked {
  readonly text?: string
  readonly stream?: boolean
}

/** Starts the scene; `guardrails` is YAML below `guardrails:`. */
export async function startScene(t: Test, guardrails: string, more = ''): Promise<Scene> {
  const provider = await startProvider(t)
  const { origin } = provider
  const gateway = await startGateway(t, {
    upstreams: { openai: `${origin}/v1`, anthropic: `${origin}/v1`, gemini: `${origin}/v1beta` },
    more: `guardrails:\n${guardrails}\n${more}`,
  })
  const post = (path: string, body: object): Promise<Response> =>
    fetch(gateway.origin + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  return {
    gateway,
    provider,
    post,
    ask: async (format, model, asked = {}) => {
      const { text = 'hi', stream = false } = asked
      const [path, body] = requestIn(format, model, { text, stream })
      return read(await post(path, body), stream)
    },
  }
}

function requestIn(
  format: ClientFormat,
  model: string,
  { text, stream }: Required<Asked>,
): [path: string, body: object] {
  const messages = [{ role: 'user', content: text }]
  switch (format) {
    case 'chat':
      return ['/v1/chat/completions', { model, stream, messages }]
    case 'messages':
      return ['/v1/messages', { model, stream, max_tokens: 1000, messages }]
    case 'responses':
      return ['/v1/responses', { model, stream, store: false, input: text }]
    case 'gemini': {
      const method = stream ? 'streamGenerateContent?alt=sse' : 'generateContent'
      return [`/v1beta/models/${model}:${method}`, { contents: [{ role: 'user', parts: [{ text }] }] }]
    }
    default:
      return format satisfies never
  }
}

async function read(response: Response, isStream: boolean): Promise<Read> {
  const raw = await textUntilEnd(response)
  const { status, headers } = response
  const isWhole = !isStream || status !== 200
  const events = isWhole ? [parsed(raw)] : eventsIn(raw)
  const found = { text: '', calls: [] as string[], finish: null as string | null }
  for (const event of events) collect(event, isStream && !isWhole, found)
  const error = events.map((event) => objectOf(event['error'])).find((each) => 'message' in each)
  return { status, headers, raw, ...found, error: error ?? {} }
}

/** The body, also of a stream that ends with its connection. */
async function textUntilEnd({ body }: Response): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  try {
    for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
      text += decoder.decode(chunk, { stream: true })
    }
  } catch {
    // What arrived before the connection closed.
  }
  return text
}

function eventsIn(raw: string): JsonObject[] {
  return raw
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => parsed(line.slice(6)))
}

function parsed(text: string): JsonObject {
  return objectOf(JSON.parse(text))
}

function list(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.map((each) => objectOf(each)) : []
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

interface Found {
  text: string
  calls: string[]
  finish: string | null
}

/** Adds what an event, or a whole reply, has. */
function collect(event: JsonObject, isEvent: boolean, found: Found): void {
  for (const choice of list(event['choices'])) {
    const message = objectOf(choice[isEvent ? 'delta' : 'message'])
    found.text += textOf(message['content'])
    for (const call of list(message['tool_calls'])) {
      const json = textOf(objectOf(call['function'])['arguments'])
      found.calls.push(isEvent ? (found.calls.pop() ?? '') + json : json)
    }
    found.finish = textOf(choice['finish_reason']) || found.finish
  }
  for (const candidate of list(event['candidates'])) {
    for (const part of list(objectOf(candidate['content'])['parts'])) {
      found.text += textOf(part['text'])
      if ('functionCall' in part) found.calls.push(JSON.stringify(objectOf(part['functionCall'])['args']))
    }
    found.finish = textOf(candidate['finishReason']) || found.finish
  }
  for (const block of list(event['content'])) {
    found.text += textOf(block['text'])
    if ('input' in block) found.calls.push(JSON.stringify(block['input']))
  }
  const delta = objectOf(event['delta'])
  if (event['type'] === 'content_block_delta') {
    found.text += textOf(delta['text'])
    const json = textOf(delta['partial_json'])
    if (json !== '') found.calls.push((found.calls.pop() ?? '') + json)
  }
  if (event['type'] === 'response.output_text.delta') found.text += textOf(event['delta'])
  const response = event['type'] === undefined ? event : objectOf(event['response'])
  for (const item of list(response['output'])) {
    if (!isEvent) for (const part of list(item['content'])) found.text += textOf(part['text'])
    if (item['type'] === 'function_call') found.calls.push(textOf(item['arguments']))
  }
  const details = objectOf(response['incomplete_details'])
  found.finish =
    textOf(details['reason']) || textOf(event['stop_reason']) || textOf(delta['stop_reason']) || found.finish
}
