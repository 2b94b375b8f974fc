/**
 * Names the parts of a reply that the Gemini format cannot express.
 */
import type { ChatEvent } from '../../../../chat/event.js'
import { stringOf } from '../../../../chat/json.js'
import { PROVIDER } from '../../shared/constants.js'

/** The path of the field that is lost from an event; null if nothing is lost. */
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
