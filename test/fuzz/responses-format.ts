/**
 * Builders for replies in OpenAI's Responses format, whole and in events, by its documentation and without
 * the gateway's codecs.
 */
import type { JsonObject } from '../../src/chat/json.js'

/** A completed message item. */
export function messageItem(text: string): JsonObject {
  const content = [{ type: 'output_text', text, annotations: [] }]
  return { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content }
}

/** A completed call item. */
export function callItem(id: string, name: string, json: string): JsonObject {
  return { type: 'function_call', id: `fc_${id}`, call_id: id, name, arguments: json }
}

/** A whole response; `more` replaces members. */
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

/** The frames of a response; each item's text is sent in the fragments beside it. */
export function responseFrames(
  items: readonly (readonly [item: JsonObject, fragments: readonly string[]])[],
  end: JsonObject = { type: 'response.completed' },
  more: JsonObject = {},
): JsonObject[] {
  const whole = response(
    items.map(([item]) => item),
    more,
  )
  const started = { ...whole, status: 'in_progress', output: [], usage: null }
  return [
    { type: 'response.created', response: started },
    ...items.flatMap(([item, fragments], output_index) =>
      itemFrames(item, fragments, output_index),
    ),
    { ...end, response: whole },
  ]
}

function itemFrames(
  item: JsonObject,
  fragments: readonly string[],
  output_index: number,
): JsonObject[] {
  const place = { item_id: item['id'], output_index }
  const isCall = item['type'] === 'function_call'
  const empty = isCall ? { ...item, arguments: '' } : { ...item, content: [] }
  const [type, at] = isCall
    ? ['response.function_call_arguments', {}]
    : ['response.output_text', { content_index: 0 }]
  const words = fragments.join('')
  const done = isCall ? { arguments: words } : { text: words }
  return [
    { type: 'response.output_item.added', output_index, item: empty },
    ...fragments.map((delta) => ({ type: `${type}.delta`, ...place, ...at, delta })),
    { type: `${type}.done`, ...place, ...at, ...done },
    { type: 'response.output_item.done', output_index, item },
  ]
}
