/**
 * Maps the canonical finish reason to the status of a response.
 *
 * Source: OpenAI API reference, "The response object", read 2026-11-20.
 */
import type { FinishReason } from '../../../../chat/event.js'

/** The status of a response that did not fail: `incomplete` if it reached a limit or a filter stopped it. */
export function encodeStatus(reason: FinishReason): 'completed' | 'incomplete' {
  return reason === 'length' || reason === 'filter' ? 'incomplete' : 'completed'
}

/** `incomplete_details` as JSON text. */
export function encodeIncompleteDetails(reason: FinishReason): string {
  if (encodeStatus(reason) === 'completed') return 'null'
  return `{"reason":"${reason === 'filter' ? 'content_filter' : 'max_output_tokens'}"}`
}
