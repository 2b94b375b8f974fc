/** Parts of replies that chat completions cannot express. */
import type { ChatEvent } from '../../../../chat/event.js'
import { type JsonObject, stringOf } from '../../../../chat/json.js'

/** The path of the part of an event that is lost, such as `reply.citations`; null if nothing is lost. */
export function lossOf(event: ChatEvent): string | null {
  switch (event.type) {
    case 'opaque':
      return `reply.${kindOf(event.block)}`
    case 'citation':
      // A `url_citation` requires a URL.
      return event.citation.url === undefined ? 'reply.citations' : null
    case 'finish':
      // These become `stop`. The format has no member for the matched stop sequence.
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
