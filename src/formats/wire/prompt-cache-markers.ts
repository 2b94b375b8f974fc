/** Cache markers that clients put on parts, messages and tools. */
import type { JsonObject } from '../../base/json.js'
import type { CacheMark } from '../chat/request.js'
import { given, object, oneOf } from './json/check-fields.js'

/**
 * The cache marker on a part, message or tool: OpenAI's `prompt_cache_breakpoint` or Anthropic's
 * `cache_control`. OpenAI's `ttl` of 30 minutes or more becomes one hour. Throws `malformed_request` naming
 * the member.
 */
export function cacheMark(item: JsonObject, path: string): CacheMark | undefined {
  const breakpoint = item['prompt_cache_breakpoint']
  if (given(breakpoint)) {
    const at = `${path}.prompt_cache_breakpoint`
    const mark = object(breakpoint, at)
    oneOf(mark['mode'], `${at}.mode`, ['explicit'])
    if (!given(mark['ttl'])) return { ttl: '5m', breakpoint: {} }
    return { ttl: '1h', breakpoint: { ttl: oneOf(mark['ttl'], `${at}.ttl`, ['30m', '12h']) } }
  }
  const control = item['cache_control']
  if (!given(control)) return undefined
  const at = `${path}.cache_control`
  const mark = object(control, at)
  oneOf(mark['type'], `${at}.type`, ['ephemeral'])
  return { ttl: given(mark['ttl']) ? oneOf(mark['ttl'], `${at}.ttl`, ['5m', '1h']) : '5m' }
}

/** The part with the cache marker of its wire form, if it has one. */
export function withCacheMark<T extends { cache?: CacheMark }>(part: T, item: JsonObject, path: string): T {
  const cache = cacheMark(item, path)
  if (cache !== undefined) part.cache = cache
  return part
}
