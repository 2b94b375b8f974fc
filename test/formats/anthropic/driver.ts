/**
 * Requests, model facts and decoder runs for the tests of the Anthropic codecs.
 */
import type { Reply } from '../../../src/formats/chat/fold.js'
import type { JsonObject } from '../../../src/base/json.js'
import type { ModelFacts } from '../../../src/formats/chat/model-facts.js'
import type { ChatRequest, Message } from '../../../src/formats/chat/request.js'
import { anthropic } from '../../../src/formats/anthropic/index.js'
import type { UpstreamCodec } from '../../../src/formats/dialect.js'
import { collectEvents, type Decoded } from '../collect-events.js'
import { encodeWith, sampleRequest } from '../sample-request.js'
import type { Frame } from '../sse-frames.js'

export { userMessage as user } from '../sample-request.js'

if (anthropic.upstreamCodec === null) throw new Error('the dialect has no codec for upstreams')

export const upstreamCodec: UpstreamCodec = anthropic.upstreamCodec

/** A request with one user message and the members of `over`. */
export function request(over: Partial<ChatRequest> = {}): ChatRequest {
  return sampleRequest({ model: 'claude-test', ...over })
}

/** Facts of a model of the newest generation, with the members of `over`. */
export function facts(over: Partial<ModelFacts> = {}): ModelFacts {
  return { id: 'claude-test', family: 'anthropic', createdAtSeconds: 0, ...over }
}

/** Facts of the 4.5 generation, which accepts sampling, forced tools, budgets and prefill. */
export const OLDER: Partial<ModelFacts> = {
  maxOutputTokens: 64_000,
  thinkingTypes: ['enabled', 'disabled'],
  thinkingDefault: 'off',
  forcedToolChoice: true,
  samplingParams: 'when-thinking-off',
  assistantPrefill: true,
  midConversationSystem: false,
}

/** An encoded body and its losses. */
export type Encoded = ReturnType<typeof encodeWith>

/** The encoded body, and the losses as `path: why`. */
export function encode(over: Partial<ChatRequest>, model: Partial<ModelFacts> = {}): Encoded {
  return encodeWith(upstreamCodec, request(over), facts(model))
}

/** An assistant turn with text and calls `id:name:arguments`. */
export function assistant(index: number, text: string, ...calls: string[]): Message {
  const toolCalls = calls.map((call) => {
    const [id = '', name = '', ...args] = call.split(':')
    return { id, name, arguments: args.join(':') }
  })
  return { role: 'assistant', index, parts: [{ type: 'text', text }], toolCalls }
}

/** A tool message with this text. */
export function result(index: number, callId: string, text: string): Message {
  return { role: 'tool', index, callId, parts: [{ type: 'text', text }] }
}

/** A frame with this payload. */
export function frame(payload: JsonObject): Frame {
  return { name: stringOrEmpty(payload.type), data: JSON.stringify(payload) }
}

/** Decodes these frames as a whole stream. */
export function decodeStream(frames: readonly Frame[], over: Partial<ChatRequest> = {}): Decoded {
  return collectEvents((sink) => {
    const decoder = upstreamCodec.newDecoder(request(over), sink)
    for (const { name, data } of frames) decoder.frame(name, data)
    decoder.end()
  })
}

/** Decodes a whole body. */
export function decodeReply(body: JsonObject, over: Partial<ChatRequest> = {}): Decoded {
  return collectEvents((sink) => upstreamCodec.decodeReply(body, request(over), sink))
}

/** The text of all blocks of a kind, joined. */
export function textOf(reply: Reply | null, kind: 'text' | 'thinking' | 'refusal' = 'text'): string {
  return (reply?.blocks ?? []).map((block) => (block.type === kind ? block.text : '')).join('')
}

/** The value if it is a string, else an empty string. */
export function stringOrEmpty(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
