/**
 * Encodes a canonical request as a generateContent body. Fields that Gemini does not support are refused or
 * reported.
 */
import { GatewayError } from '../../../errors.js'
import { SchemaBudget } from '../../chat/json-schema.js'
import {
  arrayOf,
  objectOf,
  stringOf,
  isObject,
  type JsonObject,
  type JsonValue,
} from '../../chat/json.js'
import type { ModelFacts } from '../../chat/model.js'
import type { ChatRequest, ReasoningEffort } from '../../chat/request.js'
import type { EncodeContext, Losses } from '../../dialect.js'
import {
  isThirdGeneration,
  MAX_INLINE_BYTES,
  MAX_STOP_SEQUENCES,
  type Content,
} from '../constants.js'
import { encodeContents } from './encode-messages.js'
import { relaxSchema } from './encode-schema.js'
import {
  jsonToolName,
  toolNames,
  encodeToolChoice,
  encodeTools,
  type JsonTool,
} from './encode-tools.js'
import { refused } from '../../wire/json/check-fields.js'

const SERVICE_TIERS: Readonly<Record<string, string | null>> = {
  auto: null,
  default: 'standard',
  standard: 'standard',
  flex: 'flex',
  priority: 'priority',
  fast: 'priority',
}

const JSON_ONLY = 'Respond with one JSON object only.'

/**
 * The body of the request. Deterministic: equal requests give equal bytes.
 * Throws `GatewayError(untranslatable)` naming the field and an alternative.
 */
export function encodeRequest(request: ChatRequest, model: ModelFacts, losses: Losses): JsonObject {
  const context = { model, losses }
  reportUnsupportedFields(request, losses)
  const candidates = candidateCount(request, model)
  const names = toolNames(request.tools)
  const format = chooseFormat(request, context)
  const { system, contents } = encodeContents(request.messages, {
    names,
    thirdGeneration: isThirdGeneration(model),
    systemInstruction: model.systemInstruction !== false,
    losses,
  })
  checkInlineSize(contents)
  if (format.instruction !== null) system.push({ text: format.instruction })
  const body: JsonObject = { contents }
  if (system.length > 0) body.systemInstruction = { parts: system }
  const tools = encodeTools(request.tools, names, format.tool)
  if (tools.length > 0) body.tools = tools
  const toolConfig = encodeToolChoice(request, names, format.tool)
  if (toolConfig !== undefined) body.toolConfig = toolConfig
  const mayCall = request.tools.length > 0 && request.toolChoice?.mode !== 'none'
  if (request.parallelToolCalls === false && mayCall) {
    losses.drop('parallel_tool_calls', 'no-equivalent')
  }
  const config = { ...encodeConfig(request, context), ...format.config }
  if (candidates > 1) config.candidateCount = candidates
  if (Object.keys(config).length > 0) body.generationConfig = config
  const tier = encodeServiceTier(request.serviceTier, losses)
  if (tier !== null) body.serviceTier = tier
  return body
}

/** Throws `body_too_large` for media above the API's limit, because the API's own error names no field. */
function checkInlineSize(contents: readonly Content[]): void {
  let size = 0
  for (const { parts } of contents) for (const part of parts) size += inlineSize(part)
  if (size <= MAX_INLINE_BYTES) return
  throw new GatewayError(
    'body_too_large',
    `messages: this upstream accepts at most ${MAX_INLINE_BYTES} bytes of images and files, as base64. ` +
      'Send smaller ones, or fewer.',
    { param: 'messages' },
  )
}

/** The base64 characters of a part, including the parts of a function response. */
function inlineSize(part: JsonObject): number {
  const own = stringOf(objectOf(part.inlineData).data)?.length ?? 0
  const nested = arrayOf(objectOf(part.functionResponse).parts)
  return nested.reduce((sum: number, one) => sum + inlineSize(objectOf(one)), own)
}

interface Format {
  config: JsonObject
  tool: JsonTool | null
  instruction: string | null
}

/**
 * Chooses how to request JSON: natively if the model supports it with these tools, else by a tool or an
 * instruction.
 */
function chooseFormat(request: ChatRequest, { model, losses }: EncodeContext): Format {
  const none: Format = { config: {}, tool: null, instruction: null }
  const format = request.responseFormat
  if (format === undefined || format.type === 'text') return none
  if (format.type === 'json-schema' && model.structuredOutput === false) {
    throw refused(
      'response_format',
      'this model does not support JSON schemas. Use a model that does.',
    )
  }
  const choice = request.toolChoice
  const mustCall =
    choice?.mode === 'required' ||
    choice?.mode === 'named' ||
    (choice?.mode === 'allowed' && choice.required)
  if (request.tools.length > 0 && mustCall) {
    // The reply is a call, so the format does not apply; the API rejects both together.
    losses.drop('response_format', 'approximated')
    return none
  }
  const together = model.structuredOutputWithTools ?? isThirdGeneration(model)
  const native = request.tools.length === 0 || together
  if (format.type === 'json-object') {
    if (native) return { ...none, config: { responseMimeType: 'application/json' } }
    losses.drop('response_format', 'approximated')
    return { ...none, instruction: JSON_ONLY }
  }
  if (native) {
    const budget = new SchemaBudget('response_format.json_schema.schema')
    const responseJsonSchema = relaxSchema(format.schema, budget)
    return { ...none, config: { responseMimeType: 'application/json', responseJsonSchema } }
  }
  const name = jsonToolName(request)
  return name === null ? none : { ...none, tool: { name, schema: format.schema } }
}

function encodeServiceTier(tier: string | undefined, losses: Losses): string | null {
  if (tier === undefined) return null
  const known = Object.hasOwn(SERVICE_TIERS, tier) ? SERVICE_TIERS[tier] : undefined
  if (known === undefined) losses.drop('service_tier', 'no-equivalent')
  return known ?? null
}

/** The number of requested replies. A model without facts gives one, as the newest models do. */
function candidateCount(
  { candidates = 1 }: ChatRequest,
  { maxCandidates = 1 }: ModelFacts,
): number {
  if (candidates <= maxCandidates) return candidates
  const limit = maxCandidates === 1 ? 'one reply' : `at most ${maxCandidates} replies`
  throw refused('n', `this model gives ${limit} per request. Send several requests instead.`)
}

/**
 * The members of `generationConfig` except those of the response format. Throws
 * `GatewayError(untranslatable)`.
 *
 * Source: ai.google.dev/api/generate-content, "GenerationConfig", read 2026-11-20.
 */
function encodeConfig(request: ChatRequest, context: EncodeContext): JsonObject {
  const { model, losses } = context
  const config: JsonObject = {}
  if (request.temperature !== undefined) config.temperature = request.temperature
  if (request.topP !== undefined) config.topP = request.topP
  if (request.topK !== undefined) config.topK = request.topK
  if (request.maxOutputTokens !== undefined) {
    const limit = model.maxOutputTokens ?? Infinity
    config.maxOutputTokens = Math.min(request.maxOutputTokens, limit)
    if (request.maxOutputTokens > limit) losses.drop('max_completion_tokens', 'approximated')
  }
  encodeStop(request.stop, config)
  encodeSeed(request.seed, config)
  encodePenalties(request, config, context)
  const resolution = isThirdGeneration(model) ? mediaResolution(request) : null
  if (resolution !== null) config.mediaResolution = resolution
  const thinking = encodeThinking(request, context)
  if (thinking !== undefined) config.thinkingConfig = thinking
  encodeLogprobs(request, model, config)
  return config
}

function encodeStop(stop: string[] | undefined, config: JsonObject): void {
  const stops = (stop ?? []).filter((text) => text !== '')
  if (stops.length > MAX_STOP_SEQUENCES) {
    throw refused('stop', `this upstream accepts at most ${MAX_STOP_SEQUENCES} stop strings.`)
  }
  if (stops.length > 0) config.stopSequences = stops
}

function encodeSeed(seed: number | undefined, config: JsonObject): void {
  if (seed === undefined) return
  if (!Number.isInteger(seed) || seed !== (seed | 0)) {
    throw refused('seed', 'this upstream accepts whole numbers of 32 bits (±2147483647).')
  }
  config.seed = seed
}

function encodeLogprobs(request: ChatRequest, model: ModelFacts, config: JsonObject): void {
  if (request.logprobs !== true) return
  if (model.logprobs !== true) {
    throw refused(
      'logprobs',
      'this model reports no log probabilities. Use an OpenAI chat model, or leave it out.',
    )
  }
  config.responseLogprobs = true
  const { topLogprobs = 0 } = request
  if (topLogprobs > 0) config.logprobs = topLogprobs
}

function encodePenalties(
  request: ChatRequest,
  config: JsonObject,
  { model, losses }: EncodeContext,
): void {
  const { frequencyPenalty, presencePenalty } = request
  if (model.penalties === false) {
    if ((frequencyPenalty ?? 0) !== 0) losses.drop('frequency_penalty', 'no-equivalent')
    if ((presencePenalty ?? 0) !== 0) losses.drop('presence_penalty', 'no-equivalent')
    return
  }
  if (frequencyPenalty !== undefined) config.frequencyPenalty = frequencyPenalty
  if (presencePenalty !== undefined) config.presencePenalty = presencePenalty
}

/** One setting applies to all images: high if any image requests it, low if all of them do. */
function mediaResolution(request: ChatRequest): string | null {
  let all = 0
  let low = 0
  for (const message of request.messages) {
    if (message.role !== 'user' && message.role !== 'tool') continue
    for (const part of message.parts) {
      if (part.type !== 'image') continue
      if (part.detail === 'high' || part.detail === 'original') return 'MEDIA_RESOLUTION_HIGH'
      all += 1
      if (part.detail === 'low') low += 1
    }
  }
  return all > 0 && low === all ? 'MEDIA_RESOLUTION_LOW' : null
}

/** The levels of a 3+ model for which the catalogue lists none; all current models have them. */
const COMMON_LEVELS = ['low', 'medium', 'high']

/** The budget per effort in tokens, for models with budgets. */
const BUDGETS: Readonly<Record<Exclude<ReasoningEffort, 'none'>, number>> = {
  minimal: 512,
  low: 1024,
  medium: 8192,
  high: 24_576,
  xhigh: Infinity,
  max: Infinity,
}

/** The levels for an effort, in order of preference. */
const LEVELS: Readonly<Record<ReasoningEffort, readonly string[]>> = {
  none: ['minimal', 'low'],
  minimal: ['minimal', 'low'],
  low: ['low'],
  medium: ['medium', 'high'],
  high: ['high'],
  xhigh: ['xhigh', 'high'],
  max: ['xhigh', 'high'],
}

/**
 * `thinkingConfig`; undefined if the client requests no effort. Thoughts are requested with every effort;
 * encoders for clients that do not show them omit them.
 */
function encodeThinking(
  request: ChatRequest,
  { model, losses }: EncodeContext,
): JsonObject | undefined {
  const effort = request.reasoningEffort
  if (effort === undefined) return vendorThinking(request, losses)
  if (isObject(request.rest.extra_content)) losses.drop('extra_content', 'no-equivalent')
  if (model.thinkingBudget !== undefined) return budget(effort, model.thinkingBudget, losses)
  if (model.reasoning === false || !isThirdGeneration(model)) {
    if (effort !== 'none') losses.drop('reasoning_effort', 'no-equivalent')
    return undefined
  }
  const known = model.thinkingLevels ?? COMMON_LEVELS
  const level = LEVELS[effort].find((candidate) => known.includes(candidate)) ?? 'high'
  if (level !== effort) losses.drop('reasoning_effort', 'approximated')
  return effort === 'none'
    ? { thinkingLevel: level }
    : { thinkingLevel: level, includeThoughts: true }
}

function budget(
  effort: ReasoningEffort,
  range: { min: number; max: number; canDisable: boolean },
  losses: Losses,
): JsonObject {
  if (effort === 'none') {
    if (!range.canDisable) losses.drop('reasoning_effort', 'approximated')
    return { thinkingBudget: range.canDisable ? 0 : range.min }
  }
  const thinkingBudget = Math.max(range.min, Math.min(BUDGETS[effort], range.max))
  return { thinkingBudget, includeThoughts: true }
}

/** `extra_content.google.thinking_config`, a field of Google's own chat endpoint. */
function vendorThinking(request: ChatRequest, losses: Losses): JsonObject | undefined {
  const extra = request.rest.extra_content
  if (extra === undefined || extra === null) return undefined
  const given = objectOf(objectOf(extra).google).thinking_config
  if (!isObject(given)) {
    losses.drop('extra_content', 'no-equivalent')
    return undefined
  }
  const level = given.thinking_level ?? given.thinkingLevel
  const tokens = given.thinking_budget ?? given.thinkingBudget
  const thoughts = given.include_thoughts ?? given.includeThoughts
  if (typeof level === 'string' && typeof tokens === 'number') {
    throw refused(
      'extra_content.google.thinking_config',
      'must not have both thinking_level and thinking_budget.',
    )
  }
  const config: JsonObject = {}
  if (typeof level === 'string') config.thinkingLevel = level
  if (typeof tokens === 'number') config.thinkingBudget = tokens
  if (typeof thoughts === 'boolean') config.includeThoughts = thoughts
  return Object.keys(config).length === 0 ? undefined : config
}

/** Fields that do not affect the reply. */
const SILENT = new Set([
  'metadata',
  'store',
  'prediction',
  'prompt_cache_key',
  'prompt_cache_retention',
  'prompt_cache_options',
  'cache_control',
  'stream_options',
  'user',
  'safety_identifier',
])

/** Fields that must not be dropped, and an alternative for each. */
const REFUSED: Readonly<Record<string, string>> = {
  audio: 'Audio output needs an OpenAI audio model.',
  moderation: 'Only OpenAI supports it. Leave it out, or use an OpenAI model.',
  web_search_options: 'Web search through this field needs an OpenAI search model.',
}

/**
 * Throws `GatewayError(untranslatable)` for fields that must not be dropped; reports the others to `losses`.
 *
 * Refuses or reports the fields that a Gemini request cannot carry, and ignores those that do not affect the
 * reply.
 */
function reportUnsupportedFields(request: ChatRequest, losses: Losses): void {
  if ((request.topLogprobs ?? 0) > 0 && request.logprobs !== true) {
    losses.drop('top_logprobs', 'no-equivalent')
  }
  if (request.verbosity !== undefined) losses.drop('verbosity', 'no-equivalent')
  for (const [field, value] of Object.entries(request.rest)) {
    if (value === null || SILENT.has(field)) continue
    if (Object.hasOwn(REFUSED, field)) {
      const alternative = REFUSED[field] ?? ''
      throw refused(field, `this upstream does not support it. ${alternative}`)
    }
    if (field === 'modalities') checkModalities(value)
    else if (isLoss(field, value)) losses.drop(field, 'no-equivalent')
  }
}

function isLoss(field: string, value: JsonValue): boolean {
  if (field === 'logit_bias') return !isObject(value) || Object.keys(value).length > 0
  // `encodeThinking` reads `extra_content` and reports its losses.
  return field !== 'extra_content'
}

function checkModalities(value: JsonValue): void {
  if (Array.isArray(value) && value.every((item) => item === 'text')) return
  throw refused('modalities', 'this upstream replies in text only. Send ["text"].')
}
