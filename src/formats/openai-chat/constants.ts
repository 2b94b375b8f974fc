/**
 * Constants of the chat-completions format.
 *
 * Source: OpenAI API reference, "Chat Completions", and the SDK's types, read 2026-11-20.
 */

/** Maximum length of a tool call id in characters. OpenAI returns `string_above_max_length` beyond it. */
export const MAX_CALL_ID = 40

/**
 * The values that differ between similar chunks: texts, ids and numbers. A quote inside a JSON string has a
 * backslash before it, so every match is a member.
 */
export const FRAME_SLOTS =
  /"(?:(?:content|arguments|reasoning_content|reasoning|refusal|obfuscation|id)"\s*:\s*"|\w+"\s*:\s*(?=[-\d]))/g

/** Service tiers of OpenAI, and `on_demand` and `performance` of Groq (recorded). */
export const SERVICE_TIERS: readonly string[] = [
  'auto',
  'default',
  'flex',
  'scale',
  'priority',
  'fast',
  'on_demand',
  'performance',
]
