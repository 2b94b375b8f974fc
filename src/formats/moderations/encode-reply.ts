/** Replies to clients of OpenAI's moderations. A category that the upstream does not judge is absent. */
import type { JsonObject } from '../../base/json.js'
import type { TaskResult } from '../chat/task.js'
import type { Seed } from '../dialect.js'
import { stringifyExact } from '../wire/json/exact-numbers.js'

/** The reply; null if the result has no verdicts. */
export function encodeVerdicts(result: TaskResult, seed: Seed): string | null {
  if (result.kind !== 'moderations') return null
  const results = result.verdicts.map(({ flagged, categories, scores }): JsonObject => {
    const applied = Object.keys(categories).map((name) => [name, ['text']])
    return {
      flagged,
      categories: { ...categories },
      category_scores: { ...scores },
      category_applied_input_types: Object.fromEntries(applied) as JsonObject,
    }
  })
  return stringifyExact({ id: seed.id, model: result.model ?? seed.model, results })
}
