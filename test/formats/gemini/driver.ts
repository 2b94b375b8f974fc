/**
 * Requests, model facts and decoder runs for the tests of the Gemini codecs.
 */
import type { JsonObject, JsonValue } from '../../../src/base/json.js'
import type { ModelFacts } from '../../../src/formats/chat/model-facts.js'
import type { ChatRequest } from '../../../src/formats/chat/request.js'
import { decodeReply as decodeBody } from '../../../src/formats/gemini/upstream/decode-reply.js'
import { upstreamCodecOf } from '../../../src/formats/index.js'
import type { WireError } from '../../../src/errors.js'
import { collectEvents, refusalOf, type Decoded } from '../collect-events.js'
import { sampleRequest, userMessage } from '../sample-request.js'

const codec = upstreamCodecOf('gemini')
if (codec === null) throw new Error('the dialect has no codec for upstreams')
const upstreamCodec = codec

/** A request with one user message and the members of `more`. */
export function chatRequest(more: Partial<ChatRequest> = {}): ChatRequest {
  return sampleRequest({ model: 'gemini-3.5-flash', messages: [userMessage(0, 'Hi')], ...more })
}

/** Facts of a generation 3 model. */
export function facts(more: Partial<ModelFacts> = {}): ModelFacts {
  return {
    id: 'gemini-3.5-flash',
    family: 'google',
    createdAtSeconds: 0,
    maxOutputTokens: 65_536,
    reasoning: true,
    structuredOutput: true,
    structuredOutputWithTools: true,
    thinkingLevels: ['minimal', 'low', 'medium', 'high'],
    penalties: true,
    ...more,
  }
}

/** Facts of a generation 2.5 model. */
export function oldFacts(more: Partial<ModelFacts> = {}): ModelFacts {
  return {
    id: 'gemini-2.5-flash',
    family: 'google',
    createdAtSeconds: 0,
    maxOutputTokens: 65_536,
    reasoning: true,
    structuredOutput: true,
    structuredOutputWithTools: false,
    thinkingBudget: { min: 0, max: 24_576, canDisable: true },
    penalties: false,
    ...more,
  }
}

/** The encoded body and the losses as `field:why`. */
export function encode(
  more: Partial<ChatRequest> = {},
  model: ModelFacts = facts(),
): { body: JsonObject; losses: string[] } {
  const losses: string[] = []
  const body = upstreamCodec.encodeRequest(chatRequest({ model: model.id, ...more }), model, {
    drop: (path, why) => losses.push(`${path}:${why}`),
  })
  return { body, losses }
}

/** The error with which encoding fails. Throws if it does not fail. */
export function encodeFailure(more: Partial<ChatRequest>, model: ModelFacts = facts()): WireError {
  return refusalOf(() => encode(more, model))
}

/** Decodes these chunks as a stream. A string is the data of a frame. */
export function decodeStream(chunks: (JsonValue | string)[], request = chatRequest()): Decoded {
  return collectEvents((sink) => {
    const decoder = upstreamCodec.newDecoder(request, sink)
    for (const chunk of chunks) {
      decoder.frame('', typeof chunk === 'string' ? chunk : JSON.stringify(chunk))
    }
    decoder.end()
  })
}

/** Decodes a whole body. */
export function decodeReply(body: JsonValue, request = chatRequest()): Decoded {
  return collectEvents((sink) => {
    decodeBody(body, request, sink)
  })
}

/** A chunk with these parts. */
export function chunk(parts: JsonValue[], more: JsonObject = {}, top: JsonObject = {}): JsonObject {
  return {
    candidates: [{ content: { role: 'model', parts }, index: 0, ...more }],
    responseId: 'reply1',
    modelVersion: 'gemini-3.5-flash',
    ...top,
  }
}
