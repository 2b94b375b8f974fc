/** Canonical requests and their encoding, for the tests of all dialects. */
import type { JsonObject } from '../../src/base/json.js'
import type { ModelFacts } from '../../src/formats/chat/model-facts.js'
import type { ChatRequest, Message } from '../../src/formats/chat/request.js'
import type { UpstreamCodec } from '../../src/formats/dialect.js'

/** A request with one user message and these members. */
export function sampleRequest(members: Partial<ChatRequest> & { model: string }): ChatRequest {
  return {
    messages: [userMessage(0, 'Hello')],
    stream: false,
    includeUsage: false,
    tools: [],
    rest: {},
    ...members,
  }
}

/** A user message with this text. */
export function userMessage(index: number, text: string): Message {
  return { role: 'user', index, parts: [{ type: 'text', text }] }
}

/** The encoded body, and the losses as `path: why`. */
export function encodeWith(
  upstreamCodec: UpstreamCodec,
  request: ChatRequest,
  facts: ModelFacts,
): { body: JsonObject; lost: string[] } {
  const lost: string[] = []
  const body = upstreamCodec.encodeRequest(request, facts, {
    drop: (path, why) => lost.push(`${path}: ${why}`),
  })
  return { body, lost }
}
