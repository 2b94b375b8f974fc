/**
 * Constants of the Responses format.
 *
 * Source: OpenAI API reference, "Responses", and the SDK's types, read 2026-11-20.
 */

/**
 * Maximum length of a call id in characters; OpenAI returns `string_above_max_length` beyond it. The limit of
 * chat completions is 40.
 */
export const MAX_CALL_ID = 64

/** Minimum of `max_output_tokens`; OpenAI returns `integer_below_min_value` below it. */
export const MIN_OUTPUT_TOKENS = 16

/** Service tiers that the format accepts. */
export const SERVICE_TIERS: readonly string[] = [
  'auto',
  'default',
  'flex',
  'scale',
  'priority',
  'fast',
  'ultrafast',
]

/**
 * Service tiers of replies that chat completions has too. `auto` is a request, not a tier that serves a
 * reply.
 */
export const SERVED_TIERS: ReadonlySet<string> = new Set(['default', 'flex', 'scale', 'priority', 'fast'])
