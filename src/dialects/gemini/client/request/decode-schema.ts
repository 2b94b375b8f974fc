/**
 * Decodes Google's schema language (`parameters`, `responseSchema`) to JSON Schema: types in lower case,
 * `nullable` as a type, counts as numbers. Keeps every keyword that both languages have. Linear in the size
 * of the schema.
 *
 * Source: ai.google.dev/api/caching#Schema, read 2026-11-20.
 */
import { isObject, type JsonObject, type JsonValue } from '../../../../chat/json.js'
import { finiteObject } from '../../../../wire/json/check-fields.js'
import { message, numeric } from './proto-fields.js'

/** Keywords without equivalent in JSON Schema that do not affect validation. */
const IGNORED: ReadonlySet<string> = new Set(['propertyOrdering', 'example', 'nullable'])

const COUNTS: ReadonlySet<string> = new Set([
  'minItems',
  'maxItems',
  'minLength',
  'maxLength',
  'minProperties',
  'maxProperties',
])

/**
 * The JSON Schema. Throws `malformed_request` if the value is not an object or has numbers that are not
 * finite.
 */
export function jsonSchema(value: JsonValue | undefined, path: string): JsonObject {
  return converted(finiteObject(value, path), path)
}

function converted(value: JsonValue | undefined, path: string): JsonObject {
  const schema = message(value, path)
  const out: JsonObject = {}
  for (const [key, inner] of Object.entries(schema)) {
    if (inner === null || inner === undefined || IGNORED.has(key)) continue
    if (key === 'type') out[key] = typeOf(inner, schema['nullable'] === true)
    else if (key === 'enum') out[key] = enumOf(inner, schema['nullable'] === true)
    else if (COUNTS.has(key)) out[key] = numeric(inner)
    else out[keywordOf(key)] = nested(key, inner, path)
  }
  return out
}

/** The JSON Schema keyword: Google's `ref` and `defs` are `$ref` and `$defs`. */
function keywordOf(key: string): string {
  return key === 'ref' || key === 'defs' ? `$${key}` : key
}

function nested(key: string, value: JsonValue, path: string): JsonValue {
  switch (key) {
    case 'properties':
    case 'defs':
    case '$defs':
    case 'definitions':
      return isObject(value)
        ? Object.fromEntries(
            Object.entries(value).map(([name, inner]) => [name, inSchema(inner, path)]),
          )
        : value
    case 'items':
    case 'additionalProperties':
      return inSchema(value, path)
    case 'anyOf':
    case 'oneOf':
    case 'allOf':
    case 'prefixItems':
      return Array.isArray(value) ? value.map((inner) => inSchema(inner, path)) : value
    default:
      return value
  }
}

function inSchema(value: JsonValue | undefined, path: string): JsonValue {
  return isObject(value) ? converted(value, path) : (value ?? null)
}

/** The type in lower case. Newer APIs also accept JSON Schema's list of types. */
function typeOf(value: JsonValue, nullable: boolean): JsonValue {
  const types = (Array.isArray(value) ? value : [value]).map((type) =>
    typeof type === 'string' ? type.toLowerCase() : type,
  )
  if (nullable && !types.includes('null')) types.push('null')
  return types.length === 1 ? (types[0] ?? null) : types
}

/** The allowed values, with null if the value is nullable. */
function enumOf(value: JsonValue, nullable: boolean): JsonValue {
  if (!Array.isArray(value) || !nullable || value.includes(null)) return value
  return [...value, null]
}
