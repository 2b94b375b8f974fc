/**
 * What of an answer the Responses format has no words for.
 */
import type { ChatEvent } from '../../../../chat/event.js'
import { type JsonObject, stringOf } from '../../../../chat/json.js'
import { ORIGIN } from '../../shared/reasoning-state.js'
import { imageData } from './encode-content.js'

/** The path, `reply.` and a field, of what cannot be said of an event; null for all that is said whole. */
export function lossOf(event: ChatEvent): string | null {
  switch (event.type) {
    case 'opaque':
      return event.provider === ORIGIN ? null : `reply.${kindOf(event.block)}`
    case 'citation':
      return event.citation.url === undefined ? 'reply.citations' : null
    case 'image':
      return imageData(event.url) === null ? 'reply.images' : null
    case 'finish':
      if (event.reason === 'pause' || event.reason === 'other') return 'reply.finish_reason'
      return event.stopSequence === undefined ? null : 'reply.stop_sequence'
    default:
      return null
  }
}

/** What its provider calls a block: its type, or the one key that says what it is (Gemini). */
function kindOf(block: JsonObject): string {
  return stringOf(block['type']) ?? Object.keys(block)[0] ?? 'opaque'
}
