/**
 * Writes a canonical request as the body of `POST /responses`.
 * Deterministic; knows the model's facts and no client dialect. What cannot be said is a loss or a refusal.
 *
 * Source: OpenAI API reference, "Create a model response", read 2026-11-20.
 */
import { nearestEffort } from '../../../chat/effort.js'
import { arrayOf, isObject, type JsonObject, type JsonValue, objectOf } from '../../../chat/json.js'
import { type ModelFacts, takesSampling } from '../../../chat/model.js'
import type { ChatRequest } from '../../../chat/request.js'
import { GatewayError } from '../../../errors.js'
import type { Losses } from '../../dialect.js'
import { encodeInput, knowsBreakpoints } from './request/encode-messages.js'
import {
  encodeFormat,
  encodeTool,
  encodeToolChoice,
  encodeWebSearch,
} from './request/encode-tools.js'
import { MIN_OUTPUT_TOKENS, SERVICE_TIERS } from '../shared/names.js'

/** Fields that the canon keeps by name and that this format spells alike. */
const SAME = new Set([
  'metadata',
  'moderation',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'truncation',
])

/** Fields that are read elsewhere in this file, or change nothing about the answer. */
const SILENT = new Set(['cache_control', 'prediction', 'reasoning', 'store', 'web_search_options'])

/** The members of a `reasoning` object beside the effort. */
const REASONING = new Set(['context', 'mode', 'summary'])

/** Throws `GatewayError(untranslatable)` for what must not be dropped; reports to `losses` what may. */
export function encodeRequest(request: ChatRequest, model: ModelFacts, losses: Losses): JsonObject {
  refuseShapes(request)
  const body: JsonObject = {
    model: request.model,
    input: encodeInput(request.messages, model, losses),
    // The format stores what is not told otherwise; chat completions does not.
    store: request.rest['store'] === true,
  }
  if (request.stream) body['stream'] = true
  encodeTools(request, body)
  encodeReasoning(request, model, body, losses)
  encodeSampling(request, model, body, losses)
  encodeOutput(request, body, losses)
  encodeRest(request, model, body, losses)
  return body
}

/** What has no words here and would change the answer if it were left out. */
function refuseShapes(request: ChatRequest): void {
  if ((request.stop ?? []).some((text) => text !== '')) {
    throw refused('stop', 'it knows no stop strings. Leave it out')
  }
  if ((request.candidates ?? 1) > 1) throw refused('n', 'it gives one answer. Send n requests')
  const { audio, modalities } = request.rest
  if (audio !== undefined) throw refused('audio', 'it does not speak. Ask for an audio model')
  if (Array.isArray(modalities) && modalities.includes('audio')) {
    throw refused('modalities', 'it does not speak. Ask for an audio model')
  }
}

function refused(param: string, why: string): GatewayError {
  const message = `${param}: this model is asked through OpenAI’s Responses, and ${why}.`
  return new GatewayError('untranslatable', message, { param })
}

function encodeTools(request: ChatRequest, body: JsonObject): void {
  const { toolChoice, tools, parallelToolCalls, rest } = request
  const written = tools.map(encodeTool)
  const search = rest['web_search_options']
  if (isObject(search)) written.push(encodeWebSearch(search))
  if (written.length > 0) body['tools'] = written
  if (toolChoice !== undefined) body['tool_choice'] = encodeToolChoice(toolChoice, tools)
  if (parallelToolCalls !== undefined) body['parallel_tool_calls'] = parallelToolCalls
}

/** How much to think, and that what was thought comes back sealed, for the next turn. */
function encodeReasoning(
  request: ChatRequest,
  model: ModelFacts,
  body: JsonObject,
  losses: Losses,
): void {
  const { reasoningEffort: asked, rest } = request
  // Models that do not think refuse the field: "Encrypted content is not supported".
  if (model.reasoning === false) {
    if (asked !== undefined && asked !== 'none') losses.drop('reasoning_effort', 'no-equivalent')
    if (rest['reasoning'] !== undefined) losses.drop('reasoning', 'no-equivalent')
    return
  }
  body['include'] = ['reasoning.encrypted_content']
  const reasoning: JsonObject = {}
  for (const [key, value] of Object.entries(objectOf(rest['reasoning']))) {
    if (REASONING.has(key)) reasoning[key] = value
    else if (key !== 'effort') losses.drop(`reasoning.${key}`, 'no-equivalent')
  }
  if (asked !== undefined) {
    const effort = nearestEffort(asked, model.reasoningEfforts)
    if (effort !== asked) losses.drop('reasoning_effort', 'approximated')
    reasoning['effort'] = effort
  }
  if (Object.keys(reasoning).length > 0) body['reasoning'] = reasoning
}

/** Sampling parameters, where the model takes them; penalties and seeds it never does here. */
function encodeSampling(
  request: ChatRequest,
  model: ModelFacts,
  body: JsonObject,
  losses: Losses,
): void {
  const free = takesSampling(model, objectOf(body['reasoning'])['effort'])
  const put = (key: string, value: number | undefined): void => {
    if (value === undefined) return
    if (free) body[key] = value
    // The value that the model uses anyway is no loss.
    else if (value !== 1) losses.drop(key, 'no-equivalent')
  }
  put('temperature', request.temperature)
  put('top_p', request.topP)
  if (request.topK !== undefined) losses.drop('top_k', 'no-equivalent')
  encodeLogprobs(request, free, body, losses)
  if ((request.frequencyPenalty ?? 0) !== 0) losses.drop('frequency_penalty', 'no-equivalent')
  if ((request.presencePenalty ?? 0) !== 0) losses.drop('presence_penalty', 'no-equivalent')
  if (request.seed !== undefined) losses.drop('seed', 'no-equivalent')
}

/** A model that thinks tells none; what it is not asked for is no more than lost. */
function encodeLogprobs(
  { logprobs, topLogprobs = 0 }: ChatRequest,
  free: boolean,
  body: JsonObject,
  losses: Losses,
): void {
  const asked = logprobs === true && free
  if (logprobs === true && !free) losses.drop('logprobs', 'no-equivalent')
  if (topLogprobs > 0 && !asked) losses.drop('top_logprobs', 'no-equivalent')
  if (!asked) return
  body['include'] = [...arrayOf(body['include']), 'message.output_text.logprobs']
  if (topLogprobs > 0) body['top_logprobs'] = topLogprobs
}

function encodeOutput(request: ChatRequest, body: JsonObject, losses: Losses): void {
  const { maxOutputTokens: most, responseFormat, verbosity, userId, serviceTier } = request
  if (most !== undefined) {
    body['max_output_tokens'] = Math.max(most, MIN_OUTPUT_TOKENS)
    if (most < MIN_OUTPUT_TOKENS) losses.drop('max_completion_tokens', 'approximated')
  }
  const text: JsonObject = {}
  if (responseFormat !== undefined) text['format'] = encodeFormat(responseFormat)
  if (verbosity !== undefined) text['verbosity'] = verbosity
  if (Object.keys(text).length > 0) body['text'] = text
  if (userId !== undefined) body['safety_identifier'] = userId
  if (serviceTier === undefined) return
  if (SERVICE_TIERS.includes(serviceTier)) body['service_tier'] = serviceTier
  else losses.drop('service_tier', 'no-equivalent')
}

function encodeRest(
  request: ChatRequest,
  model: ModelFacts,
  body: JsonObject,
  losses: Losses,
): void {
  for (const [key, value] of Object.entries(request.rest)) {
    if (isHarmless(key, value, model)) continue
    if (SAME.has(key)) body[key] = value
    else losses.drop(key, 'no-equivalent')
  }
}

/** What can be left out without changing the answer. */
function isHarmless(key: string, value: JsonValue, model: ModelFacts): boolean {
  if (key === 'prompt_cache_options' && !knowsBreakpoints(model)) return true
  if (key === 'logit_bias') return Object.keys(objectOf(value)).length === 0
  if (key === 'prompt_cache_retention') return model.promptCacheRetention === false
  // What asks for sound was refused.
  return key === 'modalities' || SILENT.has(key)
}

/** A model that reasons says nothing for minutes, and a silent connection is cut on its way. */
export function streamsWhole(_request: ChatRequest, model: ModelFacts): boolean {
  return model.reasoning !== false
}
