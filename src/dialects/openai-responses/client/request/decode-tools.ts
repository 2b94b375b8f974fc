/**
 * Reads `tools`, `tool_choice` and `text.format`, which are flat here.
 * A tool that OpenAI runs itself goes to upstreams of this format only; elsewhere it is reported as `tools.TYPE`.
 *
 * Source: OpenAI API reference, "Create a model response", read 2026-11-20.
 */
import { type JsonObject, type JsonValue, stringOf } from '../../../../chat/json.js'
import type {
  ChatRequest,
  NamespacedTool,
  NativeField,
  ResponseFormat,
  Tool,
  ToolChoice,
} from '../../../../chat/request.js'
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
const TYPE = /^[a-z][a-z0-9_]{0,63}$/
const MODES = ['auto', 'none', 'required'] as const

/** Reads `tools` into the request. */
export function decodeTools(value: JsonValue, request: ChatRequest): void {
  const namespaces = new Map<string, NamespacedTool>()
  for (const [at, entry] of array(value, 'tools', MAX_TOOLS).entries()) {
    const path = `tools[${at}]`
    const item = object(entry, path)
    const type = stringOf(item['type']) ?? ''
    const tool = ownTool(item, path)
    if (tool !== null) request.tools.push(tool)
    else if (type === 'namespace') decodeNamespace(item, path, request, namespaces)
    else if (TYPE.test(type)) {
      finiteObject(item, path)
      native(request, { path: `tools.${type}` })
    } else refuse(`${path}.type`, 'must be the type of a tool, such as function or custom')
  }
}

/** A function or a custom tool; null for any other. */
function ownTool(item: JsonObject, path: string): Tool | null {
  if (item['type'] === 'function') return functionTool(item, path)
  return item['type'] === 'custom' ? customTool(item, path) : null
}

/** The tools of a namespace (Codex has one for each MCP server); other formats get them under joined names. */
function decodeNamespace(
  item: JsonObject,
  path: string,
  request: ChatRequest,
  namespaces: Map<string, NamespacedTool>,
): void {
  const namespace = toolName(item['name'], `${path}.name`)
  for (const [at, entry] of array(item['tools'], `${path}.tools`, MAX_TOOLS).entries()) {
    const where = `${path}.tools[${at}]`
    const inner = object(entry, where)
    const tool = ownTool(inner, where)
    if (tool === null) {
      native(request, { path: 'tools.namespace' })
      continue
    }
    const { name } = tool
    tool.name = joinedName(namespace, name)
    namespaces.set(tool.name, { namespace, name })
    request.tools.push(tool)
  }
  request.namespaces = namespaces
}

/** One name for a tool in a namespace. */
export function joinedName(namespace: string, name: string): string {
  return `${namespace}__${name}`
}

function functionTool(item: JsonObject, path: string): Tool {
  const tool = named(item, path)
  if (given(item['parameters'])) {
    tool.parameters = finiteObject(item['parameters'], `${path}.parameters`)
  }
  if (given(item['strict'])) tool.strict = boolean(item['strict'], `${path}.strict`)
  return tool
}

function customTool(item: JsonObject, path: string): Tool {
  const tool = named(item, path)
  tool.custom = {}
  if (!given(item['format'])) return tool
  const at = `${path}.format`
  const { type, ...grammar } = object(item['format'], at)
  tool.custom.format =
    oneOf(type, `${at}.type`, ['text', 'grammar']) === 'text'
      ? { type: 'text' }
      : { type: 'grammar', grammar }
  return tool
}

function named(item: JsonObject, path: string): Tool {
  const tool: Tool = { name: toolName(item['name'], `${path}.name`) }
  if (given(item['description'])) {
    tool.description = string(item['description'], `${path}.description`)
  }
  return tool
}

/** Adds what only upstreams of this format take. */
export function native(request: ChatRequest, field: NativeField): void {
  request.native ??= []
  request.native.push(field)
}

const CHOICE: NativeField = {
  path: 'tool_choice',
  refusal:
    'tool_choice asks for a tool that only OpenAI runs. Leave it out, or ask for a model of OpenAI’s',
}

/** Whether the request has tools that only OpenAI runs. */
function hasHosted(request: ChatRequest): boolean {
  return request.native?.some(({ path }) => path.startsWith('tools.')) === true
}

/** Reads `tool_choice` into the request, whose tools have been read. */
export function decodeToolChoice(value: JsonValue, request: ChatRequest): void {
  const choice = choiceOf(value)
  if (choice === null) {
    native(request, CHOICE)
    return
  }
  if (choice.mode !== 'auto' && choice.mode !== 'none' && !isPossible(choice, request)) return
  request.toolChoice = choice
}

/** Whether the tools that are to be called are there. A tool that OpenAI finds or runs can be called by OpenAI alone. */
function isPossible(choice: ToolChoice, request: ChatRequest): boolean {
  const { tools } = request
  const known = new Set(tools.map(({ name }) => name))
  const unknown = namesIn(choice).find((name) => !known.has(name))
  if (tools.length > 0 && unknown === undefined) return true
  if (hasHosted(request)) {
    native(request, CHOICE)
    return false
  }
  if (tools.length === 0) return refuse('tool_choice', 'needs at least one tool in tools')
  return refuse('tool_choice', `names ${JSON.stringify(unknown)}, which is not in tools`)
}

function namesIn(choice: ToolChoice): readonly string[] {
  if (choice.mode === 'named') return [choice.name]
  return choice.mode === 'allowed' ? choice.names : []
}

/** Null if the choice is a tool of OpenAI's own. */
function choiceOf(value: JsonValue): ToolChoice | null {
  if (typeof value === 'string') return { mode: oneOf(value, 'tool_choice', MODES) }
  const item = object(value, 'tool_choice')
  const type = stringOf(item['type']) ?? ''
  if (type === 'function' || type === 'custom') {
    return { mode: 'named', name: toolName(item['name'], 'tool_choice.name') }
  }
  if (type === 'allowed_tools') return allowedTools(item)
  return TYPE.test(type) ? null : refuse('tool_choice.type', 'must be the type of a tool')
}

function allowedTools(item: JsonObject): ToolChoice | null {
  const mode = oneOf(item['mode'], 'tool_choice.mode', ['auto', 'required'])
  const names: string[] = []
  const tools = array(item['tools'], 'tool_choice.tools', MAX_TOOLS)
  if (tools.length === 0) refuse('tool_choice.tools', 'must name at least one tool')
  for (const [at, entry] of tools.entries()) {
    const path = `tool_choice.tools[${at}]`
    const tool = object(entry, path)
    const type = stringOf(tool['type']) ?? ''
    if (type === 'function' || type === 'custom') {
      names.push(toolName(tool['name'], `${path}.name`))
    } else if (!TYPE.test(type)) refuse(`${path}.type`, 'must be the type of a tool')
  }
  return names.length === 0 ? null : { mode: 'allowed', required: mode === 'required', names }
}

/** Reads `text`: the form of the answer and how long it is to be. */
export function decodeText(value: JsonValue, request: ChatRequest): void {
  const { format, verbosity, ...rest } = object(value, 'text')
  if (given(format)) request.responseFormat = formatOf(format)
  if (given(verbosity)) {
    request.verbosity = oneOf(verbosity, 'text.verbosity', ['low', 'medium', 'high'])
  }
  for (const [key, member] of Object.entries(rest)) {
    if (given(member)) request.rest[`text.${key}`] = member
  }
}

function formatOf(value: JsonValue): ResponseFormat {
  const path = 'text.format'
  const item = object(value, path)
  const type = oneOf(item['type'], `${path}.type`, ['text', 'json_object', 'json_schema'])
  if (type === 'text') return { type }
  if (type === 'json_object') return { type: 'json-object' }
  const format: ResponseFormat = {
    type: 'json-schema',
    name: toolName(item['name'], `${path}.name`),
    schema: given(item['schema']) ? finiteObject(item['schema'], `${path}.schema`) : {},
  }
  if (given(item['description'])) {
    format.description = string(item['description'], `${path}.description`)
  }
  if (given(item['strict'])) format.strict = boolean(item['strict'], `${path}.strict`)
  return format
}
