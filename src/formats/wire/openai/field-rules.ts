/**
 * Tables of field rules, and the rules of fields that chat completions and Responses have in common.
 */
import type { JsonValue } from '../../../base/json.js'
import type { ChatRequest } from '../../chat/request.js'
import { finiteObject, given, object, refuse, string } from '../json/check-fields.js'
import { readField, type ScalarField } from '../scalar-fields.js'
import { refuseForbidden as refuseForbiddenField } from '../request-fields.js'

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

/** The rules of the scalar fields at the top level of the body. */
export function scalarRules(fields: readonly ScalarField[]): [string, FieldRule][] {
  return fields.flatMap((field): [string, FieldRule][] => {
    const { wire, check } = field
    if (wire === null || check === null || wire.includes('.')) return []
    return [[wire, (value, request) => readField(field, value, request, wire)]]
  })
}

/** Other fields with the same name and rule in both formats. */
export const COMMON_RULES: readonly (readonly [string, FieldRule])[] = [
  keepInRest('metadata', metadataPairs),
  keepInRest('moderation', finiteObject),
  keepInRest('prompt_cache_key', string),
  keepInRest('prompt_cache_options', finiteObject),
  keepInRest('prompt_cache_retention', string),
]

/** Throws `malformed_request` for a field that would choose the upstream or the credential. */
function refuseForbidden(key: string): void {
  if (key === 'organization') refuse(key, 'is not allowed: the gateway chooses the upstream')
  refuseForbiddenField(key)
}

/** Checks `metadata` against OpenAI's limits: 16 pairs, keys of 64 and values of 512 characters. */
function metadataPairs(value: JsonValue): void {
  const entries = Object.entries(object(value, 'metadata'))
  if (entries.length > 16) refuse('metadata', 'must have at most 16 keys')
  for (const [key, item] of entries) {
    if (key.length > 64) refuse('metadata', 'must have keys of at most 64 characters')
    if (typeof item !== 'string' || item.length > 512) {
      refuse(`metadata.${key}`, 'must be a string of at most 512 characters')
    }
  }
}
