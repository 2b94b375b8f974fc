/**
 * Decodes the `usage` object of responses.
 *
 * Source: OpenAI API reference, "The response object", read 2026-11-20.
 */
import { isObject, objectOf } from '../../../../chat/json.js'
import { tokenCount, type Usage } from '../../../../chat/usage.js'

/** Counts that are absent or not numbers stay absent. */
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
