/**
 * The settings of a request that its response repeats. Instructions, tools and schemas are repeated up to 64
 * KiB in total; a larger setting is replaced by its default.
 */
import type { JsonObject, JsonValue } from '../../../../chat/json.js'
import { longTextOf } from '../../../../chat/long-text.js'

const MAX_UNITS = 65_536

/** Repeated members, with the value for a request without the member. */
const DEFAULTS: readonly (readonly [key: string, value: JsonValue])[] = [
  ['instructions', null],
  ['max_output_tokens', null],
  ['max_tool_calls', null],
  ['metadata', {}],
  ['parallel_tool_calls', true],
  ['previous_response_id', null],
  ['prompt_cache_key', null],
  ['reasoning', { effort: null, summary: null }],
  ['safety_identifier', null],
  ['service_tier', 'auto'],
  ['store', true],
  ['temperature', 1],
  ['text', { format: { type: 'text' } }],
  ['tool_choice', 'auto'],
  ['tools', []],
  ['top_logprobs', 0],
  ['top_p', 1],
  ['truncation', 'disabled'],
  ['user', null],
]

/** The repeated members of a response to this body. */
export function repeatedOf(body: JsonObject): JsonObject {
  const repeated: JsonObject = { background: false }
  let remaining = MAX_UNITS
  for (const [key, standard] of DEFAULTS) {
    const value = longTextOf(body, key) === null ? (body[key] ?? standard) : standard
    const after = remaining - unitsIn(value, remaining)
    repeated[key] = after < 0 ? standard : value
    if (after >= 0) remaining = after
  }
  return repeated
}

/** UTF-16 units of all strings and names. Counting stops beyond `limit`. */
function unitsIn(value: JsonValue, limit: number): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 1
  let units = 1
  for (const key of Object.keys(value)) {
    const member: JsonValue | undefined = Array.isArray(value) ? value[Number(key)] : value[key]
    units += key.length + (member === undefined ? 0 : unitsIn(member, limit - units))
    if (units > limit) break
  }
  return units
}
