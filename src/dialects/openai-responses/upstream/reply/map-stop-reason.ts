/**
 * Maps the end of a response to the canonical finish reason.
 *
 * Source: OpenAI API reference, "The response object", read 2026-11-20.
 */
import type { FinishReason } from '../../../../chat/event.js'
import { type JsonObject, objectOf, stringOf } from '../../../../chat/json.js'

/** Why a response ended: the canonical reason and the upstream's own word. */
export interface Ending {
  readonly reason: FinishReason
  readonly raw: string
}

/**
 * The ending of a response that did not fail. The format has no reason for tool calls, so `calls`, the number
 * of calls in the output, decides. A response that is incomplete for an unknown reason counts as truncated by
 * its length.
 */
export function endingOf(response: JsonObject, incomplete: boolean, calls: number): Ending {
  if (!incomplete) return { reason: calls > 0 ? 'tool-use' : 'stop', raw: 'completed' }
  const raw = stringOf(objectOf(response['incomplete_details'])['reason']) ?? 'incomplete'
  switch (raw) {
    case 'content_filter':
      return { reason: 'filter', raw }
    case 'steered':
      return { reason: calls > 0 ? 'tool-use' : 'stop', raw }
    default:
      return { reason: 'length', raw }
  }
}
