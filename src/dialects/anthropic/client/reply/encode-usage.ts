/**
 * Canonical token counts as the `usage` members of the Messages format, for streams and whole replies.
 *
 * Source: Claude API reference, "Messages", read 2026-11-22.
 */
import type { Usage } from '../../../../chat/usage.js'

/**
 * The counts of a `usage` object without its braces. The format counts the cache apart from the input, and its parts
 * add up: what a provider counts both as read and as written was read.
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

/** The counts and what only a message has: how long the cache is kept, and the tier; `tier` as OpenAI names it. */
export function messageUsage(usage: Usage, tier: string | undefined): string {
  const cacheWrite = writtenOf(usage)
  const cacheWrite1h = Math.min(usage.cacheWrite1h ?? 0, cacheWrite)
  const service = tier === 'default' ? '"standard"' : tier === 'priority' ? '"priority"' : 'null'
  return (
    `{${usageMembers(usage)},"cache_creation":{"ephemeral_5m_input_tokens":${cacheWrite - cacheWrite1h},` +
    `"ephemeral_1h_input_tokens":${cacheWrite1h}},"service_tier":${service}}`
  )
}
