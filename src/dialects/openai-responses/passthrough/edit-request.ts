/**
 * Edits of a client's own body for an upstream of the same format; all other bytes are forwarded unchanged.
 */
import { arrayOf, isObject, type JsonObject, type JsonValue, stringOf } from '../../../chat/json.js'
import { isReasoningToken, readReasoningToken } from '../../../wire/reasoning-token.js'
import type { Edit } from '../../../wire/json/splice.js'
import { RESPONSES_FIELDS, withheldEdits } from '../../../wire/withheld-fields.js'
import { largeEdit } from '../../../wire/json/write-json.js'
import type { EncodeContext, Losses } from '../../dialect.js'
import { isOwnItemId } from '../client/reply/encode-content.js'
import { ORIGIN, reasoningItem } from '../shared/reasoning-state.js'

/**
 * Sets the upstream's name of the model, removes fields that choose another model or provider, and converts
 * items that only the gateway understands.
 */
export function edits(
  body: JsonObject,
  modelName: string,
  { losses }: Pick<EncodeContext, 'losses'>,
): Edit[] {
  const drop = (path: string): void => losses.drop(path, 'no-equivalent')
  const out = withheldEdits(body, drop, RESPONSES_FIELDS)
  if (body['model'] !== modelName) out.push({ key: 'model', json: JSON.stringify(modelName) })
  const input = forwardedInput(body['input'], losses)
  if (input !== null) out.push(largeEdit('input', input))
  return out
}

/**
 * The items without ids of the gateway and without reasoning state of other dialects; null if nothing
 * changes.
 */
function forwardedInput(input: JsonValue | undefined, losses: Losses): JsonValue[] | null {
  const items = arrayOf(input)
  if (!items.some(isFromGateway)) return null
  return items.flatMap((item): JsonValue[] => {
    if (!isObject(item)) return [item]
    const encrypted = stringOf(item['encrypted_content']) ?? ''
    if (!isReasoningToken(encrypted)) return withoutOwnId(item)
    const state = readReasoningToken(encrypted)
    const own = state === null ? null : reasoningItem({ type: 'thinking', text: '', ...state })
    if (own !== null && state?.origin === ORIGIN) {
      return [{ ...own, summary: item['summary'] ?? [] }]
    }
    losses.drop('input.reasoning', 'no-equivalent')
    return []
  })
}

function isFromGateway(item: JsonValue): boolean {
  if (!isObject(item)) return false
  return (
    isReasoningToken(stringOf(item['encrypted_content']) ?? '') ||
    isOwnItemId(stringOf(item['id']) ?? '')
  )
}

/** The item without an id of the gateway; empty for reasoning without state, which upstreams cannot use. */
function withoutOwnId(item: JsonObject): JsonObject[] {
  const { id, ...rest } = item
  if (!isOwnItemId(stringOf(id) ?? '')) return [item]
  return item['type'] === 'reasoning' ? [] : [rest]
}
