/**
 * Decodes `tools`, `tool_choice` and `text`. Tools that OpenAI runs itself go to upstreams of this format
 * only; for others they are reported as the loss `tools.TYPE`.
 *
 * Source: OpenAI API reference, "Create a model response", read 2026-11-20.
 */
import { VERBOSITY } from '../fields.js'
import { addHosted, hostedTool } from '../../chat/hosted-tools.js'
import { type JsonObject, type JsonValue, stringOf } from '../../chat/json.js'
import type {
  ChatRequest,
  NamespacedTool,
  NativeField,
  ResponseFormat,
  Tool,
  ToolChoice,
} from '../../chat/request.js'
import { array, finiteObject, given, object, oneOf, refuse } from '../../wire/json/check-fields.js'
import {
  toolName,
  decodeFunctionTool,
  decodeNamedTool,
  MAX_TOOLS,
  namesInChoice,
} from '../../wire/openai/tools.js'
import { decodeFormat, formatType } from '../../wire/openai/response-format.js'
import { readField } from '../../wire/scalar-fields.js'

const TYPE = /^[a-z][a-z0-9_]{0,63}$/
const MODES = ['auto', 'none', 'required'] as const

interface DecodedTools {
  /** Receives the tools. */
  readonly request: ChatRequest
  /** The tools of all namespaces, by their joined names. */
  readonly namespaces: Map<string, NamespacedTool>
}

/** Decodes `tools` into the request. Throws `malformed_request` naming the tool that breaks a rule. */
export function decodeTools(value: JsonValue, request: ChatRequest): void {
  const tools = { request, namespaces: new Map<string, NamespacedTool>() }
  for (const [at, entry] of array(value, 'tools', MAX_TOOLS).entries()) {
    const path = `tools[${at}]`
    const item = object(entry, path)
    const type = stringOf(item['type']) ?? ''
    const tool = clientTool(item, path)
    if (tool !== null) request.tools.push(tool)
    else if (type === 'namespace') decodeNamespace(item, path, tools)
    else if (TYPE.test(type)) {
      finiteObject(item, path)
      native(request, { path: `tools.${type}` })
      addHosted(request, hostedTool(item, path))
    } else refuse(`${path}.type`, 'must be the type of a tool, such as function or custom')
  }
}

/** A function or custom tool, which the client runs; null for any other type. */
function clientTool(item: JsonObject, path: string): Tool | null {
  if (item['type'] === 'function') return decodeFunctionTool(item, path)
  return item['type'] === 'custom' ? customTool(item, path) : null
}

/**
 * The tools of a namespace (Codex sends one for each MCP server). Other formats get them under joined names.
 */
function decodeNamespace(item: JsonObject, path: string, { request, namespaces }: DecodedTools): void {
  const namespace = toolName(item['name'], `${path}.name`)
  for (const [at, entry] of array(item['tools'], `${path}.tools`, MAX_TOOLS).entries()) {
    const toolPath = `${path}.tools[${at}]`
    const each = object(entry, toolPath)
    const tool = clientTool(each, toolPath)
    if (tool === null) {
      native(request, { path: 'tools.namespace' })
      addHosted(request, hostedTool(each, toolPath))
      continue
    }
    const { name } = tool
    tool.name = joinedName(namespace, name)
    namespaces.set(tool.name, { namespace, name })
    request.tools.push(tool)
  }
  request.namespaces = namespaces
}

/** The name of a tool in a namespace, for formats without namespaces. */
export function joinedName(namespace: string, name: string): string {
  return `${namespace}__${name}`
}

function customTool(item: JsonObject, path: string): Tool {
  const tool = decodeNamedTool(item, path)
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

/** Adds a field that only upstreams of this format accept. */
export function native(request: ChatRequest, field: NativeField): void {
  request.native ??= []
  request.native.push(field)
}

const CHOICE: NativeField = {
  path: 'tool_choice',
  refusal:
    'tool_choice requires a tool that only OpenAI runs. Leave it out, or choose a model that OpenAI serves',
}

function hasHosted(request: ChatRequest): boolean {
  return request.native?.some(({ path }) => path.startsWith('tools.')) === true
}

/** Decodes `tool_choice` into the request, whose tools are decoded already. */
export function decodeToolChoice(value: JsonValue, request: ChatRequest): void {
  const choice = choiceOf(value)
  if (choice === null) {
    native(request, CHOICE)
    return
  }
  if (choice.mode !== 'auto' && choice.mode !== 'none' && !isPossible(choice, request)) return
  request.toolChoice = choice
}

/** Whether `tools` has the tools of the choice. A choice of a hosted tool becomes a native field. */
function isPossible(choice: ToolChoice, request: ChatRequest): boolean {
  const { tools } = request
  const known = new Set(tools.map(({ name }) => name))
  const unknown = namesInChoice(choice).find((name) => !known.has(name))
  if (tools.length > 0 && unknown === undefined) return true
  if (hasHosted(request)) {
    native(request, CHOICE)
    return false
  }
  if (tools.length === 0) return refuse('tool_choice', 'needs at least one tool in tools')
  return refuse('tool_choice', `names ${JSON.stringify(unknown)}, which is not in tools`)
}

/** Null if the choice is a hosted tool. */
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

/**
 * Decodes `text`: the format of the reply and its verbosity. Other members are kept in `rest` as `text.NAME`.
 */
export function decodeText(value: JsonValue, request: ChatRequest): void {
  const { format, verbosity, ...rest } = object(value, 'text')
  if (given(format)) request.responseFormat = formatOf(format)
  if (given(verbosity)) readField(VERBOSITY, verbosity, request, VERBOSITY.wire)
  for (const [key, member] of Object.entries(rest)) {
    if (given(member)) request.rest[`text.${key}`] = member
  }
}

function formatOf(value: JsonValue): ResponseFormat {
  const path = 'text.format'
  const item = object(value, path)
  return decodeFormat(formatType(item['type'], `${path}.type`), () => item, path)
}
