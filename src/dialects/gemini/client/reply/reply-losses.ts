/**
 * What an answer may hold that this format has no words for.
 * Reports and changes nothing; `encode-stream.ts` and `encode-reply.ts` write what can be said.
 */
import type { ChatEvent } from '../../../../chat/event.js'
import { stringOf } from '../../../../chat/json.js'
import { PROVIDER } from '../../shared/names.js'

/** The path of what is lost of an event; null for all that is said whole. */
export function lossOf(event: ChatEvent): string | null {
  switch (event.type) {
    case 'opaque': {
      if (event.provider === PROVIDER) return null
      const { block } = event
      return `reply.${stringOf(block['type']) ?? Object.keys(block)[0] ?? 'opaque'}`
    }
    case 'finish':
      if (event.reason === 'pause') return 'reply.finishReason'
      return event.stopSequence === undefined ? null : 'reply.stop_sequence'
    default:
      return null
  }
}
