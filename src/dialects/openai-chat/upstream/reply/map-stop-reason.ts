/**
 * Maps an upstream's `finish_reason` to the canonical reason.
 *
 * Source: OpenAI API reference, "Chat Completions", and the SDK's types, read 2026-11-20.
 */
import type { FinishReason } from '../../../../chat/event.js'

/** The canonical reason; `other` for an unknown word. */
export function finishReason(raw: string): FinishReason {
  switch (raw) {
    case 'stop':
    case 'eos':
      return 'stop'
    case 'length':
    case 'max_tokens':
    case 'model_length':
      return 'length'
    case 'tool_calls':
    case 'function_call':
      return 'tool-use'
    case 'content_filter':
      return 'filter'
    default:
      return 'other'
  }
}
