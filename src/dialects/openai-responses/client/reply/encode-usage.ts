/**
 * Encodes usage as the `usage` object of a response.
 *
 * Source: OpenAI API reference, "The response object", read 2026-11-20.
 */
import { totalTokens, type Usage } from '../../../../chat/usage.js'

/** The JSON text. All counts are integers, because the types of OpenAI's SDKs require them. */
export function encodeUsage(usage: Usage): string {
  const { input = 0, output = 0, cacheRead = 0, cacheWrite, reasoning = 0 } = usage
  const written = cacheWrite === undefined ? '' : `,"cache_write_tokens":${cacheWrite}`
  return `{"input_tokens":${input},"input_tokens_details":{"cached_tokens":${cacheRead}${written}},"output_tokens":${output},"output_tokens_details":{"reasoning_tokens":${reasoning}},"total_tokens":${totalTokens(usage) ?? 0}}`
}
