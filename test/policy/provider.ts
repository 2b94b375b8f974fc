/** An upstream that replies with a chosen text or call in the format of the request, whole or as a stream. */
import { createServer, type ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import type { Test } from 'tap'
import { isObject, objectOf, type JsonObject } from '../../src/base/json.js'
import { listen } from '../helpers/listen.js'

/** The reply of the provider. */
export interface Scripted {
  /** The body of whole replies, unchanged. */
  readonly whole?: JsonObject
  readonly text?: string
  readonly reasoning?: string
  readonly call?: { readonly name: string; readonly arguments: string }
  /** The fragments of a stream; default: one. */
  readonly split?: (text: string) => readonly string[]
  /** Waits before each fragment. */
  readonly pace?: () => Promise<void>
}

/** A running provider. */
export interface Provider {
  readonly origin: string
  /** The bodies of the requests, newest last. */
  readonly bodies: JsonObject[]
  reply: Scripted
  /** Number of connections that the gateway closed before the end of a reply. */
  closedEarly: number
}

/** Starts the provider on a free port; it ends with the test. */
export async function startProvider(t: Test, reply: Scripted = { text: 'Hello.' }): Promise<Provider> {
  const provider: { origin: string; bodies: JsonObject[]; reply: Scripted; closedEarly: number } = {
    origin: '',
    bodies: [],
    reply,
    closedEarly: 0,
  }
  const server = createServer((req, res) => {
    void json(req).then(async (value) => {
      const body = isObject(value) ? value : {}
      provider.bodies.push(body)
      res.once('close', () => {
        if (!res.writableFinished) provider.closedEarly += 1
      })
      await answer(req.url ?? '', body, { res, scripted: provider.reply })
    })
  })
  provider.origin = `http://127.0.0.1:${await listen(t, server)}`
  return provider
}

interface Answering {
  readonly res: ServerResponse
  readonly scripted: Scripted
}

async function answer(url: string, body: JsonObject, { res, scripted }: Answering): Promise<void> {
  const format = formatOf(url)
  const isStream = body['stream'] === true || url.includes(':streamGenerateContent')
  if (!isStream) {
    res.writeHead(200, { 'content-type': 'application/json' })
    res.end(JSON.stringify(scripted.whole ?? format.whole(scripted)))
    return
  }
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const event of format.stream(scripted)) {
    if (res.destroyed) return
    await scripted.pace?.()
    res.write(event)
  }
  res.end()
}

interface Format {
  whole(scripted: Scripted): JsonObject
  stream(scripted: Scripted): Iterable<string>
}

function formatOf(url: string): Format {
  if (url.includes('enerateContent')) return gemini
  if (url.includes('/messages')) return anthropic
  if (url.includes('/responses')) return responses
  return chat
}

function fragments({ split = (text) => [text] }: Scripted, text: string): readonly string[] {
  return split(text)
}

function data(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`
}

const CHAT = { id: 'chatcmpl-1', created: 1, model: 'gpt-5.4' }
const CHAT_USAGE = { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 }

const chat: Format = {
  whole({ text = '', reasoning, call }) {
    const calls =
      call === undefined ? {} : { tool_calls: [{ id: 'call_1', type: 'function', function: { ...call } }] }
    const message = {
      role: 'assistant',
      content: text,
      ...(reasoning === undefined ? {} : { reasoning_content: reasoning }),
      ...calls,
    }
    const finish = call === undefined ? 'stop' : 'tool_calls'
    const choices = [{ index: 0, message, finish_reason: finish }]
    return { ...CHAT, object: 'chat.completion', choices, usage: CHAT_USAGE }
  },
  *stream(scripted) {
    const { text = '', reasoning = '', call } = scripted
    const chunk = (delta: object, finish: string | null = null): string =>
      data({
        ...CHAT,
        object: 'chat.completion.chunk',
        choices: [{ index: 0, delta, finish_reason: finish }],
      })
    yield chunk({ role: 'assistant', content: '' })
    for (const each of fragments(scripted, reasoning))
      if (each !== '') yield chunk({ reasoning_content: each })
    for (const each of fragments(scripted, text)) if (each !== '') yield chunk({ content: each })
    if (call !== undefined) {
      const { name } = call
      const fn = { name, arguments: '' }
      yield chunk({ tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: fn }] })
      for (const each of fragments(scripted, call.arguments)) {
        yield chunk({ tool_calls: [{ index: 0, function: { arguments: each } }] })
      }
    }
    yield chunk({}, call === undefined ? 'stop' : 'tool_calls')
    yield data({ ...CHAT, object: 'chat.completion.chunk', choices: [], usage: CHAT_USAGE })
    yield 'data: [DONE]\n\n'
  },
}

const MESSAGE = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-opus-5',
  stop_sequence: null,
}

const anthropic: Format = {
  whole({ text = '', reasoning, call }) {
    const content: JsonObject[] = []
    if (reasoning !== undefined) {
      content.push({ type: 'thinking', thinking: reasoning, signature: 'c2ln' })
    }
    if (text !== '') content.push({ type: 'text', text })
    if (call !== undefined) {
      const input = objectOf(JSON.parse(call.arguments))
      content.push({ type: 'tool_use', id: 'toolu_1', name: call.name, input })
    }
    const usage = { input_tokens: 5, output_tokens: 7 }
    return { ...MESSAGE, content, stop_reason: call === undefined ? 'end_turn' : 'tool_use', usage }
  },
  *stream(scripted) {
    const { text = '', reasoning = '', call } = scripted
    const event = (value: { type: string } & Record<string, unknown>): string =>
      `event: ${value.type}\n${data(value)}`
    let index = 0
    function* block(
      start: JsonObject,
      parts: readonly string[],
      delta: (part: string) => JsonObject,
    ): Iterable<string> {
      yield event({ type: 'content_block_start', index, content_block: start })
      for (const part of parts) {
        if (part !== '') yield event({ type: 'content_block_delta', index, delta: delta(part) })
      }
      if (start['type'] === 'thinking') {
        const signature = { type: 'signature_delta', signature: 'c2ln' }
        yield event({ type: 'content_block_delta', index, delta: signature })
      }
      yield event({ type: 'content_block_stop', index })
      index += 1
    }
    const usage = { input_tokens: 5, output_tokens: 1 }
    yield event({
      type: 'message_start',
      message: { ...MESSAGE, content: [], stop_reason: null, usage },
    })
    if (reasoning !== '') {
      yield* block(
        { type: 'thinking', thinking: '', signature: '' },
        fragments(scripted, reasoning),
        (part) => ({
          type: 'thinking_delta',
          thinking: part,
        }),
      )
    }
    if (text !== '') {
      yield* block({ type: 'text', text: '' }, fragments(scripted, text), (part) => ({
        type: 'text_delta',
        text: part,
      }))
    }
    if (call !== undefined) {
      const start = { type: 'tool_use', id: 'toolu_1', name: call.name, input: {} }
      yield* block(start, fragments(scripted, call.arguments), (part) => ({
        type: 'input_json_delta',
        partial_json: part,
      }))
    }
    const delta = { stop_reason: call === undefined ? 'end_turn' : 'tool_use', stop_sequence: null }
    yield event({ type: 'message_delta', delta, usage: { output_tokens: 7 } })
    yield event({ type: 'message_stop' })
  },
}

const RESPONSE = { id: 'resp_1', object: 'response', created_at: 1, model: 'gpt-4.1', error: null }
const RESPONSE_USAGE = { input_tokens: 5, output_tokens: 7, total_tokens: 12 }

function outputOf({ text = '', call }: Scripted): JsonObject[] {
  const output: JsonObject[] = []
  if (text !== '') {
    const content = [{ type: 'output_text', text, annotations: [], logprobs: [] }]
    output.push({ type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content })
  }
  if (call !== undefined) {
    const { name, arguments: json } = call
    const ids = { id: 'fc_1', call_id: 'call_1', status: 'completed' }
    output.push({ type: 'function_call', ...ids, name, arguments: json })
  }
  return output
}

const responses: Format = {
  whole(scripted) {
    return {
      ...RESPONSE,
      status: 'completed',
      incomplete_details: null,
      output: outputOf(scripted),
      usage: RESPONSE_USAGE,
    }
  },
  *stream(scripted) {
    const { text = '', call } = scripted
    let number = 0
    const event = (type: string, members: object): string =>
      `event: ${type}\n${data({ type, sequence_number: number++, ...members })}`
    const begun = { ...RESPONSE, status: 'in_progress', incomplete_details: null, output: [] }
    yield event('response.created', { response: begun })
    const output = outputOf(scripted)
    for (const [index, item] of output.entries()) {
      const at = { output_index: index }
      if (item['type'] === 'message') {
        const place = { ...at, item_id: 'msg_1', content_index: 0 }
        yield event('response.output_item.added', {
          ...at,
          item: { ...item, content: [], status: 'in_progress' },
        })
        const empty = { type: 'output_text', text: '', annotations: [], logprobs: [] }
        yield event('response.content_part.added', { ...place, part: empty })
        for (const delta of fragments(scripted, text)) {
          if (delta !== '') yield event('response.output_text.delta', { ...place, delta, logprobs: [] })
        }
        yield event('response.output_text.done', { ...place, text, logprobs: [] })
        yield event('response.content_part.done', { ...place, part: { ...empty, text } })
      } else if (call !== undefined) {
        const place = { ...at, item_id: 'fc_1' }
        yield event('response.output_item.added', {
          ...at,
          item: { ...item, arguments: '', status: 'in_progress' },
        })
        for (const delta of fragments(scripted, call.arguments)) {
          if (delta !== '') yield event('response.function_call_arguments.delta', { ...place, delta })
        }
        yield event('response.function_call_arguments.done', {
          ...place,
          arguments: call.arguments,
          name: call.name,
        })
      }
      yield event('response.output_item.done', { ...at, item })
    }
    yield event('response.completed', { response: responses.whole(scripted) })
  },
}

const gemini: Format = {
  whole({ text = '', call }) {
    const parts: JsonObject[] = text === '' ? [] : [{ text }]
    if (call !== undefined) {
      parts.push({ functionCall: { name: call.name, args: objectOf(JSON.parse(call.arguments)) } })
    }
    return {
      candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0 }],
      usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 7, totalTokenCount: 12 },
      modelVersion: 'gemini-2.5-flash',
      responseId: 'r1',
    }
  },
  *stream(scripted) {
    const { text = '' } = scripted
    for (const part of fragments(scripted, text)) {
      if (part === '') continue
      const content = { role: 'model', parts: [{ text: part }] }
      yield data({ candidates: [{ content, index: 0 }], modelVersion: 'gemini-2.5-flash' })
    }
    const { call } = scripted
    yield data(gemini.whole(call === undefined ? { text: '' } : { text: '', call }))
  },
}
