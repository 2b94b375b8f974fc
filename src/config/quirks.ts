/** Quirks of upstreams: how their dialect differs, and lists of fields that several refuse. Data only. */

/** Edits to request bodies for an upstream that deviates from its dialect; data, not code. */
export interface QuirksConfig {
  readonly drop: readonly string[]
  readonly rename: Readonly<Record<string, string>>
  readonly set: Readonly<Record<string, unknown>>
  /** The same for each entry of `messages`; `roles` maps role names. */
  readonly messages: {
    readonly drop: readonly string[]
    readonly rename: Readonly<Record<string, string>>
    readonly roles: Readonly<Record<string, string>>
  }
  /** Replies in the client's own format: passed through as bytes, or decoded and encoded again. */
  readonly replies: 'pass' | 'rewrite'
}

/** An upstream that follows its dialect. */
export const PLAIN: QuirksConfig = {
  drop: [],
  rename: {},
  set: {},
  messages: { drop: [], rename: {}, roles: {} },
  replies: 'pass',
}

/** Fields of OpenAI's own service, which strict vendors refuse. */
export const OPENAI_SERVICE = [
  'metadata',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'safety_identifier',
  'store',
  'verbosity',
]

/** Fields of earlier replies that clients send back; vendors that validate messages refuse them. */
export const ECHOES = ['annotations', 'name', 'reasoning_content', 'reasoning_details', 'refusal']

/** The older name `max_tokens` is the only one that these vendors support. */
export const OLD_LIMIT = { max_completion_tokens: 'max_tokens' }

/** Chat templates of open models support only `system`. */
export const SYSTEM_ONLY = { developer: 'system' }
