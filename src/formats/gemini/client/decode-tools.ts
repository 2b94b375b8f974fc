/**
 * Decodes `tools` and `toolConfig`: functions in Google's schema language or in JSON Schema, tools that
 * Google runs itself, and the tool choice.
 */
import { isObject, type JsonObject, type JsonValue } from '../../chat/json.js'
import type { Tool, ToolChoice } from '../../chat/request.js'
import { finiteObject, given, refuse, string, text } from '../../wire/json/check-fields.js'
import { list, message, memberPath, enumValue, numeric } from './proto-fields.js'

/** The limit of the other dialects; Google's own is 512. */
const MAX_TOOLS = 1_024
/** Google's rule for function names: a letter or underscore first, at most 128 characters. */
const NAME = /^[A-Za-z_][\w.:-]{0,127}$/

/** Members of a function that are decoded, or that are ignored because they do not affect the reply. */
const FUNCTION = new Set([
  'name',
  'description',
  'parameters',
  'parametersJsonSchema',
  'response',
  'responseJsonSchema',
  'behavior',
])

/** The functions, and the paths of tools that only Google can run. */
export interface Tools {
  readonly functions: Tool[]
  readonly hosted: readonly string[]
  /** Paths of unknown members. */
  readonly unknown: readonly string[]
}

/** Decodes `tools`. */
export function decodeTools(value: JsonValue | undefined, path: string): Tools {
  const functions: Tool[] = []
  const hosted: string[] = []
  const unknown: string[] = []
  const names = new Set<string>()
  list(value, path, MAX_TOOLS).forEach((entry, at) => {
    const here = Array.isArray(value) ? `${path}[${at}]` : path
    const { functionDeclarations, ...others } = message(entry, here)
    const declared = list(functionDeclarations, `${here}.functionDeclarations`, MAX_TOOLS)
    declared.forEach((item, nth) => {
      const itemPath = `${here}.functionDeclarations[${nth}]`
      const tool = declaration(item, itemPath, unknown)
      if (names.has(tool.name))
        refuse(`${itemPath}.name`, 'must differ from the names of the other functions')
      names.add(tool.name)
      functions.push(tool)
    })
    for (const [name, tool] of Object.entries(others)) {
      if (given(tool)) hosted.push(`${here}.${name}`)
    }
  })
  if (functions.length > MAX_TOOLS) refuse(path, `must have at most ${MAX_TOOLS} functions`)
  return { functions, hosted, unknown }
}

function declaration(value: JsonValue, path: string, unknown: string[]): Tool {
  const item = message(value, path)
  const tool: Tool = { name: functionName(item['name'], `${path}.name`) }
  const { description, parameters, parametersJsonSchema } = item
  if (given(description)) tool.description = string(description, `${path}.description`)
  if (given(parameters) && given(parametersJsonSchema)) {
    refuse(path, 'must not have both parameters and parametersJsonSchema')
  }
  const schema = `${path}.parametersJsonSchema`
  if (given(parameters)) tool.parameters = jsonSchema(parameters, `${path}.parameters`)
  else if (given(parametersJsonSchema)) tool.parameters = finiteObject(parametersJsonSchema, schema)
  for (const key in item) if (!FUNCTION.has(key)) unknown.push(`${path}.${key}`)
  return tool
}

function functionName(value: JsonValue | undefined, path: string): string {
  if (typeof value === 'string' && NAME.test(value)) return value
  const rule =
    'must be a letter or _ and up to 127 more of the characters A-Z, a-z, 0-9, _, ., : and -'
  return refuse(path, rule)
}

/**
 * Decodes `toolConfig`; undefined if it chooses nothing. Throws `malformed_request` if a name is not a
 * declared function, unless the request has Google's own tools, whose functions are not declared.
 */
export function decodeToolChoice(
  value: JsonValue,
  path: string,
  { functions, hosted }: Tools,
): ToolChoice | undefined {
  const config = message(value, path)
  if (!given(config['functionCallingConfig'])) return undefined
  const at = `${path}.functionCallingConfig`
  const calling = message(config['functionCallingConfig'], at)
  const names = list(calling['allowedFunctionNames'], `${at}.allowedFunctionNames`, MAX_TOOLS).map(
    (name, nth) => text(name, `${at}.allowedFunctionNames[${nth}]`, 128),
  )
  if (hosted.length === 0) {
    const known = new Set(functions.map(({ name }) => name))
    const unknown = names.findIndex((name) => !known.has(name))
    if (unknown !== -1) {
      refuse(`${at}.allowedFunctionNames[${unknown}]`, 'names a function that is not in tools')
    }
  }
  return chosen(calling, at, { names, functionCount: functions.length })
}

interface Choosable {
  /** The allowed names; empty for all functions. */
  readonly names: string[]
  readonly functionCount: number
}

function chosen(
  calling: JsonObject,
  path: string,
  { names, functionCount }: Choosable,
): ToolChoice | undefined {
  const mode = given(calling['mode']) ? enumValue(calling['mode'], `${path}.mode`) : ''
  switch (mode) {
    case '':
    case 'MODE_UNSPECIFIED':
      return undefined
    case 'NONE':
      return { mode: 'none' }
    case 'AUTO':
      return { mode: 'auto' }
    case 'VALIDATED':
      return names.length === 0 ? { mode: 'auto' } : { mode: 'allowed', required: false, names }
    case 'ANY': {
      // With only Google's own tools there is no function to call.
      if (functionCount === 0) return undefined
      const [name] = names
      if (name === undefined) return { mode: 'required' }
      return names.length === 1
        ? { mode: 'named', name }
        : { mode: 'allowed', required: true, names }
    }
    default:
      return refuse(`${path}.mode`, 'must be one of AUTO, ANY, NONE, VALIDATED')
  }
}

/** The paths of members of `toolConfig` that only Gemini upstreams accept. */
export function unknownConfig(value: JsonValue, path: string): string[] {
  const others = Object.entries(message(value, path)).filter(
    ([key, inner]) => given(inner) && !CONFIG.has(key),
  )
  return others.map(([key]) => memberPath(path, key))
}

/** `includeServerSideToolInvocations` only affects the visibility of Google's own calls. */
const CONFIG = new Set(['functionCallingConfig', 'includeServerSideToolInvocations'])

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
 *
 * Decodes Google's schema language (`parameters`, `responseSchema`) to JSON Schema: types in lower case,
 * `nullable` as a type, counts as numbers. Keeps every keyword that both languages have. Linear in the size
 * of the schema.
 *
 * Source: ai.google.dev/api/caching#Schema, read 2026-11-20.
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
