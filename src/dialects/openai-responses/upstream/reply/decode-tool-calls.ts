/** Decodes `function_call` and `custom_tool_call` items to tool calls. */
import { type JsonObject, type JsonValue, stringOf } from '../../../../chat/json.js'
import type { Head } from './emit-blocks.js'

/** The head of a call's block; null for other items, and for a call without a name. */
export function toolCallHead(json: JsonObject): Extract<Head, { kind: 'tool' }> | null {
  const type = stringOf(json['type'])
  const name = stringOf(json['name']) ?? ''
  if ((type !== 'function_call' && type !== 'custom_tool_call') || name === '') return null
  const id = stringOf(json['call_id']) ?? stringOf(json['id']) ?? ''
  return { kind: 'tool', id, name, custom: type === 'custom_tool_call' }
}

/** Arguments as text; some upstreams of this format send an object. */
export function toolArguments(value: JsonValue | undefined): string {
  if (typeof value === 'string') return value
  return value === undefined || value === null ? '' : JSON.stringify(value)
}
