/**
 * Writes a canonical request as a chat-completions body.
 * Knows the model's facts and no client dialect; what cannot be said is a loss or a refusal.
 *
 * Source: OpenAI API reference, "Create chat completion", read 2026-11-20.
 */
import { nearestEffort } from '../../chat/effort.js'
import type { JsonObject } from '../../chat/json.js'
import type { ModelFacts } from '../../chat/model.js'
import type { ChatRequest, ResponseFormat, Tool, ToolChoice } from '../../chat/request.js'
import { GatewayError } from '../../errors.js'
import { wireName } from '../../wire/openai-names.js'
import type { Losses } from '../dialect.js'
import { encodeMessages } from './encode-messages.js'
import { SERVICE_TIERS } from './wire.js'

/** Fields of this format that the canon keeps by name; others belong to some other format. */
const OWN = new Set([
  'audio',
  'logit_bias',
  'metadata',
  'modalities',
  'moderation',
  'prediction',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'store',
  'web_search_options',
])

/** The body for an upstream that speaks this format. */
export function encodeRequest(request: ChatRequest, model: ModelFacts, losses: Losses): JsonObject {
  const body: JsonObject = {
    model: request.model,
    messages: encodeMessages(request.messages, model, losses),
  }
  if (request.stream) {
    body['stream'] = true
    body['stream_options'] = { include_usage: true }
  }
  encodeTools(request, body)
  encodeEffort(request, model, body, losses)
  encodeSampling(request, model, body, losses)
  encodeOutput(request, model, body)
  encodeRest(request, model, body, losses)
  return body
}

function encodeTools(request: ChatRequest, body: JsonObject): void {
  if (request.tools.length > 0) body['tools'] = request.tools.map(encodeTool)
  const { toolChoice, tools, parallelToolCalls } = request
  if (toolChoice !== undefined) body['tool_choice'] = encodeToolChoice(toolChoice, tools)
  if (parallelToolCalls !== undefined) body['parallel_tool_calls'] = parallelToolCalls
}

function encodeTool(tool: Tool): JsonObject {
  const inner: JsonObject = { name: wireName(tool.name) }
  if (tool.description !== undefined) inner['description'] = tool.description
  if (tool.custom !== undefined) {
    if (tool.custom.format !== undefined) inner['format'] = tool.custom.format
    return { type: 'custom', custom: inner }
  }
  if (tool.parameters !== undefined) inner['parameters'] = tool.parameters
  if (tool.strict !== undefined) inner['strict'] = tool.strict
  return { type: 'function', function: inner }
}

function encodeToolChoice(choice: ToolChoice, tools: readonly Tool[]): string | JsonObject {
  const named = (name: string): JsonObject => {
    const custom = tools.find((tool) => tool.name === name)?.custom !== undefined
    const type = custom ? 'custom' : 'function'
    return { type, [type]: { name: wireName(name) } }
  }
  switch (choice.mode) {
    case 'auto':
    case 'none':
    case 'required':
      return choice.mode
    case 'named':
      return named(choice.name)
    case 'allowed': {
      const mode = choice.required ? 'required' : 'auto'
      return {
        type: 'allowed_tools',
        allowed_tools: { mode, tools: choice.names.map(named) },
      }
    }
    default:
      return choice satisfies never
  }
}

/** The effort, or the nearest lower that the model has; below all of them, its lowest. */
function encodeEffort(
  request: ChatRequest,
  model: ModelFacts,
  body: JsonObject,
  losses: Losses,
): void {
  const effort = effortOf(request, model)
  if (effort === undefined) return
  body['reasoning_effort'] = effort
  const { reasoningEffort: asked } = request
  if (asked !== undefined && asked !== effort) losses.drop('reasoning_effort', 'approximated')
}

function effortOf(request: ChatRequest, model: ModelFacts): string | undefined {
  const { reasoningEffort: asked } = request
  // Such models refuse function tools on this endpoint unless reasoning is off.
  if (model.chatToolsWithReasoning === false && request.tools.length > 0 && asked !== 'none') {
    if (asked === undefined && model.reasoningEfforts?.includes('none') === true) return 'none'
    throw new GatewayError(
      'untranslatable',
      `tools: ${request.model} takes tools on this upstream only with reasoning_effort "none"`,
      { param: 'tools' },
    )
  }
  return asked === undefined ? undefined : nearestEffort(asked, model.reasoningEfforts)
}

/** Sampling parameters, where the model takes them. */
function encodeSampling(
  request: ChatRequest,
  model: ModelFacts,
  body: JsonObject,
  losses: Losses,
): void {
  const free = samplingAllowed(model, body['reasoning_effort'])
  const put = (key: string, value: number | boolean | undefined, allowed: boolean): void => {
    if (value === undefined) return
    if (allowed) body[key] = value
    // The value that the model uses anyway is no loss.
    else if (value !== (key.endsWith('_penalty') ? 0 : 1) && value !== false) {
      losses.drop(key, 'no-equivalent')
    }
  }
  const plain = model.reasoning !== true
  put('temperature', request.temperature, free)
  put('top_p', request.topP, free)
  put('frequency_penalty', request.frequencyPenalty, plain)
  put('presence_penalty', request.presencePenalty, plain)
  put('logprobs', request.logprobs, free)
  put('top_logprobs', request.topLogprobs, plain)
  put('seed', request.seed, true)
  put('n', request.candidates, true)
}

function samplingAllowed(model: ModelFacts, effort: unknown): boolean {
  switch (model.samplingParams) {
    case 'never':
      return false
    case 'when-thinking-off':
    case 'effort-none-only':
      return effort === 'none'
    case 'always':
    case undefined:
      return true
    default:
      return model.samplingParams satisfies never
  }
}

function encodeOutput(request: ChatRequest, model: ModelFacts, body: JsonObject): void {
  const limit = request.maxOutputTokens
  // OpenAI's own models take the new name and some refuse the old; others know only the old.
  const key = model.family === 'openai' ? 'max_completion_tokens' : 'max_tokens'
  if (limit !== undefined) body[key] = limit
  if (request.stop !== undefined) body['stop'] = request.stop
  if (request.responseFormat !== undefined) {
    body['response_format'] = encodeFormat(request.responseFormat)
  }
  if (request.verbosity !== undefined) body['verbosity'] = request.verbosity
  if (request.userId !== undefined) body['user'] = request.userId
}

function encodeFormat(format: ResponseFormat): JsonObject {
  if (format.type === 'text') return { type: 'text' }
  if (format.type === 'json-object') return { type: 'json_object' }
  const inner: JsonObject = { name: wireName(format.name), schema: format.schema }
  if (format.description !== undefined) inner['description'] = format.description
  if (format.strict !== undefined) inner['strict'] = format.strict
  return { type: 'json_schema', json_schema: inner }
}

function encodeRest(
  request: ChatRequest,
  model: ModelFacts,
  body: JsonObject,
  losses: Losses,
): void {
  const { serviceTier } = request
  if (serviceTier !== undefined) {
    if (SERVICE_TIERS.includes(serviceTier)) body['service_tier'] = serviceTier
    else losses.drop('service_tier', 'no-equivalent')
  }
  for (const [key, value] of Object.entries(request.rest)) {
    const refused = key === 'logit_bias' && model.reasoning === true
    if (OWN.has(key) && !refused) body[key] = value
    else losses.drop(key, 'no-equivalent')
  }
}
