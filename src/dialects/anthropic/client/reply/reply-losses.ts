/**
 * Names the parts of a reply that the Messages format cannot express.
 */
import type { ChatEvent } from '../../../../chat/event.js'
import { type JsonObject, stringOf } from '../../../../chat/json.js'
import { PROVIDER } from '../../shared/constants.js'

/** The path of the field that is lost from an event; null if nothing is lost. */
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

/** The provider's name for a block: its type, or its only key (Gemini). */
function kindOf(block: JsonObject): string {
  return stringOf(block.type) ?? Object.keys(block)[0] ?? 'opaque'
}
