/**
 * Reads `tools`, `tool_choice`, their legacy forms, and `response_format`.
 * Knows nothing of messages.
 */
import { type JsonObject, type JsonValue } from '../../../../chat/json.js'
import type { ResponseFormat, Tool, ToolChoice } from '../../../../chat/request.js'
import { cacheMark } from '../../../../wire/cache-mark.js'
import {
  array,
  boolean,
  finiteObject,
  given,
  object,
  oneOf,
  refuse,
  string,
} from '../../../../wire/json/check-fields.js'
import { toolName } from '../../../../wire/openai/names.js'

/** OpenAI stops at 128; more is allowed here because other upstreams do. */
const MAX_TOOLS = 1_024

/** Reads `tools`. */
export function decodeTools(value: JsonValue | undefined): Tool[] {
  return array(value, 'tools', MAX_TOOLS).map((item, at) => decodeTool(item, `tools[${at}]`))
}

/** Reads the legacy `functions`. */
export function decodeFunctions(value: JsonValue | undefined): Tool[] {
  return array(value, 'functions', MAX_TOOLS).map((item, at) => {
    const path = `functions[${at}]`
    return decodeFunction(object(item, path), path)
  })
}

function decodeTool(value: JsonValue, path: string): Tool {
  const item = object(value, path)
  // Mistral's clients leave the type out (recorded).
  const type = given(item['type'])
    ? oneOf(item['type'], `${path}.type`, ['function', 'custom'])
    : 'function'
  const inner = `${path}.${type}`
  const body = object(item[type], inner)
  const tool = type === 'function' ? decodeFunction(body, inner) : decodeCustom(body, inner)
  const cache = cacheMark(item, path)
  if (cache !== undefined) tool.cache = cache
  return tool
}

function decodeFunction(body: JsonObject, path: string): Tool {
  const tool: Tool = { name: toolName(body['name'], `${path}.name`) }
  if (given(body['description'])) {
    tool.description = string(body['description'], `${path}.description`)
  }
  if (given(body['parameters'])) {
    tool.parameters = finiteObject(body['parameters'], `${path}.parameters`)
  }
  if (given(body['strict'])) tool.strict = boolean(body['strict'], `${path}.strict`)
  return tool
}

function decodeCustom(body: JsonObject, path: string): Tool {
  const tool: Tool = { name: toolName(body['name'], `${path}.name`), custom: {} }
  if (given(body['description'])) {
    tool.description = string(body['description'], `${path}.description`)
  }
  if (given(body['format'])) {
    const format = object(body['format'], `${path}.format`)
    oneOf(format['type'], `${path}.format.type`, ['text', 'grammar'])
    tool.custom = { format }
  }
  return tool
}

/** Reads `tool_choice`; a choice that forces a call needs tools, a named one needs that tool. */
export function decodeToolChoice(value: JsonValue, tools: readonly Tool[]): ToolChoice {
  const choice = readToolChoice(value)
  if (choice.mode === 'auto' || choice.mode === 'none') return choice
  if (tools.length === 0) refuse('tool_choice', 'needs at least one tool in tools')
  const known = new Set(tools.map((tool) => tool.name))
  for (const name of choice.mode === 'named' ? [choice.name] : namesOf(choice)) {
    if (!known.has(name)) {
      refuse('tool_choice', `names ${JSON.stringify(name)}, which is not in tools`)
    }
  }
  return choice
}

function namesOf(choice: ToolChoice): readonly string[] {
  return choice.mode === 'allowed' ? choice.names : []
}

function readToolChoice(value: JsonValue): ToolChoice {
  if (typeof value === 'string') {
    const mode = oneOf(value, 'tool_choice', ['auto', 'none', 'required', 'any'])
    // Mistral's word for it; its own clients send it (recorded).
    return { mode: mode === 'any' ? 'required' : mode }
  }
  const item = object(value, 'tool_choice')
  const type = oneOf(item['type'], 'tool_choice.type', ['function', 'custom', 'allowed_tools'])
  const inner = object(item[type], `tool_choice.${type}`)
  if (type !== 'allowed_tools') {
    return { mode: 'named', name: toolName(inner['name'], `tool_choice.${type}.name`) }
  }
  const path = 'tool_choice.allowed_tools'
  const mode = oneOf(inner['mode'], `${path}.mode`, ['auto', 'required'])
  const names = array(inner['tools'], `${path}.tools`, MAX_TOOLS).map((tool, at) => {
    const entry = object(tool, `${path}.tools[${at}]`)
    const kind = oneOf(entry['type'], `${path}.tools[${at}].type`, ['function', 'custom'])
    const named = object(entry[kind], `${path}.tools[${at}].${kind}`)
    return toolName(named['name'], `${path}.tools[${at}].${kind}.name`)
  })
  if (names.length === 0) refuse(`${path}.tools`, 'must name at least one tool')
  return { mode: 'allowed', required: mode === 'required', names }
}

/** Reads the legacy `function_call`. */
export function decodeFunctionCall(value: JsonValue, tools: readonly Tool[]): ToolChoice {
  if (typeof value === 'string') {
    return { mode: oneOf(value, 'function_call', ['auto', 'none']) }
  }
  const name = toolName(object(value, 'function_call')['name'], 'function_call.name')
  if (!tools.some((tool) => tool.name === name)) {
    refuse('function_call', `names ${JSON.stringify(name)}, which is not in functions`)
  }
  return { mode: 'named', name }
}

/** Reads `response_format`. */
export function decodeResponseFormat(value: JsonValue): ResponseFormat {
  const item = object(value, 'response_format')
  const type = oneOf(item['type'], 'response_format.type', ['text', 'json_object', 'json_schema'])
  if (type === 'text') return { type }
  if (type === 'json_object') return { type: 'json-object' }
  const path = 'response_format.json_schema'
  const inner = object(item['json_schema'], path)
  const format: ResponseFormat = {
    type: 'json-schema',
    name: toolName(inner['name'], `${path}.name`),
    schema: given(inner['schema']) ? finiteObject(inner['schema'], `${path}.schema`) : {},
  }
  if (given(inner['description'])) {
    format.description = string(inner['description'], `${path}.description`)
  }
  if (given(inner['strict'])) format.strict = boolean(inner['strict'], `${path}.strict`)
  return format
}
