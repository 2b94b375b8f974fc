/**
 * The settings of a request that its reply repeats, as OpenAI's do.
 * Bounded: a reply does not repeat instructions, tools or schemas of more than 64 KiB.
 */
import type { JsonObject, JsonValue } from '../../../../chat/json.js'
import { longTextOf } from '../../../../chat/long-text.js'

const MAX_UNITS = 65_536

/** Member and what stands for it if the request does not have it. */
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

/** What a reply to this body repeats. */
export function repeatedOf(body: JsonObject): JsonObject {
  const repeated: JsonObject = { background: false }
  let room = MAX_UNITS
  for (const [key, standard] of DEFAULTS) {
    const value = longTextOf(body, key) === null ? (body[key] ?? standard) : standard
    const left = room - unitsIn(value, room)
    repeated[key] = left < 0 ? standard : value
    if (left >= 0) room = left
  }
  return repeated
}

/** Characters of all strings and names; stops counting beyond `most`. */
function unitsIn(value: JsonValue, most: number): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 1
  let units = 1
  for (const key of Object.keys(value)) {
    const member: JsonValue | undefined = Array.isArray(value) ? value[Number(key)] : value[key]
    units += key.length + (member === undefined ? 0 : unitsIn(member, most - units))
    if (units > most) break
  }
  return units
}
