/**
 * What an answer may hold that a chat completion has no words for.
 * Reports and changes nothing; `encode-stream.ts` and `encode-reply.ts` write what can be said.
 */
import type { ChatEvent } from '../../../../chat/event.js'
import { type JsonObject, stringOf } from '../../../../chat/json.js'

/** The path of what is lost of an event; null for all that is said whole. */
export function lossOf(event: ChatEvent): string | null {
  switch (event.type) {
    case 'opaque':
      return `reply.${kindOf(event.block)}`
    case 'citation':
      // Only a source with an address is an `url_citation`.
      return event.citation.url === undefined ? 'reply.citations' : null
    case 'finish':
      // The word is `stop` for these, and which sequence stopped the model is never told.
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
