/**
 * What a reply may hold that the Messages format has no place for.
 * Reports and changes nothing.
 */
import type { ChatEvent } from '../../../../chat/event.js'
import { type JsonObject, stringOf } from '../../../../chat/json.js'
import { PROVIDER } from '../../shared/names.js'

/** The path of what is lost of an event; null if nothing is. */
export function lossOf(event: ChatEvent): string | null {
  switch (event.type) {
    case 'opaque':
      return event.provider === PROVIDER ? null : `reply.${kindOf(event.block)}`
    case 'image':
      return 'reply.image'
    case 'citation':
      return event.citation.url === undefined ? 'reply.citations' : null
    case 'finish':
      return event.reason === 'other' ? 'reply.stop_reason' : null
    default:
      return null
  }
}

/** What its provider calls a block: its type, or the one key that says what it is (Gemini). */
function kindOf(block: JsonObject): string {
  return stringOf(block.type) ?? Object.keys(block)[0] ?? 'opaque'
}
