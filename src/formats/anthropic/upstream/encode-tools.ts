/**
 * Encodes tools and `tool_choice`. Keeps the client's order of tools, which prompt caching depends on.
 */
import type { JsonObject } from '../../../base/json.js'
import type { ChatRequest, Tool } from '../../chat/request.js'
import { SchemaBudget } from '../../chat/json-schema.js'
import type { EncodeContext, Losses } from '../../dialect.js'
import { SCHEMA_RULES } from '../../vendors.js'
import { enforcedSchema, fitSchema, REPLY_SCHEMA, TOOL_SCHEMA } from '../../wire/fit-schema.js'
import { refused } from '../../wire/json/check-fields.js'
import { cacheControl } from '../constants.js'
import { CUSTOM_SCHEMA } from '../../wire/custom-tools.js'

/** Tool members of the body. */
interface ToolFields {
  tools?: JsonObject[]
  tool_choice?: JsonObject
}

/**
 * The name of the synthetic tool whose arguments are the reply; differs from the names of the client's tools.
 */
export function jsonToolName(request: ChatRequest): string {
  let name = 'json_response'
  while (request.tools.some((tool) => tool.name === name)) name += '_'
  return name
}

/** What tools are encoded for. */
interface ToolOptions {
  /** The model accepts a forced choice with its thinking configuration. */
  readonly forced: boolean
  /** The schema of a JSON reply for which a synthetic tool is added; null for none. */
  readonly replySchema: JsonObject | null
}

/** Tools and `tool_choice`. */
export function toolFields(
  request: ChatRequest,
  { forced, replySchema }: ToolOptions,
  { model, losses }: EncodeContext,
): ToolFields {
  if (replySchema !== null) return withReplyTool(request, replySchema, { model, losses })
  if (request.tools.length === 0) return historyTools(request)
  const choice = request.toolChoice ?? { mode: 'auto' }
  const chosen = choose(request, forced, losses)
  const context = { model, losses, budget: new SchemaBudget() }
  const tools: JsonObject[] = []
  for (const [index, tool] of request.tools.entries()) {
    if (chosen.isKept(tool)) tools.push(wireTool(tool, index, context))
  }
  if (tools.length === 0) return historyTools(request)
  const single = request.parallelToolCalls === false && choice.mode !== 'none'
  if (chosen.type === 'auto' && !single) return { tools }
  const tool_choice: JsonObject = { type: chosen.type }
  if (chosen.name !== undefined) tool_choice.name = chosen.name
  if (single) tool_choice.disable_parallel_tool_use = true
  return { tools, tool_choice }
}

interface Chosen {
  type: 'auto' | 'any' | 'none' | 'tool'
  isKept: (tool: Tool) => boolean
  name?: string
}

const ALL = (): boolean => true

/**
 * Encodes the choice. A forced choice on a model that rejects it becomes `auto` and is reported as
 * approximated.
 */
function choose(request: ChatRequest, forced: boolean, losses: Losses): Chosen {
  const choice = request.toolChoice ?? { mode: 'auto' }
  const mustCall = (isKept: Chosen['isKept']): Chosen => {
    if (forced) return { type: 'any', isKept }
    losses.drop('tool_choice', 'approximated')
    return { type: 'auto', isKept }
  }
  switch (choice.mode) {
    case 'auto':
    case 'none':
      return { type: choice.mode, isKept: ALL }
    case 'required':
      return mustCall(ALL)
    case 'named': {
      if (forced) return { type: 'tool', isKept: ALL, name: choice.name }
      return mustCall((tool) => tool.name === choice.name)
    }
    case 'allowed': {
      const names = new Set(choice.names)
      const isKept = (tool: Tool): boolean => names.has(tool.name)
      return choice.required ? mustCall(isKept) : { type: 'auto', isKept }
    }
    default:
      choice satisfies never
      return { type: 'auto', isKept: ALL }
  }
}

/** The context in which tools are encoded. */
interface ToolContext extends EncodeContext {
  readonly budget: SchemaBudget
}

function wireTool(tool: Tool, index: number, { model, losses, budget }: ToolContext): JsonObject {
  const wire: JsonObject = { name: tool.name }
  if (tool.description !== undefined && tool.description !== '') wire.description = tool.description
  if (tool.custom !== undefined) {
    refuseGrammar(tool, index)
    wire.input_schema = { ...CUSTOM_SCHEMA, additionalProperties: false }
  } else {
    budget.path = `tools[${index}].function.parameters`
    const schema = fitSchema(inputSchema(tool.parameters), SCHEMA_RULES.anthropic, { losses, budget })
    const strict = tool.strict === true ? strictInput(tool, schema, { model, losses, budget }) : null
    if (tool.strict === true && strict === null) losses.drop('tools.strict', 'approximated')
    wire.input_schema = strict ?? schema
    if (strict !== null) wire.strict = true
  }
  return Object.assign(wire, cacheControl(tool.cache))
}

function inputSchema(parameters: JsonObject | undefined): JsonObject {
  if (parameters !== undefined && Object.keys(parameters).length > 0) return parameters
  return { type: 'object', properties: {} }
}

/** The schema of a strict tool; null if the model or the API cannot enforce it. */
function strictInput(
  tool: Tool,
  schema: JsonObject,
  { model, losses, budget }: ToolContext,
): JsonObject | null {
  if (model.structuredOutput === false) return null
  const closed = tool.parameters === undefined ? { ...schema, additionalProperties: false } : schema
  const strict = enforcedSchema(closed, budget)
  if (!('schema' in strict)) return null
  if (strict.lost) losses.drop(TOOL_SCHEMA, 'approximated')
  return strict.schema
}

function refuseGrammar(tool: Tool, index: number): void {
  const format = tool.custom?.format
  if (format === undefined || format.type === 'text' || format.type === undefined) return
  throw refused(
    `tools[${index}] (${tool.name})`,
    'Anthropic models cannot enforce the grammar of a custom tool. Use a function tool with a JSON Schema, ' +
      'or a route to an OpenAI upstream.',
    `tools[${index}].custom.format`,
  )
}

/** Definitions for the calls in the history, which the API requires even if the request has no tools. */
function historyTools(request: ChatRequest): ToolFields {
  let names: Set<string> | null = null
  for (const message of request.messages) {
    if (message.role !== 'assistant') continue
    for (const call of message.toolCalls) (names ??= new Set()).add(call.name)
  }
  if (names === null) return {}
  const tools = [...names].map((name) => ({ name, input_schema: { type: 'object' } }))
  return { tools, tool_choice: { type: 'none' } }
}

/** Adds a synthetic tool for the reply. The client's own tools stay callable unless its choice is `none`. */
function withReplyTool(
  request: ChatRequest,
  replySchema: JsonObject,
  { model, losses }: EncodeContext,
): ToolFields {
  const context = { model, losses, budget: new SchemaBudget() }
  const name = jsonToolName(request)
  const choice = request.toolChoice
  const callable = choice?.mode === 'allowed' ? new Set(choice.names) : null
  const own = request.tools.flatMap((tool, index) =>
    callable === null || callable.has(tool.name) ? [wireTool(tool, index, context)] : [],
  )
  context.budget.path = 'response_format.json_schema.schema'
  const synthetic: JsonObject = {
    name,
    description: 'Give the final answer by calling this tool, once.',
    input_schema: fitSchema(replySchema, SCHEMA_RULES.anthropic, { ...context, path: REPLY_SCHEMA }),
  }
  const before = own.length > 0 ? own : (historyTools(request).tools ?? [])
  const free = own.length > 0 && choice?.mode !== 'none'
  const tool_choice: JsonObject = free ? { type: 'any' } : { type: 'tool', name }
  tool_choice.disable_parallel_tool_use = true
  return { tools: [...before, synthetic], tool_choice }
}
