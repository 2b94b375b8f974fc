/**
 * Reads `tools` and `toolConfig`: functions in Google's schema language or in JSON Schema, tools that Google
 * runs itself, and the choice among the functions.
 */
import type { JsonObject, JsonValue } from '../../../../chat/json.js'
import type { Tool, ToolChoice } from '../../../../chat/request.js'
import { finiteObject, given, refuse, string, text } from '../../../../wire/json/check-fields.js'
import { jsonSchema } from './decode-schema.js'
import { list, message, under, word } from './proto-fields.js'

/** Google stops at 512; as many as the other formats take. */
const MAX_TOOLS = 1_024
/** As Google allows it: a letter or underscore first, and no more than 128 characters. */
const NAME = /^[A-Za-z_][\w.:-]{0,127}$/

/** Members of a function that say nothing to the model, or nothing outside Google's live sessions. */
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
  readonly served: readonly string[]
  /** Members that nobody here knows. */
  readonly unknown: readonly string[]
}

/** Reads `tools`. */
export function decodeTools(value: JsonValue | undefined, path: string): Tools {
  const functions: Tool[] = []
  const served: string[] = []
  const unknown: string[] = []
  const names = new Set<string>()
  list(value, path, MAX_TOOLS).forEach((entry, at) => {
    const here = Array.isArray(value) ? `${path}[${at}]` : path
    const { functionDeclarations, ...others } = message(entry, here)
    const declared = list(functionDeclarations, `${here}.functionDeclarations`, MAX_TOOLS)
    declared.forEach((item, nth) => {
      const place = `${here}.functionDeclarations[${nth}]`
      const tool = declaration(item, place, unknown)
      if (names.has(tool.name))
        refuse(`${place}.name`, 'must differ from the other functions’ names')
      names.add(tool.name)
      functions.push(tool)
    })
    for (const [name, tool] of Object.entries(others)) {
      if (given(tool)) served.push(`${here}.${name}`)
    }
  })
  if (functions.length > MAX_TOOLS) refuse(path, `must have at most ${MAX_TOOLS} functions`)
  return { functions, served, unknown }
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
 * Reads `toolConfig`; undefined where it chooses nothing. Names must be those of declared functions, unless
 * Google's own tools are there as well, whose functions have names that nobody declares.
 */
export function decodeToolChoice(
  value: JsonValue,
  path: string,
  { functions, served }: Tools,
): ToolChoice | undefined {
  const config = message(value, path)
  if (!given(config['functionCallingConfig'])) return undefined
  const at = `${path}.functionCallingConfig`
  const calling = message(config['functionCallingConfig'], at)
  const names = list(calling['allowedFunctionNames'], `${at}.allowedFunctionNames`, MAX_TOOLS).map(
    (name, nth) => text(name, `${at}.allowedFunctionNames[${nth}]`, 128),
  )
  if (served.length === 0) {
    const known = new Set(functions.map(({ name }) => name))
    const stranger = names.findIndex((name) => !known.has(name))
    if (stranger !== -1) {
      refuse(`${at}.allowedFunctionNames[${stranger}]`, 'names a function that is not in tools')
    }
  }
  return chosen(calling, at, names, functions.length)
}

function chosen(
  calling: JsonObject,
  path: string,
  names: string[],
  functions: number,
): ToolChoice | undefined {
  const mode = given(calling['mode']) ? word(calling['mode'], `${path}.mode`) : ''
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
      // Beside tools of Google's alone nothing can be called.
      if (functions === 0) return undefined
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

/** What of `toolConfig` no other provider has. */
export function unknownConfig(value: JsonValue, path: string): string[] {
  const others = Object.entries(message(value, path)).filter(
    ([key, inner]) => given(inner) && !CONFIG.has(key),
  )
  return others.map(([key]) => under(path, key))
}

/** The second only says whether calls that Google runs itself are shown. */
const CONFIG = new Set(['functionCallingConfig', 'includeServerSideToolInvocations'])
