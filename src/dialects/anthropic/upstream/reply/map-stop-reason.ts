/**
 * Anthropic's stop reasons as canonical finish reasons.
 *
 * Source: Claude API reference, "Handling stop reasons", read 2026-11-22.
 */
import type { FinishReason } from '../../../../chat/event.js'

/**
 * The canonical reason. `sawTool`: the model called one of the client's tools. `sawJson`: it called the
 * synthetic tool that carries the reply's text, which is not visible to the client.
 */
export function finishReason(
  stopReason: string | null,
  sawTool: boolean,
  sawJson: boolean,
): FinishReason {
  switch (stopReason) {
    case 'end_turn':
    case 'stop_sequence':
      return sawTool ? 'tool-use' : 'stop'
    case 'tool_use':
      return sawJson && !sawTool ? 'stop' : 'tool-use'
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
