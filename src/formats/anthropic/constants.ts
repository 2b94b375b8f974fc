/**
 * Constants and small rules of the Messages API that several files of this dialect share.
 *
 * Source: Claude API reference, "Messages", read 2026-11-20.
 */
import type { CacheMark } from '../chat/request.js'
import { isObject, type JsonObject, type JsonValue } from '../../base/json.js'
import type { NestedJson } from '../wire/json/nested-json.js'
import { shortHash } from '../wire/sha256.js'
import { isBlank } from '../wire/block-turns.js'

/** The current API version, which rejects sampling parameters. */
export const VERSION = '2026-10-21'

/** The previous API version, which accepts `temperature`, `top_p` and `top_k`. */
export const VERSION_WITH_SAMPLING = '2023-06-01'

/** The provider name of opaque blocks and the origin of thinking parts. */
export const PROVIDER = 'anthropic'

/**
 * The `cache_control` member for a mark; no member without one. The API's default lifetime is five minutes.
 */
export function cacheControl(mark: CacheMark | undefined): JsonObject {
  if (mark === undefined) return {}
  return {
    cache_control: mark.ttl === '1h' ? { type: 'ephemeral', ttl: '1h' } : { type: 'ephemeral' },
  }
}

/**
 * A call id in the alphabet `[A-Za-z0-9_-]`. The result depends only on the id. A changed id includes a hash
 * of the original, so that different ids stay different.
 */
export function wireId(id: string): string {
  if (/^[A-Za-z0-9_-]+$/.test(id)) return id
  return `${id.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 48)}_${shortHash(id)}`
}

/** The names of found tools, for upstreams without references to tools. */
export function foundText(names: readonly string[]): string {
  return `${names.length === 1 ? 'Tool' : 'Tools'} found: ${names.join(', ')}`
}

/** Whether the `caller` of a call is a program of code execution (Claude, "Programmatic tool calling"). */
export function isProgram(caller: JsonValue | undefined): boolean {
  return isObject(caller) && caller.type !== 'direct'
}

/**
 * The arguments of a call in the history as the object for `tool_use.input`: `{}` if blank, `{"_raw": text}`
 * if they are not a JSON object within the limits. Integers beyond 2^53 keep their digits.
 */
export function inputOf(text: string, nested: NestedJson): JsonObject {
  if (isBlank(text)) return {}
  const value = nested.parse(text)
  return isObject(value) ? value : { _raw: text }
}
