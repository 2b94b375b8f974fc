/**
 * Runs the Responses codec on wire text, for the tests of this folder.
 */
import type { JsonObject } from '../../../src/base/json.js'
import type { ModelFacts } from '../../../src/formats/chat/model-facts.js'
import type { ChatRequest, Message } from '../../../src/formats/chat/request.js'
import type { UpstreamCodec } from '../../../src/formats/dialect.js'
import { upstreamCodecOf } from '../../../src/formats/index.js'
import { collectEvents, type Decoded } from '../collect-events.js'
import { encodeWith, sampleRequest, userMessage as sampleUserMessage } from '../sample-request.js'
import type { Frame } from '../sse-frames.js'

export { refusalOf, type Decoded } from '../collect-events.js'
export { framesOf, type Frame } from '../sse-frames.js'

const codec = upstreamCodecOf('openai-responses')
if (codec === null) throw new Error('the dialect has no codec for upstreams')

export const upstreamCodec: UpstreamCodec = codec

/** A model with reasoning and the usual efforts. */
export const REASONING_MODEL: ModelFacts = {
  id: 'gpt-test',
  family: 'openai',
  createdAtSeconds: 0,
  reasoning: true,
  systemRole: 'developer',
  reasoningEfforts: ['none', 'low', 'medium', 'high', 'xhigh'],
  samplingParams: 'effort-none-only',
}

/** A model without reasoning. */
export const PLAIN_MODEL: ModelFacts = {
  id: 'gpt-plain',
  family: 'openai',
  createdAtSeconds: 0,
  reasoning: false,
  systemRole: 'system',
  samplingParams: 'always',
}

/** A small request with some members replaced. */
export function request(members: Partial<ChatRequest> = {}): ChatRequest {
  return sampleRequest({ model: 'gpt-test', ...members })
}

/** A message of the user. */
export function userMessage(text: string, index = 0): Message {
  return sampleUserMessage(index, text)
}

/** The body for an upstream, and the losses as `path: why`. */
export function encode(
  members: Partial<ChatRequest>,
  facts: ModelFacts = REASONING_MODEL,
): { body: JsonObject; lost: string[] } {
  return encodeWith(upstreamCodec, request(members), facts)
}

/** Events as frames; each is named by its type. */
export function frames(...events: JsonObject[]): Frame[] {
  return events.map((event) => ({
    name: typeof event['type'] === 'string' ? event['type'] : '',
    data: JSON.stringify(event),
  }))
}

/** Decodes frames and ends the stream. */
export function decodeStream(list: readonly Frame[], chatRequest: ChatRequest = request()): Decoded {
  return collectEvents((sink) => {
    const decoder = upstreamCodec.newDecoder(chatRequest, sink)
    for (const { name, data } of list) decoder.frame(name, data)
    decoder.end()
  })
}

/** Decodes a whole response. */
export function decodeWhole(body: JsonObject, chatRequest: ChatRequest = request()): Decoded {
  return collectEvents((sink) => upstreamCodec.decodeReply(body, chatRequest, sink))
}

/** The value as a string. Throws for any other value. */
export function expectString(value: unknown): string {
  if (typeof value !== 'string') throw new Error(`not a string: ${JSON.stringify(value)}`)
  return value
}
