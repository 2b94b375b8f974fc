/**
 * What must change in a client's own body before it passes to an upstream of the same format.
 * Everything else passes as the bytes that it is.
 */
import { arrayOf, isObject, type JsonObject, type JsonValue, stringOf } from '../../../chat/json.js'
import type { ModelFacts } from '../../../chat/model.js'
import { isReasoningToken, readReasoningToken } from '../../../wire/reasoning-token.js'
import type { Edit } from '../../../wire/json/splice.js'
import { RESPONSES_FIELDS, withheldEdits } from '../../../wire/withheld-fields.js'
import { largeEdit } from '../../../wire/json/write-json.js'
import type { Losses } from '../../dialect.js'
import { isOwnItemId } from '../client/reply/encode-content.js'
import { ORIGIN, reasoningItem } from '../shared/reasoning-state.js'

/** The model's name for this upstream, items as upstreams know them, and no field that would choose another model. */
export function edits(body: JsonObject, model: string, _facts: ModelFacts, losses: Losses): Edit[] {
  const drop = (path: string): void => losses.drop(path, 'no-equivalent')
  const out = withheldEdits(body, drop, RESPONSES_FIELDS)
  if (body['model'] !== model) out.push({ key: 'model', json: JSON.stringify(model) })
  const input = passedInput(body['input'], losses)
  if (input !== null) out.push(largeEdit('input', input))
  return out
}

/** The items without what only a gateway understands: its ids, and the state of other makers' reasoning. */
function passedInput(input: JsonValue | undefined, losses: Losses): JsonValue[] | null {
  const items = arrayOf(input)
  if (!items.some(isOurs)) return null
  return items.flatMap((item): JsonValue[] => {
    if (!isObject(item)) return [item]
    const sealed = stringOf(item['encrypted_content']) ?? ''
    if (!isReasoningToken(sealed)) return ownItem(item)
    const state = readReasoningToken(sealed)
    const own = state === null ? null : reasoningItem({ type: 'thinking', text: '', ...state })
    if (own !== null && state?.origin === ORIGIN) {
      return [{ ...own, summary: item['summary'] ?? [] }]
    }
    losses.drop('input.reasoning', 'no-equivalent')
    return []
  })
}

function isOurs(item: JsonValue): boolean {
  if (!isObject(item)) return false
  return (
    isReasoningToken(stringOf(item['encrypted_content']) ?? '') ||
    isOwnItemId(stringOf(item['id']) ?? '')
  )
}

/** The item without an id of ours. Reasoning without its state is nothing to an upstream that did not do it. */
function ownItem(item: JsonObject): JsonObject[] {
  const { id, ...rest } = item
  if (!isOwnItemId(stringOf(id) ?? '')) return [item]
  return item['type'] === 'reasoning' ? [] : [rest]
}
