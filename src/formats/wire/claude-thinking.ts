/**
 * Thinking of Claude, for the Messages API and for Converse: efforts, and thinking that is bound to another
 * conversation. Budgets are in `chat/thinking-budgets.ts`.
 */
import type { WireError } from '../../errors.js'
import { isObject, type JsonObject, type JsonValue } from '../../base/json.js'

/** From the lowest to the highest. */
export const EFFORTS: readonly string[] = ['low', 'medium', 'high', 'xhigh', 'max']

/** The beta flag that `thinking.block_binding` needs. */
export const BINDING_BETA = 'thinking-binding-controls-2026-08-01'

/** Matched in the message, because type and code are the same as for any rejected request. */
const BOUND = 'bound to a different conversation'

/**
 * The value of `thinking` with the instruction to drop thinking of another conversation; null if the error
 * has another cause or the value has the instruction. Claude 5.1 and later reject thinking after a changed
 * prefix: edited history, another system prompt or other tools.
 *
 * Source: Claude documentation, "Preserved thinking", read 2026-11-20.
 */
export function withoutBoundThinking(value: JsonValue | undefined, error: WireError): JsonObject | null {
  if (error.kind !== 'upstream_rejected' || !error.message.includes(BOUND)) return null
  // Models that check the binding think adaptively by default.
  const thinking: JsonObject = isObject(value) ? value : { type: 'adaptive' }
  if (thinking.block_binding !== undefined) return null
  return { ...thinking, block_binding: { prefix_mismatch_behavior: 'drop_block' } }
}
