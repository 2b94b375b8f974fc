/**
 * Thinking of Claude that is bound to another conversation: Claude 5.1 and later reject thinking blocks after
 * a changed prefix, which is edited history, another system prompt or other tools. The request is repeated
 * with the instruction to drop them.
 *
 * Source: Claude documentation, "Preserved thinking", read 2026-11-20.
 */
import type { WireError } from '../../errors.js'
import { isObject, type JsonObject, type JsonValue } from '../chat/json.js'

/** The beta flag that `thinking.block_binding` needs. */
export const BINDING_BETA = 'thinking-binding-controls-2026-08-01'

/** Matched in the message, because type and code are the same as for any rejected request. */
const BOUND = 'bound to a different conversation'

/**
 * The value of `thinking` with the instruction to drop such blocks; null if the error has another cause or
 * the value has the instruction.
 */
export function withoutBoundThinking(
  value: JsonValue | undefined,
  error: WireError,
): JsonObject | null {
  if (error.kind !== 'upstream_rejected' || !error.message.includes(BOUND)) return null
  // Models that check the binding think adaptively by default.
  const thinking: JsonObject = isObject(value) ? value : { type: 'adaptive' }
  if (thinking.block_binding !== undefined) return null
  return { ...thinking, block_binding: { prefix_mismatch_behavior: 'drop_block' } }
}
