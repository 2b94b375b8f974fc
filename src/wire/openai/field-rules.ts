/**
 * Tables of field rules, and the rules of fields that chat completions and Responses have in common.
 */
import type { JsonValue } from '../../chat/json.js'
import type { ChatRequest } from '../../chat/request.js'
import { boolean, finiteObject, given, number, string, text } from '../json/check-fields.js'
import { metadataPairs, refuseForbidden } from './fields.js'

/** Checks one field and stores it in the request. Throws `malformed_request` naming the field. */
export type FieldRule = (value: JsonValue, request: ChatRequest) => void

/** The rules of a format, by the name of the field. */
export type FieldRules = ReadonlyMap<string, FieldRule>

/** Applies the rule of each field; fields without a rule are kept in `request.rest`. `null` means absent. */
export function applyRules(
  fields: Readonly<Record<string, JsonValue | undefined>>,
  rules: FieldRules,
  request: ChatRequest,
): void {
  for (const key of Object.keys(fields)) {
    const value = fields[key]
    if (!given(value)) continue
    const rule = rules.get(key)
    if (rule !== undefined) rule(value, request)
    else {
      refuseForbidden(key)
      request.rest[key] = value
    }
  }
}

/** The row of a field that `ChatRequest` has no member for: checked, and kept in `request.rest`. */
export function keepInRest(
  key: string,
  check: (value: JsonValue, path: string) => unknown,
): [string, FieldRule] {
  return [
    key,
    (value, request) => {
      check(value, key)
      request.rest[key] = value
    },
  ]
}

/** Fields with the same name and rule in both formats. */
export const COMMON_RULES: readonly (readonly [string, FieldRule])[] = [
  ['temperature', (v, r) => void (r.temperature = number(v, 'temperature', 0, 2))],
  ['top_p', (v, r) => void (r.topP = number(v, 'top_p', 0, 1))],
  ['parallel_tool_calls', (v, r) => void (r.parallelToolCalls = boolean(v, 'parallel_tool_calls'))],
  ['user', (v, r) => void (r.userId ??= string(v, 'user'))],
  ['safety_identifier', (v, r) => void (r.userId = text(v, 'safety_identifier', 128))],
  keepInRest('metadata', metadataPairs),
  keepInRest('moderation', finiteObject),
  keepInRest('prompt_cache_key', string),
  keepInRest('prompt_cache_options', finiteObject),
  keepInRest('prompt_cache_retention', string),
]
