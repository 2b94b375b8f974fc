/**
 * How much a model is to think: the words for it in order, and what stands for a word that a model lacks.
 */
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
 * The effort asked for, or the nearest lower that the model has; below all of them, its lowest. A model
 * of which nothing is known gets what was asked for.
 */
export function nearestEffort(
  asked: ReasoningEffort,
  has: readonly string[] | undefined,
): ReasoningEffort {
  const known = EFFORTS.filter((effort) => has?.includes(effort) === true)
  const place = EFFORTS.indexOf(asked)
  return known.findLast((effort) => EFFORTS.indexOf(effort) <= place) ?? known[0] ?? asked
}
