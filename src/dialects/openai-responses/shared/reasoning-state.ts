/**
 * The state of a reasoning item as one opaque string, and back: the item's id and its sealed content.
 * Knows nothing of who keeps it between two turns; never looks into the sealed content.
 */
import { type JsonObject, stringOf } from '../../../chat/json.js'
import type { ThinkingPart } from '../../../chat/request.js'

/** The origin of thinking that this dialect can take back. */
export const ORIGIN = 'openai-responses'

/** Ids are letters, digits and underscores (`rs_…`); other gateways hand out sealed content without. */
const STATE = /^(?:([A-Za-z0-9_-]*):)?([^]+)$/

/** `rs_…:` and the sealed content; undefined for an item that came without it. */
export function stateOf(item: JsonObject): string | undefined {
  const sealed = stringOf(item['encrypted_content']) ?? ''
  const id = stringOf(item['id']) ?? ''
  if (sealed === '') return undefined
  return `${/^[A-Za-z0-9_-]*$/.test(id) ? id : ''}:${sealed}`
}

/**
 * The reasoning item that a part of an earlier answer was; null where its state did not come along,
 * since the API knows nothing of an item's id when it was told not to store it.
 */
export function reasoningItem(part: ThinkingPart): JsonObject | null {
  if (part.origin !== ORIGIN) return null
  const [, id = '', sealed = ''] = STATE.exec(part.signature ?? part.redacted ?? '') ?? []
  if (sealed === '') return null
  const item: JsonObject = { type: 'reasoning' }
  if (id !== '') item['id'] = id
  item['summary'] = part.text === '' ? [] : [{ type: 'summary_text', text: part.text }]
  item['encrypted_content'] = sealed
  return item
}
