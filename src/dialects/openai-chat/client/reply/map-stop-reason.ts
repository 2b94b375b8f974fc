/**
 * Maps the canonical finish reason to the `finish_reason` that clients get.
 *
 * Source: OpenAI API reference, "Chat Completions", and the SDK's types, read 2026-11-20.
 */
import type { FinishReason } from '../../../../chat/event.js'

/** `tools`: the reply has tool calls. `legacy`: the client sent `functions` and expects `function_call`. */
export function encodeFinishReason(reason: FinishReason, tools: boolean, legacy: boolean): string {
  switch (reason) {
    case 'length':
      return 'length'
    case 'filter':
      return 'content_filter'
    case 'stop':
    case 'tool-use':
      if (!tools) return 'stop'
      return legacy ? 'function_call' : 'tool_calls'
    case 'pause':
    case 'other':
      return 'stop'
    default:
      return reason satisfies never
  }
}
