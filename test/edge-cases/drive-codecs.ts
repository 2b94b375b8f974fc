/**
 * Drives the codecs as the gateway does, for the tests of edge cases: an upstream's frames to a chat client,
 * and a client's body to an upstream.
 */
import { arrayOf, objectOf, stringOf, type JsonObject } from '../../src/base/json.js'
import type { ModelFacts } from '../../src/formats/chat/model-facts.js'
import type { ChatRequest } from '../../src/formats/chat/request.js'
import { factsFor } from '../../src/config/catalogue.js'
import { loadConfig } from '../../src/config/load-config.js'
import type { DialectName, UpstreamCodec } from '../../src/formats/dialect.js'
import { upstreamCodecOf, clientCodecOf } from '../../src/formats/index.js'
import { GatewayError, type WireError } from '../../src/errors.js'
import { TranslatedStream, type ReplyResult } from '../../src/formats/translated-stream.js'
import { translateReply } from '../../src/gateway/streams/whole-reply.js'
import { brokenRule } from '../formats/collect-events.js'
import { SseFramer } from '../../src/formats/wire/frames/sse-framer.js'

/** A frame of a stream: its data, as an object or as raw text. */
export type Unit = JsonObject | string

/** A tool call in the client's form. */
export interface Call {
  id: string
  name: string
  json: string
}

/** The output that a client received. */
export interface ClientOutput {
  readonly text: string
  readonly thinking: string
  readonly calls: Call[]
  /** One per chunk with a choice, in order. */
  readonly finishes: unknown[]
  readonly usage: JsonObject
  readonly message: JsonObject
  /** The data of every frame, as text; a whole reply is one. */
  readonly frames: string[]
  readonly chunks: JsonObject[]
  /** The raw bytes. */
  readonly bytes: string
  readonly outcome: ReplyResult['outcome']
  readonly error: WireError | null
  readonly model: string | null
}

/** The request to an upstream. */
export interface Sent {
  readonly body: JsonObject
  readonly headers: Record<string, string>
  readonly lost: string[]
}

/** One model of each upstream dialect that the codecs support. */
export const MODELS: Readonly<Record<DialectName, string>> = {
  'openai-chat': 'gpt-4o',
  'openai-responses': 'gpt-5-pro',
  anthropic: 'claude-haiku-4-5',
  gemini: 'gemini-3.5-flash',
  converse: 'us.amazon.nova-2-lite-v1:0',
}

const client = clientCodecOf('openai-chat')
const SEED = { id: 'chatcmpl-edge', createdAtSeconds: 1_700_000_000, model: 'client-model' }
const shipped = loadConfig('config/gateway.yaml', {})

/** The facts of the shipped catalogue about a model. */
export function factsOf(model: string): ModelFacts {
  if (!shipped.ok) throw new Error('the shipped configuration does not load')
  return factsFor(shipped.catalogue, model)
}

/** The upstream codec of a dialect. */
export function upstream(dialect: DialectName): UpstreamCodec {
  const upstreamCodec = upstreamCodecOf(dialect)
  if (upstreamCodec === null) throw new Error(`no upstream uses ${dialect}`)
  return upstreamCodec
}

/** Decodes a chat client's body; missing members get defaults. */
export function chatRequest(body: JsonObject = {}): ChatRequest {
  const whole = { model: 'gpt-4o', messages: [{ role: 'user', content: 'Hello' }], ...body }
  return client.decodeRequest(whole, { operation: 'chat' })
}

/** The bytes of a stream as the dialect's provider frames it. */
export function framed(dialect: DialectName, units: readonly Unit[]): string {
  const end = dialect === 'gemini' ? '\r\n' : '\n'
  return units
    .map((unit) => {
      const data = typeof unit === 'string' ? unit : JSON.stringify(unit)
      const type = typeof unit === 'string' ? undefined : stringOf(unit['type'])
      const hasEventNames = dialect === 'anthropic' || dialect === 'openai-responses'
      const name = hasEventNames && type !== undefined ? `event: ${type}${end}` : ''
      return `${name}data: ${data}${end}${end}`
    })
    .join('')
}

/** Translates a stream of the upstream for a client that requested it (and for usage). */
export function streamed(dialect: DialectName, units: readonly Unit[], body: JsonObject = {}): ClientOutput {
  return fed(dialect, [Buffer.from(framed(dialect, units))], body)
}

/** Translates chunks of the upstream for a client that requested a stream (and for usage). */
export function fed(dialect: DialectName, chunks: readonly Buffer[], body: JsonObject = {}): ClientOutput {
  const options = { stream: true, stream_options: { include_usage: true } }
  const request = chatRequest({ ...options, ...body })
  const stream = new TranslatedStream({
    upstreamCodec: upstream(dialect),
    clientCodec: client,
    request,
    seed: { ...SEED, origin: dialect },
  })
  const outputs = chunks.map((chunk) => stream.write(chunk))
  outputs.push(stream.end())
  if (stream.error !== null) outputs.push(client.encodeStreamError(stream.error))
  return clientOutputOf(outputs.join(''), stream)
}

/** Translates a whole reply of the upstream for a client. */
export function whole(dialect: DialectName, reply: JsonObject, body: JsonObject = {}): ClientOutput {
  const seed = { ...SEED, origin: dialect }
  const result = translateReply(reply, {
    upstreamCodec: upstream(dialect),
    clientCodec: client,
    request: chatRequest(body),
    seed,
  })
  const { choices, usage } = objectOf(result.body === '' ? {} : JSON.parse(result.body))
  const choice = objectOf(arrayOf(choices)[0])
  const message = objectOf(choice['message'])
  const { outcome, error, model } = result
  return {
    text: stringOf(message['content']) ?? '',
    thinking: stringOf(message['reasoning_content']) ?? '',
    calls: arrayOf(message['tool_calls']).map(callOf),
    finishes: [choice['finish_reason']],
    usage: objectOf(usage),
    message,
    frames: [result.body],
    chunks: [],
    bytes: result.body,
    outcome,
    error,
    model,
  }
}

/** Encodes a chat client's body for a model of the upstream. Throws as the codecs do. */
export function sent(dialect: DialectName, body: JsonObject, model = modelOf(dialect)): Sent {
  const lost: string[] = []
  const upstreamCodec = upstream(dialect)
  const request = { ...chatRequest({ ...body, model }), model }
  const received = upstreamCodec.encodeRequest(request, factsOf(model), {
    drop: (path) => void lost.push(path),
  })
  return { body: received, headers: upstreamCodec.headers(received), lost }
}

/** The gateway's error for a body that it refuses. Throws if it does not refuse it. */
export function refused(act: () => unknown): WireError {
  try {
    const broken = brokenRule(act())
    if (broken !== null) return broken
  } catch (error) {
    if (error instanceof GatewayError) return error.wire
    throw error
  }
  throw new Error('nothing was refused')
}

/** A function tool of chat completions. */
export function tool(name: string, parameters?: JsonObject): JsonObject {
  return {
    type: 'function',
    function: { name, ...(parameters === undefined ? {} : { parameters }) },
  }
}

/** A turn with tools: the question, the calls of the assistant, and `done` as the result of each. */
export interface Turn {
  readonly go: JsonObject
  readonly assistantTurn: JsonObject
  readonly results: JsonObject[]
}

/** The turn in which the assistant made `calls`; `extra` is added to its message. */
export function turnOf(calls: readonly Call[], extra: JsonObject = {}): Turn {
  const tool_calls = calls.map(({ id, name, json }) => ({
    id,
    type: 'function',
    function: { name, arguments: json },
  }))
  return {
    go: { role: 'user', content: 'Go' },
    assistantTurn: { role: 'assistant', content: null, tool_calls, ...extra },
    results: calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'done' })),
  }
}

/** The same as messages. */
export function history(calls: readonly Call[], extra: JsonObject = {}): JsonObject[] {
  const { go, assistantTurn, results } = turnOf(calls, extra)
  return [go, assistantTurn, ...results]
}

function modelOf(dialect: DialectName): string {
  return MODELS[dialect]
}

function callOf(value: unknown): Call {
  const { id, function: made } = objectOf(value)
  const { name, arguments: json } = objectOf(made)
  return { id: stringOf(id) ?? '', name: stringOf(name) ?? '', json: stringOf(json) ?? '' }
}

function clientOutputOf(bytes: string, { outcome, error, model }: ReplyResult): ClientOutput {
  const frames: string[] = []
  const framer = new SseFramer({ frame: (_name, data) => frames.push(data) })
  framer.write(Buffer.from(bytes))
  framer.end()
  const chunks = frames.filter((it) => it !== '[DONE]').map((it) => objectOf(JSON.parse(it)))
  const choices = chunks.flatMap((chunk) => arrayOf(chunk['choices']).map(objectOf))
  const deltas = choices.map((choice) => objectOf(choice['delta']))
  const calls: Call[] = []
  for (const delta of deltas) {
    for (const fragment of arrayOf(delta['tool_calls']).map(objectOf)) {
      const at = Number(fragment['index'])
      const call = calls[at] ?? { id: '', name: '', json: '' }
      const more = callOf(fragment)
      calls[at] = {
        id: call.id + more.id,
        name: call.name + more.name,
        json: call.json + more.json,
      }
    }
  }
  return {
    text: deltas.map((delta) => stringOf(delta['content']) ?? '').join(''),
    thinking: deltas.map((delta) => stringOf(delta['reasoning_content']) ?? '').join(''),
    calls,
    finishes: choices.map((choice) => choice['finish_reason']),
    usage: objectOf(chunks.findLast((chunk) => chunk['usage'] !== null)?.['usage']),
    message: {},
    frames,
    chunks,
    bytes,
    outcome,
    error,
    model,
  }
}
