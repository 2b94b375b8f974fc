/** Decodes the entries of `tool_calls`: whole calls, or fragments of calls in a stream. */
import {
  isObject,
  type JsonObject,
  type JsonValue,
  numberOf,
  objectOf,
  stringOf,
} from '../../../../chat/json.js'
import { thoughtSignature } from '../../shared/reasoning-state.js'

/** One fragment of a call. Members that the upstream did not send are empty. */
export interface CallFragment {
  /** The upstream's index of the call; null if it sent none. */
  index: number | null
  id: string
  name: string
  json: string
  custom: boolean
  signature?: string
}

/** A call or a fragment of one. `index`: its index in the reply, as `toolCallIndex` returns it. */
export function decodeToolCall(item: JsonObject, index: number | null): CallFragment {
  const custom = isObject(item['custom'])
  const inner = objectOf(custom ? item['custom'] : item['function'])
  const text = inner[custom ? 'input' : 'arguments']
  const fragment = {
    index,
    id: stringOf(item['id']) ?? '',
    name: stringOf(inner['name']) ?? '',
    json: isObject(text) ? JSON.stringify(text) : (stringOf(text) ?? ''),
    custom,
  }
  const signature = thoughtSignature(item)
  return signature === undefined ? fragment : { ...fragment, signature }
}

/**
 * The upstream's index of the call of a fragment; null if it sends none (or -1). Several calls in one list
 * that have a name but neither an index nor an id get negative indexes, because each is a call of its own.
 */
export function toolCallIndex(
  item: JsonObject,
  siblings: readonly JsonValue[],
  calls: number,
): number | null {
  const index = numberOf(item['index'])
  if (index !== undefined && index >= 0) return index
  const named = stringOf(objectOf(item['function'])['name']) ?? ''
  const anonymous = siblings.length > 1 && named !== '' && (stringOf(item['id']) ?? '') === ''
  return anonymous ? -1 - calls : null
}
