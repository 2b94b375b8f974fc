/**
 * Thinking that is bound to what stood before it. Claude 5.1 and later refuse it behind a changed prefix:
 * edited history, another system prompt, other tools. Knows nothing of who changed what.
 *
 * Source: Claude documentation, "Preserved thinking", read 2026-11-20.
 */
import { isObject, type JsonObject } from '../../../../chat/json.js'
import type { WireError } from '../../../../errors.js'

/** The one wording that is looked at: type and code are those of any refused request. */
const BOUND = 'bound to a different conversation'

/** The body with the wish to leave such blocks out; null where that is not why it was refused. */
export function dropReasoning(body: JsonObject, error: WireError): JsonObject | null {
  if (error.kind !== 'upstream_rejected' || !error.message.includes(BOUND)) return null
  // A model that checks thinks by itself, so saying nothing means adaptive.
  const thinking: JsonObject = isObject(body.thinking) ? body.thinking : { type: 'adaptive' }
  if (thinking.block_binding !== undefined) return null
  const block_binding = { prefix_mismatch_behavior: 'drop_block' }
  return { ...body, thinking: { ...thinking, block_binding } }
}
