/**
 * What the Gemini tests share: a smallest request, model facts, and a run of the decoder through the
 * grammar. Not a test itself.
 */
import type { ChatEvent } from '../../../src/chat/event.js'
import { Fold, type Reply } from '../../../src/chat/reply/fold.js'
import { Grammar } from '../../../src/chat/grammar.js'
import type { JsonObject, JsonValue } from '../../../src/chat/json.js'
import type { ModelFacts } from '../../../src/chat/model.js'
import type { ChatRequest } from '../../../src/chat/request.js'
import { GatewayError, type WireError } from '../../../src/errors.js'
import { decodeReply } from '../../../src/dialects/gemini/upstream/decode-reply.js'
import { encodeRequest } from '../../../src/dialects/gemini/upstream/encode-request.js'
import { GeminiDecoder } from '../../../src/dialects/gemini/upstream/decode-stream.js'

/** A request that says "Hi", with whatever the test adds. */
export function ask(more: Partial<ChatRequest> = {}): ChatRequest {
  return {
    model: 'gemini-3.5-flash',
    messages: [{ role: 'user', index: 0, parts: [{ type: 'text', text: 'Hi' }] }],
    stream: false,
    includeUsage: false,
    tools: [],
    rest: {},
    ...more,
  }
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
  const body = encodeRequest(ask({ model: model.id, ...more }), model, {
    drop: (path, why) => losses.push(`${path}:${why}`),
  })
  return { body, losses }
}

/** The error that encoding ends in; fails the test's expectations with a plain object otherwise. */
export function encodeFailure(
  more: Partial<ChatRequest>,
  model: ModelFacts = facts(),
): Partial<WireError> {
  try {
    encode(more, model)
  } catch (error) {
    if (error instanceof GatewayError) return error.wire
    throw error
  }
  return {}
}

/** What a decoder said: the events as they came and what they add up to. */
export interface Decoded {
  events: ChatEvent[]
  breach: string | null
  reply: Reply | null
  error: WireError | null
  usage: Reply['usage']
}

/** Runs something that emits events through the grammar and the fold. */
export function listen(run: (sink: { event(event: ChatEvent): void }) => void): Decoded {
  const events: ChatEvent[] = []
  const fold = new Fold()
  const grammar = new Grammar({
    event: (event) => {
      events.push(event)
      fold.event(event)
    },
  })
  run(grammar)
  return {
    events,
    breach: grammar.breach,
    reply: fold.reply(),
    error: fold.error,
    usage: fold.partialUsage(),
  }
}

/** Decodes these chunks as a stream. A string is a frame's text as it is. */
export function decodeStream(chunks: (JsonValue | string)[], request = ask()): Decoded {
  return listen((sink) => {
    const decoder = new GeminiDecoder(request, sink)
    for (const chunk of chunks) {
      decoder.frame('', typeof chunk === 'string' ? chunk : JSON.stringify(chunk))
    }
    decoder.end()
  })
}

/** Decodes a whole body. */
export function decodeWhole(body: JsonValue, request = ask()): Decoded {
  return listen((sink) => {
    decodeReply(body, request, sink)
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
