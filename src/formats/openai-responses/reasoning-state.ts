/** Converts the state of a reasoning item, its id and encrypted content, to one opaque string and back. */
import { type JsonObject, stringOf } from '../../base/json.js'
import type { ThinkingPart } from '../chat/request.js'

/** The origin of thinking parts whose state upstreams of this dialect accept. */
export const ORIGIN = 'openai-responses'

/** Ids are letters, digits and underscores (`rs_…`). Other gateways send encrypted content without an id. */
const STATE = /^(?:([A-Za-z0-9_-]*):)?([^]+)$/

/** `rs_…:` and the encrypted content; undefined for an item without encrypted content. */
export function stateOf(item: JsonObject): string | undefined {
  const encrypted = stringOf(item['encrypted_content']) ?? ''
  const id = stringOf(item['id']) ?? ''
  if (encrypted === '') return undefined
  return `${/^[A-Za-z0-9_-]*$/.test(id) ? id : ''}:${encrypted}`
}

/**
 * The reasoning item of a thinking part; null without its state, because the API refuses the id of an item
 * that it did not store.
 */
export function reasoningItem(part: ThinkingPart): JsonObject | null {
  if (part.origin !== ORIGIN) return null
  const [, id = '', encrypted = ''] = STATE.exec(part.signature ?? part.redacted ?? '') ?? []
  if (encrypted === '') return null
  const item: JsonObject = { type: 'reasoning' }
  if (id !== '') item['id'] = id
  item['summary'] = part.text === '' ? [] : [{ type: 'summary_text', text: part.text }]
  item['encrypted_content'] = encrypted
  return item
}
