/**
 * Encodes token counts as the `usage` members of the Messages format, for streams and whole replies.
 *
 * Source: Claude API reference, "Messages", read 2026-11-22.
 */
import type { Usage } from '../../../../chat/usage.js'

/**
 * The members of a `usage` object, without braces. The format counts cached tokens apart from `input_tokens`;
 * tokens that a provider counts both as cache reads and as cache writes are counted as reads.
 */
export function usageMembers(usage: Usage): string {
  const { output = 0, cacheRead = 0, reasoning } = usage
  const cacheWrite = writtenOf(usage)
  const fresh = Math.max(0, (usage.input ?? 0) - cacheRead - cacheWrite)
  const details =
    reasoning === undefined ? '' : `,"output_tokens_details":{"thinking_tokens":${reasoning}}`
  return (
    `"input_tokens":${fresh},"cache_creation_input_tokens":${cacheWrite},` +
    `"cache_read_input_tokens":${cacheRead},"output_tokens":${output}${details}`
  )
}

function writtenOf({ input = 0, cacheRead = 0, cacheWrite = 0 }: Usage): number {
  return Math.min(cacheWrite, Math.max(0, input - cacheRead))
}

/**
 * The `usage` object of a message, with cache lifetimes and the service tier; `tier` is OpenAI's name of it.
 */
export function messageUsage(usage: Usage, tier: string | undefined): string {
  const cacheWrite = writtenOf(usage)
  const cacheWrite1h = Math.min(usage.cacheWrite1h ?? 0, cacheWrite)
  const service = tier === 'default' ? '"standard"' : tier === 'priority' ? '"priority"' : 'null'
  return (
    `{${usageMembers(usage)},"cache_creation":{"ephemeral_5m_input_tokens":${cacheWrite - cacheWrite1h},` +
    `"ephemeral_1h_input_tokens":${cacheWrite1h}},"service_tier":${service}}`
  )
}
