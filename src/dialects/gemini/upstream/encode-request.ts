/**
 * A canonical request as a generateContent body.
 * Knows no URL and no credential; what Gemini cannot say is refused or reported, never lost silently.
 */
import {
  arrayOf,
  isObject,
  objectOf,
  stringOf,
  type JsonObject,
  type JsonValue,
} from '../../../chat/json.js'
import type { ModelFacts } from '../../../chat/model.js'
import type { ChatRequest } from '../../../chat/request.js'
import { SchemaBudget } from '../../../chat/json-schema/schema-budget.js'
import { GatewayError } from '../../../errors.js'
import type { Losses } from '../../dialect.js'
import { encodeContents } from './request/encode-messages.js'
import { relaxSchema } from './request/encode-schema.js'
import { encodeThinking } from './request/encode-thinking.js'
import { jsonToolName, toolNames } from './request/tool-names.js'
import { encodeToolChoice, encodeTools, type JsonTool } from './request/encode-tools.js'
import {
  type Content,
  isThirdGeneration,
  MAX_INLINE_BYTES,
  MAX_STOP_SEQUENCES,
} from '../shared/names.js'

/** What has no equivalent but cannot change the answer. */
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

/** What must not be lost, and what would take it. */
const REFUSED: Readonly<Record<string, string>> = {
  audio: 'Audio output needs an OpenAI audio model.',
  moderation: 'Only OpenAI applies it; leave it out to go without.',
  web_search_options: 'Web search through this field needs an OpenAI search model.',
}

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
 * The body of the request. Deterministic: the same request gives the same bytes.
 * Throws `GatewayError(untranslatable)` naming the field and what would take it.
 */
export function encodeRequest(request: ChatRequest, model: ModelFacts, losses: Losses): JsonObject {
  encodeRest(request, losses)
  const candidates = candidateCount(request, model)
  const thirdGeneration = isThirdGeneration(model)
  const names = toolNames(request.tools)
  const format = chooseFormat(request, model, thirdGeneration, losses)
  const { system, contents } = encodeContents(request.messages, {
    names,
    thirdGeneration,
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
  const config = { ...encodeConfig(request, model, thirdGeneration, losses), ...format.config }
  if (candidates > 1) config.candidateCount = candidates
  encodeLogprobs(request, model, config)
  if (Object.keys(config).length > 0) body.generationConfig = config
  const tier = encodeServiceTier(request.serviceTier, losses)
  if (tier !== null) body.serviceTier = tier
  return body
}

/** The API answers a larger request with an error that names no field; better said here. */
function checkInlineSize(contents: readonly Content[]): void {
  let size = 0
  for (const { parts } of contents) for (const part of parts) size += inlineSize(part)
  if (size <= MAX_INLINE_BYTES) return
  throw new GatewayError(
    'body_too_large',
    `messages: this upstream takes at most ${MAX_INLINE_BYTES} bytes of images and files, as base64. ` +
      'Send smaller ones, or fewer.',
    { param: 'messages' },
  )
}

/** The base64 of a part and of what a function response shows. */
function inlineSize(part: JsonObject): number {
  const own = stringOf(objectOf(part.inlineData).data)?.length ?? 0
  const shown = arrayOf(objectOf(part.functionResponse).parts)
  return shown.reduce((sum: number, one) => sum + inlineSize(objectOf(one)), own)
}

function encodeConfig(
  request: ChatRequest,
  model: ModelFacts,
  thirdGeneration: boolean,
  losses: Losses,
): JsonObject {
  const config: JsonObject = {}
  if (request.temperature !== undefined) config.temperature = request.temperature
  if (request.topP !== undefined) config.topP = request.topP
  if (request.topK !== undefined) config.topK = request.topK
  if (request.maxOutputTokens !== undefined) {
    const most = model.maxOutputTokens ?? Infinity
    config.maxOutputTokens = Math.min(request.maxOutputTokens, most)
    if (request.maxOutputTokens > most) losses.drop('max_completion_tokens', 'approximated')
  }
  encodeStop(request.stop, config)
  encodeSeed(request.seed, config)
  encodePenalties(request, model, config, losses)
  const resolution = thirdGeneration ? mediaResolution(request) : null
  if (resolution !== null) config.mediaResolution = resolution
  const thinking = encodeThinking(request, model, thirdGeneration, losses)
  if (thinking !== undefined) config.thinkingConfig = thinking
  return config
}

function encodeStop(stop: string[] | undefined, config: JsonObject): void {
  const stops = (stop ?? []).filter((text) => text !== '')
  if (stops.length > MAX_STOP_SEQUENCES) {
    throw refused('stop', `stop: this upstream takes at most ${MAX_STOP_SEQUENCES} stop strings.`)
  }
  if (stops.length > 0) config.stopSequences = stops
}

function encodeSeed(seed: number | undefined, config: JsonObject): void {
  if (seed === undefined) return
  if (!Number.isInteger(seed) || seed !== (seed | 0)) {
    throw refused('seed', 'seed: this upstream takes whole numbers of 32 bits (±2147483647).')
  }
  config.seed = seed
}

function encodeLogprobs(request: ChatRequest, model: ModelFacts, config: JsonObject): void {
  if (request.logprobs !== true) return
  if (model.logprobs !== true) {
    throw refused('logprobs', 'logprobs: this model gives none; an OpenAI chat model does.')
  }
  config.responseLogprobs = true
  const { topLogprobs = 0 } = request
  if (topLogprobs > 0) config.logprobs = topLogprobs
}

function encodePenalties(
  request: ChatRequest,
  model: ModelFacts,
  config: JsonObject,
  losses: Losses,
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

/** One setting holds for all images: high where any image asks for it, low where all of them do. */
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

interface Format {
  config: JsonObject
  tool: JsonTool | null
  instruction: string | null
}

/** Native JSON where the model can have it with these tools; else the nearest thing. */
function chooseFormat(
  request: ChatRequest,
  model: ModelFacts,
  thirdGeneration: boolean,
  losses: Losses,
): Format {
  const none: Format = { config: {}, tool: null, instruction: null }
  const format = request.responseFormat
  if (format === undefined || format.type === 'text') return none
  if (format.type === 'json-schema' && model.structuredOutput === false) {
    throw refused(
      'response_format',
      'response_format: this model cannot be held to a JSON schema. Choose one that can.',
    )
  }
  const choice = request.toolChoice
  const mustCall =
    choice?.mode === 'required' ||
    choice?.mode === 'named' ||
    (choice?.mode === 'allowed' && choice.required)
  if (request.tools.length > 0 && mustCall) {
    // The answer is a call whatever the format says; the API refuses the two together.
    losses.drop('response_format', 'approximated')
    return none
  }
  const together = model.structuredOutputWithTools ?? thirdGeneration
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

/** Fields outside the canon, and those of the canon that no Gemini request can carry. */
function encodeRest(request: ChatRequest, losses: Losses): void {
  if ((request.topLogprobs ?? 0) > 0 && request.logprobs !== true) {
    losses.drop('top_logprobs', 'no-equivalent')
  }
  if (request.verbosity !== undefined) losses.drop('verbosity', 'no-equivalent')
  for (const [field, value] of Object.entries(request.rest)) {
    if (value === null || SILENT.has(field)) continue
    if (Object.hasOwn(REFUSED, field)) {
      const who = REFUSED[field] ?? ''
      throw refused(field, `${field}: this upstream cannot do that. ${who}`)
    }
    if (field === 'modalities') checkModalities(value)
    else if (isLoss(field, value)) losses.drop(field, 'no-equivalent')
  }
}

/** How many answers are asked for. A model that nothing is known of gives one, as the newest do. */
function candidateCount(
  { candidates = 1 }: ChatRequest,
  { maxCandidates = 1 }: ModelFacts,
): number {
  if (candidates <= maxCandidates) return candidates
  const most = maxCandidates === 1 ? 'one answer' : `at most ${maxCandidates} answers`
  throw refused('n', `n: this model gives ${most} to a request. Send several requests instead.`)
}

function isLoss(field: string, value: JsonValue): boolean {
  if (field === 'logit_bias') return !isObject(value) || Object.keys(value).length > 0
  // Read by `encodeThinking`, which reports what it does not take.
  return field !== 'extra_content'
}

function checkModalities(value: JsonValue): void {
  if (Array.isArray(value) && value.every((item) => item === 'text')) return
  throw refused('modalities', 'modalities: this upstream answers in text only. Send ["text"].')
}

function refused(param: string, message: string): GatewayError {
  return new GatewayError('untranslatable', message, { param })
}
