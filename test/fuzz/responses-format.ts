/**
 * Replies in OpenAI's Responses format, whole and as events. Written from the vendor's page, not from the
 * codec.
 */
import type { JsonObject } from '../../src/base/json.js'

/** A finished message of Responses. */
export function messageItem(text: string): JsonObject {
  const content = [{ type: 'output_text', text, annotations: [] }]
  return { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content }
}

/** A finished call of Responses. */
export function callItem(id: string, name: string, json: string): JsonObject {
  return { type: 'function_call', id: `fc_${id}`, call_id: id, name, arguments: json }
}

/** A whole response of Responses; `more` replaces members. */
export function response(output: readonly JsonObject[], more: JsonObject = {}): JsonObject {
  return {
    id: 'resp_1',
    object: 'response',
    model: 'gpt-up',
    status: 'completed',
    output: [...output],
    usage: { input_tokens: 7, output_tokens: 3, total_tokens: 10 },
    error: null,
    incomplete_details: null,
    ...more,
  }
}

/** The frames of a response whose items have the given fragments of text, one list per item. */
export function responseFrames(
  items: readonly (readonly [item: JsonObject, fragments: readonly string[]])[],
  end: JsonObject = { type: 'response.completed' },
  more: JsonObject = {},
): JsonObject[] {
  const whole = response(
    items.map(([item]) => item),
    more,
  )
  const begun = { ...whole, status: 'in_progress', output: [], usage: null }
  return [
    { type: 'response.created', response: begun },
    ...items.flatMap(([item, fragments], output_index) => itemFrames(item, fragments, output_index)),
    { ...end, response: whole },
  ]
}

function itemFrames(item: JsonObject, chunks: readonly string[], output_index: number): JsonObject[] {
  const place = { item_id: item['id'], output_index }
  const isCall = item['type'] === 'function_call'
  const empty = isCall ? { ...item, arguments: '' } : { ...item, content: [] }
  const [type, at] = isCall
    ? ['response.function_call_arguments', {}]
    : ['response.output_text', { content_index: 0 }]
  const text = chunks.join('')
  const done = isCall ? { arguments: text } : { text }
  return [
    { type: 'response.output_item.added', output_index, item: empty },
    ...chunks.map((delta) => ({ type: `${type}.delta`, ...place, ...at, delta })),
    { type: `${type}.done`, ...place, ...at, ...done },
    { type: 'response.output_item.done', output_index, item },
  ]
}
