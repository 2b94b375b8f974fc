/** Parts of replies that Responses cannot express. */
import type { ChatEvent } from '../../../../chat/event.js'
import { type JsonObject, stringOf } from '../../../../chat/json.js'
import { ORIGIN } from '../../shared/reasoning-state.js'
import { imageData } from './encode-content.js'

/** The path of the part of an event that is lost, such as `reply.citations`; null if nothing is lost. */
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

/** The provider's name for a block: its type, or its only key (Gemini). */
function kindOf(block: JsonObject): string {
  return stringOf(block['type']) ?? Object.keys(block)[0] ?? 'opaque'
}
