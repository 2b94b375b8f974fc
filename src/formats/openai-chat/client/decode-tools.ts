/** Decodes `tools`, `tool_choice`, their legacy forms, and `response_format`. */
import { type JsonObject, type JsonValue } from '../../chat/json.js'
import type { ResponseFormat, Tool, ToolChoice } from '../../chat/request.js'
import { cacheMark } from '../../wire/prompt-cache-markers.js'
import { array, given, object, oneOf, refuse } from '../../wire/json/check-fields.js'
import {
  toolName,
  decodeFunctionTool,
  decodeNamedTool,
  MAX_TOOLS,
  namesInChoice,
} from '../../wire/openai/tools.js'
import { decodeFormat, formatType } from '../../wire/openai/response-format.js'

/** Decodes `tools`. Throws `malformed_request` naming the tool that breaks a rule. */
export function decodeTools(value: JsonValue | undefined): Tool[] {
  return array(value, 'tools', MAX_TOOLS).map((item, at) => decodeTool(item, `tools[${at}]`))
}

/** Decodes the legacy `functions`. */
export function decodeFunctions(value: JsonValue | undefined): Tool[] {
  return array(value, 'functions', MAX_TOOLS).map((item, at) => {
    const path = `functions[${at}]`
    return decodeFunctionTool(object(item, path), path)
  })
}

function decodeTool(value: JsonValue, path: string): Tool {
  const item = object(value, path)
  // Mistral's clients omit the type (recorded).
  const type = given(item['type'])
    ? oneOf(item['type'], `${path}.type`, ['function', 'custom'])
    : 'function'
  const inner = `${path}.${type}`
  const body = object(item[type], inner)
  const tool = type === 'function' ? decodeFunctionTool(body, inner) : decodeCustom(body, inner)
  const cache = cacheMark(item, path)
  if (cache !== undefined) tool.cache = cache
  return tool
}

function decodeCustom(body: JsonObject, path: string): Tool {
  const tool = decodeNamedTool(body, path)
  tool.custom = {}
  if (given(body['format'])) {
    const format = object(body['format'], `${path}.format`)
    oneOf(format['type'], `${path}.format.type`, ['text', 'grammar'])
    tool.custom = { format }
  }
  return tool
}

/** Decodes `tool_choice`. A choice that forces a call requires tools; a choice by name requires that tool. */
export function decodeToolChoice(value: JsonValue, tools: readonly Tool[]): ToolChoice {
  const choice = readToolChoice(value)
  if (choice.mode === 'auto' || choice.mode === 'none') return choice
  if (tools.length === 0) refuse('tool_choice', 'needs at least one tool in tools')
  const known = new Set(tools.map((tool) => tool.name))
  for (const name of namesInChoice(choice)) {
    if (!known.has(name)) {
      refuse('tool_choice', `names ${JSON.stringify(name)}, which is not in tools`)
    }
  }
  return choice
}

function readToolChoice(value: JsonValue): ToolChoice {
  if (typeof value === 'string') {
    const mode = oneOf(value, 'tool_choice', ['auto', 'none', 'required', 'any'])
    // Mistral's clients send `any` for `required` (recorded).
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

/** Decodes the legacy `function_call`. */
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

/** Decodes `response_format`. */
export function decodeResponseFormat(value: JsonValue): ResponseFormat {
  const item = object(value, 'response_format')
  const type = formatType(item['type'], 'response_format.type')
  const path = 'response_format.json_schema'
  return decodeFormat(type, () => object(item['json_schema'], path), path)
}
