/**
 * Reads members of a request by the rules of ProtoJSON: `inlineData` and `inline_data` are one field, a
 * repeated field may be a single value, a number may be a string, and null is absent.
 *
 * Source: protobuf.dev, "ProtoJSON Format"; both spellings are in recorded requests of Google's SDKs.
 */
import type { JsonObject, JsonValue } from '../../../base/json.js'
import { given, object, refuse } from '../../wire/json/check-fields.js'

const INTEGER = /^-?\d{1,15}$/

/** The object with camelCase names. Throws `malformed_request` if a field is present in both spellings. */
export function message(value: unknown, path: string): JsonObject {
  const item = object(value, path)
  const keys = Object.keys(item)
  if (!keys.some((key) => key.includes('_'))) return item
  const out: JsonObject = {}
  for (const key of keys) {
    // Never `__proto__`, which becomes `_Proto__`.
    const name = camelCase(key)
    if (Object.hasOwn(out, name)) refuse(memberPath(path, name), 'is given twice, in both spellings')
    out[name] = item[key]
  }
  return out
}

/** A repeated field: an array of at most `max` items, or one item without the array. */
export function list(value: JsonValue | undefined, path: string, max: number): JsonValue[] {
  if (!given(value)) return []
  if (!Array.isArray(value)) return [value]
  return value.length <= max ? value : refuse(path, `must have at most ${max} items`)
}

/** A number that may be written as a string. */
export function numeric(value: JsonValue): JsonValue {
  return typeof value === 'string' && INTEGER.test(value) ? Number(value) : value
}

/** An enum value in upper case, as in Google's SDKs; some clients send lower case. */
export function enumValue(value: JsonValue | undefined, path: string): string {
  return typeof value === 'string' ? value.toUpperCase() : refuse(path, 'must be a string')
}

/** The path of a member; the path of the body is empty. */
export function memberPath(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}

/** Maximum number of cached names: more than the format has. */
const MAX_NAMES = 256
const names = new Map<string, string>()

function camelCase(key: string): string {
  const known = names.get(key)
  if (known !== undefined) return known
  const name = key.replace(/(?!^)_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
  if (names.size < MAX_NAMES && key.length <= 64) names.set(key, name)
  return name
}
