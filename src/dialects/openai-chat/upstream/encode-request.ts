/**
 * Encodes a canonical request as a chat-completions body. A field that the format cannot express is reported
 * as a loss, or refused if the reply would be wrong without it.
 *
 * Source: OpenAI API reference, "Create chat completion", read 2026-11-20.
 */
import type { JsonObject, JsonValue } from '../../../chat/json.js'
import type { ModelFacts } from '../../../chat/model.js'
import type { ChatRequest, ResponseFormat, Tool } from '../../../chat/request.js'
import { GatewayError } from '../../../errors.js'
import { wireName } from '../../../wire/openai/tool-names.js'
import { encodeChoice } from '../../../wire/openai/tool-fields.js'
import type { EncodeContext, Losses } from '../../dialect.js'
import { encodeMessages } from './request/encode-messages.js'
import {
  effortFor,
  isDefault,
  outputLimitField,
  accepts,
  acceptsStop,
} from '../shared/model-rules.js'
import { SERVICE_TIERS } from '../shared/constants.js'

/** Fields of this format in `request.rest`. Other fields there belong to other formats. */
const OWN = new Set([
  'audio',
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

/** The body for an upstream of this format. Throws `GatewayError(untranslatable)`; reports to `losses`. */
export function encodeRequest(request: ChatRequest, model: ModelFacts, losses: Losses): JsonObject {
  const context = { model, losses }
  const body: JsonObject = {
    model: request.model,
    messages: encodeMessages(request.messages, model, losses),
  }
  if (request.stream) {
    body['stream'] = true
    body['stream_options'] = { include_usage: true }
  }
  encodeTools(request, body)
  const effort = encodeEffort(request, body, context)
  encodeSampling(request, { body, effort }, context)
  encodeOutput(request, model, body)
  encodeRest(request, body, losses)
  return body
}

function encodeTools(request: ChatRequest, body: JsonObject): void {
  if (request.tools.length > 0) body['tools'] = request.tools.map(encodeTool)
  const { toolChoice, tools, parallelToolCalls } = request
  if (toolChoice !== undefined) {
    body['tool_choice'] = encodeChoice(toolChoice, tools, {
      named: (type, name) => ({ type, [type]: { name } }),
      allowed: (mode, named) => ({ type: 'allowed_tools', allowed_tools: { mode, tools: named } }),
    })
  }
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

function encodeEffort(
  { reasoningEffort, tools }: ChatRequest,
  body: JsonObject,
  { model, losses }: EncodeContext,
): string | undefined {
  const requested = { effort: reasoningEffort, tools: tools.length > 0 }
  const effort = effortFor(requested, model, losses)
  if (effort !== undefined) body['reasoning_effort'] = effort
  return effort
}

/** Sampling parameters, if the model accepts them. */
function encodeSampling(
  request: ChatRequest,
  { body, effort }: { body: JsonObject; effort: string | undefined },
  { model, losses }: EncodeContext,
): void {
  const fields: [string, JsonValue | undefined][] = [
    ['temperature', request.temperature],
    ['top_p', request.topP],
    ['frequency_penalty', request.frequencyPenalty],
    ['presence_penalty', request.presencePenalty],
    ['logprobs', request.logprobs],
    ['top_logprobs', request.topLogprobs],
    ['logit_bias', request.rest['logit_bias']],
    ['seed', request.seed],
    ['n', request.candidates],
  ]
  if (request.topK !== undefined) losses.drop('top_k', 'no-equivalent')
  for (const [field, value] of fields) {
    if (value === undefined) continue
    if (accepts(field, model, effort)) body[field] = value
    else if (!isDefault(field, value)) losses.drop(field, 'no-equivalent')
  }
}

function encodeOutput(request: ChatRequest, model: ModelFacts, body: JsonObject): void {
  const limit = request.maxOutputTokens
  if (limit !== undefined) body[outputLimitField(model)] = limit
  if (acceptsStop(request.stop, model) && request.stop !== undefined) {
    body['stop'] = stopOf(request.stop, model)
  }
  if (request.responseFormat !== undefined) {
    body['response_format'] = encodeFormat(request.responseFormat)
  }
  if (request.verbosity !== undefined) body['verbosity'] = request.verbosity
  if (request.userId !== undefined) body['user'] = request.userId
}

/** OpenAI's limit; other upstreams of the format may accept more. */
const MAX_STOP = 4

function stopOf(stop: string[], { family }: ModelFacts): string[] {
  if (family !== 'openai' || stop.length <= MAX_STOP) return stop
  throw new GatewayError(
    'untranslatable',
    `stop: this upstream accepts at most ${MAX_STOP} stop sequences. Send fewer, or choose another model.`,
    { param: 'stop' },
  )
}

function encodeFormat(format: ResponseFormat): JsonObject {
  if (format.type === 'text') return { type: 'text' }
  if (format.type === 'json-object') return { type: 'json_object' }
  const inner: JsonObject = { name: wireName(format.name), schema: format.schema }
  if (format.description !== undefined) inner['description'] = format.description
  if (format.strict !== undefined) inner['strict'] = format.strict
  return { type: 'json_schema', json_schema: inner }
}

function encodeRest(request: ChatRequest, body: JsonObject, losses: Losses): void {
  const { serviceTier, rest } = request
  if (serviceTier !== undefined) {
    if (SERVICE_TIERS.includes(serviceTier)) body['service_tier'] = serviceTier
    else losses.drop('service_tier', 'no-equivalent')
  }
  for (const [key, value] of Object.entries(rest)) {
    if (OWN.has(key)) body[key] = value
    else if (key !== 'logit_bias') losses.drop(key, 'no-equivalent')
  }
}
