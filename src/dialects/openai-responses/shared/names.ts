/**
 * The words of the Responses format and what they mean in the canon.
 * Knows neither requests nor streams; only names, enumerations and their tables.
 *
 * Source: OpenAI API reference, "Responses", and the SDK's types, read 2026-11-20.
 */
import type { FinishReason } from '../../../chat/event.js'
import { isObject, type JsonObject, objectOf, stringOf } from '../../../chat/json.js'
import { tokenCount, type Usage } from '../../../chat/usage.js'

/** Longer ids of calls are refused: `string_above_max_length`. Chat completions stops at 40. */
export const MAX_CALL_ID = 64

/** The least that `max_output_tokens` may be: `integer_below_min_value`. */
export const MIN_OUTPUT_TOKENS = 16

/** Service tiers that the format takes. */
export const SERVICE_TIERS: readonly string[] = [
  'auto',
  'default',
  'flex',
  'scale',
  'priority',
  'fast',
  'ultrafast',
]

/** Those of them that served an answer and that chat completions knows too; `auto` served none. */
export const SERVED_TIERS: ReadonlySet<string> = new Set([
  'default',
  'flex',
  'scale',
  'priority',
  'fast',
])

/** Why a response ended, in the canon's words and in the upstream's. */
export interface Ending {
  readonly reason: FinishReason
  readonly raw: string
}

/**
 * The ending of a response that did not fail. There is no word for "wants its calls run": any call
 * in the output says so. What is incomplete for a reason nobody knows was cut all the same.
 */
export function endingOf(response: JsonObject, incomplete: boolean, calls: number): Ending {
  if (!incomplete) return { reason: calls > 0 ? 'tool-use' : 'stop', raw: 'completed' }
  const raw = stringOf(objectOf(response['incomplete_details'])['reason']) ?? 'incomplete'
  switch (raw) {
    case 'content_filter':
      return { reason: 'filter', raw }
    case 'steered':
      return { reason: calls > 0 ? 'tool-use' : 'stop', raw }
    default:
      return { reason: 'length', raw }
  }
}

/** Reads a `usage` object; counts that are absent or no numbers stay absent. */
export function usageOf(value: unknown): Usage {
  const usage: Usage = {}
  if (!isObject(value)) return usage
  const input = objectOf(value['input_tokens_details'])
  put(usage, 'input', value['input_tokens'])
  put(usage, 'output', value['output_tokens'])
  put(usage, 'cacheRead', input['cached_tokens'])
  put(usage, 'cacheWrite', input['cache_write_tokens'])
  put(usage, 'reasoning', objectOf(value['output_tokens_details'])['reasoning_tokens'])
  return usage
}

function put(usage: Usage, key: keyof Usage, value: unknown): void {
  const count = tokenCount(value)
  if (count !== undefined) usage[key] = count
}
