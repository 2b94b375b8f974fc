/**
 * The item in which a client keeps the summary of a conversation: `compaction`, with the summary in a token
 * as reasoning state is. Items of OpenAI's own are encrypted, and only OpenAI reads them.
 */
import { stringOf, type JsonObject } from '../../base/json.js'
import { refuse } from '../wire/json/check-fields.js'
import type { NestedJson } from '../wire/json/nested-json.js'
import { isReasoningToken, readReasoningToken, writeReasoningToken } from '../wire/reasoning-token.js'

/** In place of the dialect whose state a token has. */
const ORIGIN = 'summary'
/** `compaction_summary` is the name that older versions of Codex have. */
const TYPES: ReadonlySet<unknown> = new Set(['compaction', 'compaction_summary'])

/** The item as JSON text. `id` needs no escapes. */
export function compactionItem(id: string, summary: string): string {
  const token = writeReasoningToken({ origin: ORIGIN, thoughts: [{ text: summary }] })
  return `{"id":"${id}","type":"compaction","encrypted_content":"${token}"}`
}

/** Whether the item is a compaction, of the gateway or of OpenAI. */
export function isCompaction({ type }: JsonObject): boolean {
  return TYPES.has(type)
}

/**
 * The text in place of the conversation before the item; null for any item that is not a compaction of a
 * gateway. Throws `malformed_request` for a changed one, because the conversation would be lost.
 */
export function summaryIn(item: JsonObject, path: string, nested: NestedJson): string | null {
  const token = stringOf(item['encrypted_content']) ?? ''
  if (!isCompaction(item) || !isReasoningToken(token)) return null
  const state = readReasoningToken(token, nested)
  const text = state?.origin === ORIGIN ? state.thoughts[0]?.text : undefined
  if (text === undefined) {
    return refuse(`${path}.encrypted_content`, 'was changed: send the compaction unchanged')
  }
  return `The conversation up to here was replaced by this summary of it:\n\n${text}`
}
