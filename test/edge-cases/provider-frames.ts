/**
 * Builds the frames of the providers' streams, for tests that vary one detail of them. Written from the
 * vendors' documentation, independent of the codecs.
 */
import type { JsonObject, JsonValue } from '../../src/base/json.js'
import type { Unit } from './drive-codecs.js'

/** Anthropic's first frame. */
export function messageStart(usage: JsonObject = { input_tokens: 9, output_tokens: 1 }): JsonObject {
  const message = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude-up',
    content: [],
  }
  return { type: 'message_start', message: { ...message, stop_reason: null, usage } }
}

/** A content block of Anthropic: its start, its deltas, its stop. */
export function block(index: number, start: JsonObject, ...deltas: JsonObject[]): JsonObject[] {
  return [
    { type: 'content_block_start', index, content_block: start },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ]
}

/** A text block of Anthropic. */
export function textBlock(index: number, text: string): JsonObject[] {
  return block(index, { type: 'text', text: '' }, { type: 'text_delta', text })
}

/** A tool block of Anthropic; each of `fragments` is one delta. */
export function toolBlock(
  index: number,
  [id, name]: readonly [id: string, name: string],
  { fragments, input = {} }: { fragments: readonly string[]; input?: JsonObject },
): JsonObject[] {
  const deltas = fragments.map((partial_json) => ({ type: 'input_json_delta', partial_json }))
  return block(index, { type: 'tool_use', id, name, input }, ...deltas)
}

/** Anthropic's two last frames. */
export function messageEnd(stop_reason: string, usage: JsonObject = { output_tokens: 5 }): Unit[] {
  return [
    { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage },
    { type: 'message_stop' },
  ]
}

/** One frame of Gemini. */
export function candidate(parts: JsonValue[], finishReason?: string, usage?: JsonObject): JsonObject {
  return {
    candidates: [
      {
        content: { role: 'model', parts },
        index: 0,
        ...(finishReason === undefined ? {} : { finishReason }),
      },
    ],
    usageMetadata: usage ?? { promptTokenCount: 7, candidatesTokenCount: 3, totalTokenCount: 10 },
    modelVersion: 'gemini-up',
    responseId: 'resp_1',
  }
}

/** One chunk of chat completions. */
export function chunk(delta: JsonObject, finish_reason: string | null = null): JsonObject {
  return {
    id: 'chatcmpl-up',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'gpt-up',
    choices: [{ index: 0, delta, finish_reason }],
  }
}

/** The last chunk of chat completions, which has counts and no choice. */
export function counts(usage: JsonObject): JsonObject {
  return { ...chunk({}), choices: [], usage }
}

/** A fragment of a call in chat completions. */
export function fragment(index: number | undefined, json: string, start: JsonObject = {}): JsonObject {
  const { id, name } = start
  const call: JsonObject = {
    function: { ...(name === undefined ? {} : { name }), arguments: json },
  }
  if (index !== undefined) call['index'] = index
  if (id !== undefined) Object.assign(call, { id, type: 'function' })
  return chunk({ tool_calls: [call] })
}

/** The first event of Responses. */
export function created(): JsonObject {
  const response = { id: 'resp_1', model: 'gpt-up', status: 'in_progress', output: [] }
  return { type: 'response.created', response }
}

/** A call of Responses: its start, a delta for each of `fragments`, its end. */
export function callItem(
  output_index: number,
  [call_id, name]: readonly [id: string, name: string],
  fragments: readonly string[],
): JsonObject[] {
  const item = { type: 'function_call', id: `fc_${call_id}`, call_id, name, arguments: '' }
  return [
    { type: 'response.output_item.added', output_index, item },
    ...fragments.map((delta) => {
      return { type: 'response.function_call_arguments.delta', output_index, delta }
    }),
    {
      type: 'response.output_item.done',
      output_index,
      item: { ...item, arguments: fragments.join('') },
    },
  ]
}

/** A text delta of a Responses message. */
export function outputText(delta: string): JsonObject {
  return { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta }
}

/** The last event of Responses. */
export function responseEnd(state: 'completed' | 'incomplete' | 'failed', more: JsonObject): Unit {
  return {
    type: `response.${state}`,
    response: { id: 'resp_1', status: state, output: [], ...more },
  }
}
