/** Reasoning efforts in order, and the replacement for an effort that a model does not support. */
import type { ReasoningEffort } from './request.js'

/** From the least to the most effort. */
export const EFFORTS: readonly ReasoningEffort[] = [
  'none',
  'minimal',
  'low',
  'medium',
  'high',
  'xhigh',
  'max',
]

/**
 * The requested effort, or the next lower that the model supports, or its lowest. `supported` undefined means
 * unknown: the requested effort is returned.
 */
export function nearestEffort(
  requested: ReasoningEffort,
  supported: readonly string[] | undefined,
): ReasoningEffort {
  const known = EFFORTS.filter((effort) => supported?.includes(effort) === true)
  const rank = EFFORTS.indexOf(requested)
  return known.findLast((effort) => EFFORTS.indexOf(effort) <= rank) ?? known[0] ?? requested
}
