/**
 * Encodes tools and the tool choice as `toolConfig`. Keeps the client's order of tools, which prompt caching
 * depends on.
 */
import { SchemaBudget } from '../chat/json-schema.js'
import { isObject, type JsonObject } from '../../base/json.js'
import { demandsCall } from '../chat/must-call.js'
import type { ChatRequest, Tool } from '../chat/request.js'
import type { EncodeContext, Losses } from '../dialect.js'
import { SCHEMA_RULES } from '../vendors.js'
import { enforcedSchema, fitSchema, TOOL_SCHEMA } from '../wire/fit-schema.js'
import { refused } from '../wire/json/check-fields.js'
import { loseFields } from '../wire/scalar-fields.js'
import { isClaude, isNova } from './constants.js'
import { cachePoint, cachingOf } from './encode-messages.js'
import { PARALLEL_CALLS } from './fields.js'
import { CUSTOM_SCHEMA } from '../wire/custom-tools.js'

/**
 * `toolConfig`; undefined without tools. `forced`: the model accepts a choice that forces a call; another
 * choice becomes `auto` and is reported as approximated.
 */
export function toolConfig(
  request: ChatRequest,
  forced: boolean,
  context: EncodeContext,
): JsonObject | undefined {
  const { losses } = context
  const choice = request.toolChoice ?? { mode: 'auto' }
  if (choice.mode === 'none') return historyTools(request, losses)
  const isKept = keptBy(request, forced)
  const tools = wireTools(request, isKept, context)
  if (tools.length === 0) return historyTools(request, losses)
  loseFields(request, PARALLEL_CALLS, losses)
  const config: JsonObject = { tools }
  if (!demandsCall(choice)) {
    if (request.toolChoice !== undefined) config.toolChoice = { auto: {} }
  } else if (!forced) losses.drop('tool_choice', 'approximated')
  else if (choice.mode === 'named') config.toolChoice = { tool: { name: choice.name } }
  else config.toolChoice = { any: {} }
  return config
}

/** The tools that the choice leaves: the API has no choice among several of them. */
function keptBy({ toolChoice: choice }: ChatRequest, forced: boolean): (tool: Tool) => boolean {
  if (choice?.mode === 'allowed') {
    const names = new Set(choice.names)
    return ({ name }) => names.has(name)
  }
  if (choice?.mode === 'named' && !forced) return ({ name }) => name === choice.name
  return () => true
}

function wireTools(
  request: ChatRequest,
  isKept: (tool: Tool) => boolean,
  { model, losses }: EncodeContext,
): JsonObject[] {
  const budget = new SchemaBudget()
  // Nova caches the prompt, but not the tools.
  const caching = isClaude(model) ? cachingOf(model) : 'none'
  const out: JsonObject[] = []
  for (const [at, tool] of request.tools.entries()) {
    if (!isKept(tool)) continue
    out.push({ toolSpec: toolSpec(tool, at, { model, losses, budget }) })
    const point = tool.cache === undefined ? null : cachePoint(tool.cache, caching, losses)
    if (point !== null) out.push(point)
  }
  return out
}

/** The context in which tools are encoded. */
interface ToolContext extends EncodeContext {
  readonly budget: SchemaBudget
}

function toolSpec(tool: Tool, at: number, { model, losses, budget }: ToolContext): JsonObject {
  const spec: JsonObject = { name: tool.name }
  if (tool.description !== undefined && tool.description !== '') spec.description = tool.description
  if (tool.custom !== undefined) {
    refuseGrammar(tool, at)
    spec.inputSchema = { json: isNova(model) ? CUSTOM_SCHEMA : CLOSED_CUSTOM_SCHEMA }
    return spec
  }
  budget.path = `tools[${at}].function.parameters`
  // Nova takes no keyword beside those of an open object at the root.
  const strict = tool.strict === true && model.structuredOutput !== false && !isNova(model)
  const rules = isNova(model) ? SCHEMA_RULES.nova : SCHEMA_RULES.bedrock
  const schema = fitSchema(inputSchema(tool.parameters, strict), rules, { losses, budget })
  const enforced = strict ? enforcedSchema(schema, budget) : null
  if (enforced !== null && 'schema' in enforced) {
    if (enforced.lost) losses.drop(TOOL_SCHEMA, 'approximated')
    spec.inputSchema = { json: enforced.schema }
    spec.strict = true
  } else {
    if (tool.strict === true) losses.drop('tools.strict', 'approximated')
    spec.inputSchema = { json: schema }
  }
  return spec
}

function inputSchema(parameters: JsonObject | undefined, isClosed: boolean): JsonObject {
  if (parameters !== undefined && Object.keys(parameters).length > 0) return parameters
  const empty = { type: 'object', properties: {} }
  return isClosed ? { ...empty, additionalProperties: false } : empty
}

const CLOSED_CUSTOM_SCHEMA: JsonObject = { ...CUSTOM_SCHEMA, additionalProperties: false }

function refuseGrammar(tool: Tool, at: number): void {
  const format = tool.custom?.format
  if (format === undefined || format.type === 'text' || format.type === undefined) return
  throw refused(
    `tools[${at}] (${tool.name})`,
    'Bedrock cannot enforce the grammar of a custom tool. Use a function tool with a JSON Schema, or a route ' +
      'to an OpenAI upstream.',
    `tools[${at}].custom.format`,
  )
}

/**
 * The tools of a request whose choice is `none` or that has none. The API has no such choice: without tools
 * the model cannot call any, but it requires definitions for the calls in the history.
 */
function historyTools(request: ChatRequest, losses: Losses): JsonObject | undefined {
  const names = new Set<string>()
  for (const message of request.messages) {
    if (message.role !== 'assistant') continue
    for (const call of message.toolCalls) names.add(call.name)
  }
  if (names.size === 0) return undefined
  if (request.tools.length > 0) losses.drop('tool_choice', 'approximated')
  const tools = [...names].map((name) => ({
    toolSpec: { name, inputSchema: { json: { type: 'object' } } },
  }))
  return { tools }
}

/** Whether the body offers tools that it does not force, because the model cannot be forced. */
export function mayOmitCall({ toolConfig: config }: JsonObject, request: ChatRequest): boolean {
  if (!demandsCall(request.toolChoice) || !isObject(config)) return false
  return !isObject(config.toolChoice) || config.toolChoice.auto !== undefined
}
