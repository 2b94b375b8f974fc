/** Small replies in the format of each upstream, and what every other reply is compared with. */
import type { JsonObject } from '../../chat/json.js'
import type { DialectName } from '../../dialects/dialect.js'

/** A feature of a reply. */
export interface ReplyConcept {
  /** Markdown. */
  readonly name: string
  /** A reply with the concept, per dialect that has it. */
  readonly replies: Partial<Record<DialectName, JsonObject>>
  /** Members of the request that the reply depends on. */
  readonly members?: JsonObject
  /** Notes per dialect, such as for replies that become an error. Markdown. */
  readonly notes?: Partial<Record<DialectName, string>>
}

/** A whole reply of Anthropic's with these members. */
export function claude(members: JsonObject): JsonObject {
  return {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [{ type: 'text', text: 'Hi.' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 3, output_tokens: 2 },
    ...members,
  }
}

/** A whole reply of Gemini's with these members of its candidate. */
export function gemini(candidate: JsonObject, more: JsonObject = {}): JsonObject {
  const content = { role: 'model', parts: [{ text: 'Hi.' }] }
  return {
    responseId: 'r1',
    modelVersion: 'm',
    candidates: [{ index: 0, content, finishReason: 'STOP', ...candidate }],
    usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2 },
    ...more,
  }
}

/** A whole reply of Gemini with these parts. */
export function geminiParts(...parts: JsonObject[]): JsonObject {
  return gemini({ content: { role: 'model', parts } })
}

/** A whole response of OpenAI's Responses with these members. */
export function response(members: JsonObject): JsonObject {
  return {
    id: 'resp_1',
    object: 'response',
    created_at: 0,
    model: 'm',
    status: 'completed',
    output: [message({ type: 'output_text', text: 'Hi.', annotations: [] })],
    usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
    ...members,
  }
}

/** A message of a response with this content. */
export function message(...content: JsonObject[]): JsonObject {
  return { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content }
}

/** A reply that calls these tools. */
export function called(...names: string[]): JsonObject {
  return response({
    output: names.map((name, at) => ({
      type: 'function_call',
      id: `fc_${at}`,
      call_id: `call_${at}`,
      name,
      arguments: '{"a":1}',
      status: 'completed',
    })),
  })
}

/** What every other reply is compared with. */
export const PLAIN_REPLY: Readonly<Record<Exclude<DialectName, 'openai-chat'>, JsonObject>> = {
  'openai-responses': response({}),
  anthropic: claude({}),
  gemini: gemini({}),
}

/** A content block of text. */
export const text = { type: 'text', text: 'Hi.' }
/** A block that calls a tool. */
export const use = (id: string, name: string): JsonObject => ({
  type: 'tool_use',
  id,
  name,
  input: { a: 1 },
})
