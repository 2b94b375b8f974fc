/**
 * Maps Anthropic's stop reasons to canonical finish reasons.
 *
 * Source: Claude API reference, "Handling stop reasons", read 2026-11-22.
 */
import type { FinishReason } from '../../../../chat/event.js'

/**
 * The canonical reason. `hasToolCall`: the model called one of the client's tools. `hasJsonCall`: it called
 * the synthetic tool that carries the reply's text, which is not visible to the client.
 */
export function finishReason(
  stopReason: string | null,
  hasToolCall: boolean,
  hasJsonCall: boolean,
): FinishReason {
  switch (stopReason) {
    case 'end_turn':
    case 'stop_sequence':
      return hasToolCall ? 'tool-use' : 'stop'
    case 'tool_use':
      return hasJsonCall && !hasToolCall ? 'stop' : 'tool-use'
    case 'max_tokens':
    case 'model_context_window_exceeded':
      return 'length'
    case 'refusal':
      return 'filter'
    case 'pause_turn':
      return 'pause'
    default:
      return 'other'
  }
}
