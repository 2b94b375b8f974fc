/**
 * Decodes `tools`, `tool_choice` and `text`. Tools that OpenAI runs itself go to upstreams of this format
 * only; for others they are reported as the loss `tools.TYPE`. Those that the client runs are functions.
 *
 * Source: OpenAI API reference, "Create a model response", read 2026-11-20.
 */
import { GatewayError } from '../../../errors.js'
import { VERBOSITY } from '../fields.js'
import { clientFunction, clientFunctionName, clientToolType, joinedName } from './client-tools.js'
import { addHosted, hostedTool } from '../../chat/hosted-tools.js'
import { arrayOf, type JsonObject, type JsonValue, objectOf, stringOf } from '../../../base/json.js'
import type {
  ChatRequest,
  ClientToolType,
  NamespacedTool,
  NativeField,
  ResponseFormat,
  Tool,
  ToolChoice,
} from '../../chat/request.js'
import { TOOL_NAMES } from '../../vendors.js'
import { array, finiteObject, given, object, oneOf, refuse } from '../../wire/json/check-fields.js'
import {
  decodeFunctionTool,
  decodeNamedTool,
  MAX_TOOLS,
  namesInChoice,
  noteName,
} from '../../wire/openai/tools.js'
import { decodeFormat, formatType } from '../../wire/openai/response-format.js'
import { readField } from '../../wire/scalar-fields.js'
import { toolName } from '../../wire/tool-names.js'

const TYPE = /^[a-z][a-z0-9_]{0,63}$/
const MODES = ['auto', 'none', 'required'] as const

interface DecodedTools {
  /** Receives the tools. */
  readonly request: ChatRequest
  /** The tools of all namespaces, by their joined names. */
  readonly namespaces: Map<string, NamespacedTool>
  /** The functions for tools of other types, by name. */
  readonly clientTools: Map<string, ClientToolType>
  /** The names of the tools, also of those in `tools` that are not decoded yet. */
  readonly names: Set<string>
  /** Leaves out tools that the request already has. */
  readonly isFound: boolean
}

/**
 * Decodes `tools`, and the tools that the conversation has found, into the request. Throws
 * `malformed_request` naming the tool that breaks a rule. `historyItems`: number of items of `input` before
 * those of the client.
 */
export function decodeTools(
  { tools: own, input }: JsonObject,
  request: ChatRequest,
  historyItems: number,
): void {
  const items = arrayOf(own)
  const tools = {
    request,
    namespaces: new Map<string, NamespacedTool>(),
    clientTools: new Map<string, ClientToolType>(),
    names: new Set(items.flatMap((item) => stringOf(objectOf(item)['name']) ?? [])),
  }
  if (given(own)) decodeList(own, 'tools', { ...tools, isFound: false })
  for (const [at, item] of arrayOf(input).entries()) {
    const { type, tools: found } = objectOf(item)
    if (type !== 'tool_search_output' && type !== 'additional_tools') continue
    decodeFound(found, `input[${Math.max(0, at - historyItems)}].tools`, { ...tools, isFound: true })
  }
  if (tools.namespaces.size > 0) request.namespaces = tools.namespaces
  if (tools.clientTools.size > 0) request.clientTools = tools.clientTools
}

/** Tools of an item: OpenAI judges whether they are valid, and other upstreams need them. */
function decodeFound(value: JsonValue | undefined, path: string, tools: DecodedTools): void {
  if (!given(value)) return
  try {
    decodeList(value, path, tools)
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    native(tools.request, { path, refusal: error.message, isMalformed: true })
  }
}

function decodeList(value: JsonValue, listPath: string, tools: DecodedTools): void {
  const { request } = tools
  for (const [at, entry] of array(value, listPath, MAX_TOOLS).entries()) {
    const path = `${listPath}[${at}]`
    const item = object(entry, path)
    const type = stringOf(item['type']) ?? ''
    const tool = clientTool(item, path)
    const ownType = clientToolType(item)
    if (tool !== null) {
      noteName(request, { name: tool.name, path: `${path}.name` }, TOOL_NAMES.openai)
      addTool(tool, tools)
    } else if (ownType !== null) addClientFunction(ownType, { item, path }, tools)
    else if (type === 'namespace') decodeNamespace(item, path, tools)
    else if (TYPE.test(type)) {
      finiteObject(item, path)
      native(request, { path: `tools.${type}` })
      addHosted(request, hostedTool(item, path))
    } else refuse(`${path}.type`, 'must be the type of a tool, such as function or custom')
  }
}

function addTool(tool: Tool, { request, names, isFound }: DecodedTools): void {
  if (isFound && names.has(tool.name)) return
  names.add(tool.name)
  request.tools.push(tool)
}

/** Adds the function for a tool of a type that the client runs, once. */
function addClientFunction(
  type: ClientToolType,
  entry: { readonly item: JsonObject; readonly path: string },
  tools: DecodedTools,
): void {
  const { request, clientTools, names } = tools
  if ([...clientTools.values()].includes(type)) return
  let name: string = type
  while (names.has(name)) name = `${name}_tool`
  names.add(name)
  clientTools.set(name, type)
  request.tools.push(clientFunction(type, name, entry))
}

/** A function or custom tool, which the client runs; null for any other type. */
function clientTool(item: JsonObject, path: string): Tool | null {
  if (item['type'] === 'function') return decodeFunctionTool(item, path)
  return item['type'] === 'custom' ? customTool(item, path) : null
}

/**
 * The tools of a namespace (Codex sends one for each MCP server). Other formats get them under joined names.
 */
function decodeNamespace(item: JsonObject, path: string, tools: DecodedTools): void {
  const { request, namespaces } = tools
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
    addTool(tool, tools)
  }
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
  const choice = choiceOf(value, request)
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
function choiceOf(value: JsonValue, request: ChatRequest): ToolChoice | null {
  if (typeof value === 'string') return { mode: oneOf(value, 'tool_choice', MODES) }
  const item = object(value, 'tool_choice')
  const type = stringOf(item['type']) ?? ''
  if (type === 'function' || type === 'custom') {
    return { mode: 'named', name: toolName(item['name'], 'tool_choice.name') }
  }
  if (type === 'allowed_tools') return allowedTools(item, request)
  const own = clientFunctionName(request, type)
  if (own !== null) return { mode: 'named', name: own }
  return TYPE.test(type) ? null : refuse('tool_choice.type', 'must be the type of a tool')
}

function allowedTools(item: JsonObject, request: ChatRequest): ToolChoice | null {
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
      continue
    }
    const own = clientFunctionName(request, type)
    if (own !== null) names.push(own)
    else if (!TYPE.test(type)) refuse(`${path}.type`, 'must be the type of a tool')
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
