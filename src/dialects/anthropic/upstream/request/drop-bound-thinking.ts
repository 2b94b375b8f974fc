/**
 * Retries without thinking that is bound to a different prefix. Claude 5.1 and later reject thinking blocks
 * after a changed prefix: edited history, another system prompt or other tools.
 *
 * Source: Claude documentation, "Preserved thinking", read 2026-11-20.
 */
import { isObject, type JsonObject } from '../../../../chat/json.js'
import type { WireError } from '../../../../errors.js'

/** Matched in the message, because type and code are the same as for any rejected request. */
const BOUND = 'bound to a different conversation'

/**
 * The body with the option to drop such blocks; null if the error has another cause or the body has the
 * option.
 */
export function dropReasoning(body: JsonObject, error: WireError): JsonObject | null {
  if (error.kind !== 'upstream_rejected' || !error.message.includes(BOUND)) return null
  // Models that check the binding think adaptively by default.
  const thinking: JsonObject = isObject(body.thinking) ? body.thinking : { type: 'adaptive' }
  if (thinking.block_binding !== undefined) return null
  const block_binding = { prefix_mismatch_behavior: 'drop_block' }
  return { ...body, thinking: { ...thinking, block_binding } }
}
