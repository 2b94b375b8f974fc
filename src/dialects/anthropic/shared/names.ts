/**
 * Names and small rules of the Messages API that more than one file here needs.
 * Holds no translation; source: Claude API reference, "Messages", read 2026-11-20.
 */
import type { CacheMark } from '../../../chat/request.js'
import { isObject, type JsonObject, type JsonValue } from '../../../chat/json.js'
import type { NestedJson } from '../../../wire/json/nested-json.js'
import { sha256Hex } from '../../../wire/sha256.js'

/** The current API version; it refuses sampling parameters. */
export const VERSION = '2026-10-21'

/** The version before, still served; the one that takes `temperature`, `top_p` and `top_k`. */
export const VERSION_WITH_SAMPLING = '2023-06-01'

/** The beta flag that `thinking.block_binding` needs. */
export const BINDING_BETA = 'thinking-binding-controls-2026-08-01'

/** The provider name on opaque blocks and the origin on thinking parts. */
export const PROVIDER = 'anthropic'

/** The one property of the function tool that stands for a custom (free text) tool. */
export const CUSTOM_INPUT = 'input'

/** A turn as the Messages API takes it. */
export interface WireMessage {
  role: 'user' | 'assistant' | 'system'
  content: JsonObject[]
}

/** `{cache_control: …}` for a mark, nothing without one. Five minutes is the API's default. */
export function cacheControl(mark: CacheMark | undefined): JsonObject {
  if (mark === undefined) return {}
  return {
    cache_control: mark.ttl === '1h' ? { type: 'ephemeral', ttl: '1h' } : { type: 'ephemeral' },
  }
}

/**
 * A call id in the alphabet `[A-Za-z0-9_-]`. An id that must change gets a hash of the original, so
 * two different ids never become one; the same id always becomes the same.
 */
export function wireId(id: string): string {
  if (/^[A-Za-z0-9_-]+$/.test(id)) return id
  return `${id.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 48)}_${sha256Hex(id).slice(0, 8)}`
}

/** True for text that the API refuses as a block: empty or only white space. */
export function isBlank(text: string): boolean {
  return text.trim() === ''
}

/**
 * The arguments of a call in the history as the object that `tool_use.input` must be: blank is `{}`, anything
 * that is not a JSON object within the limits is kept as `{"_raw": text}`. Integers beyond 2^53 keep their digits.
 */
export function inputOf(text: string, nested: NestedJson): JsonObject {
  if (isBlank(text)) return {}
  const value = nested.parse(text)
  return isObject(value) ? value : { _raw: text }
}

/** The JSON value of a text, or `undefined` where it is not JSON. */
export function parseJson(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue
  } catch {
    return undefined
  }
}
