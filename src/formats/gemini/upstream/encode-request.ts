/**
 * Encodes a canonical request as a generateContent body. Fields that Gemini does not support are refused or
 * reported.
 */
import { GatewayError } from '../../../errors.js'
import { SchemaBudget } from '../../chat/json-schema.js'
import { arrayOf, objectOf, stringOf, isObject, type JsonObject, type JsonValue } from '../../../base/json.js'
import type { ModelFacts } from '../../chat/model-facts.js'
import type { ChatRequest, ReasoningEffort } from '../../chat/request.js'
import { geminiBudget } from '../../chat/thinking-budgets.js'
import type { EncodeContext, Losses } from '../../dialect.js'
import { isThirdGeneration, MAX_INLINE_BYTES, MAX_STOP_SEQUENCES, type Content } from '../constants.js'
import { fieldsFor, loseFields, writeFields, type ScalarField } from '../../wire/scalar-fields.js'
import { FIELDS } from '../fields.js'
import { encodeContents } from './encode-messages.js'
import { encodeToolChoice, encodeTools, fittedSchema, jsonToolName, type JsonTool } from './encode-tools.js'
import { REPLY_SCHEMA } from '../../wire/fit-schema.js'
import { refused } from '../../wire/json/check-fields.js'
import { WITHOUT_EFFECT } from '../../wire/request-fields.js'

/** Google's names of tiers by OpenAI's; null is the default. */
const SERVICE_TIERS: ReadonlyMap<JsonValue, string | null> = new Map([
  ['auto', null],
  ['default', 'standard'],
  ['standard', 'standard'],
  ['flex', 'flex'],
  ['priority', 'priority'],
  ['fast', 'priority'],
])

const JSON_ONLY = 'Respond with one JSON object only.'

/**
 * The body of the request. Deterministic: equal requests give equal bytes.
 * Throws `GatewayError(untranslatable)` naming the field and an alternative.
 */
export function encodeRequest(request: ChatRequest, model: ModelFacts, losses: Losses): JsonObject {
  const context = { model, losses }
  reportUnsupportedFields(request, losses)
  const candidates = candidateCount(request, model)
  const format = chooseFormat(request, context)
  const { system, contents } = encodeContents(request.messages, {
    thirdGeneration: isThirdGeneration(model),
    systemInstruction: model.systemInstruction !== false,
    losses,
  })
  checkInlineSize(contents)
  if (format.instruction !== null) system.push({ text: format.instruction })
  if (request.prefix === true) losses.drop('messages.prefix', 'no-equivalent')
  const body: JsonObject = { contents }
  if (system.length > 0) body.systemInstruction = { parts: system }
  const tools = encodeTools(request.tools, format.tool, losses)
  if (tools.length > 0) body.tools = tools
  const toolConfig = encodeToolChoice(request, format.tool)
  if (toolConfig !== undefined) body.toolConfig = toolConfig
  const mayCall = request.tools.length > 0 && request.toolChoice?.mode !== 'none'
  if (mayCall) loseFields(request, PARALLEL_CALLS, losses)
  const config = { ...encodeConfig(request, context), ...format.config }
  if (candidates > 1) config.candidateCount = candidates
  if (Object.keys(config).length > 0) body.generationConfig = config
  writeFields(request, TIER, { body, losses, encode: (_field, tier) => SERVICE_TIERS.get(tier) })
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
    throw refused('response_format', 'this model does not support JSON schemas. Use a model that does.')
  }
  const choice = request.toolChoice
  const mustCall =
    choice?.mode === 'required' || choice?.mode === 'named' || (choice?.mode === 'allowed' && choice.required)
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
    const responseJsonSchema = fittedSchema(format.schema, { budget, losses, path: REPLY_SCHEMA })
    return { ...none, config: { responseMimeType: 'application/json', responseJsonSchema } }
  }
  const name = jsonToolName(request)
  return name === null ? none : { ...none, tool: { name, schema: format.schema } }
}

/** The number of requested replies. A model without facts gives one, as the newest models do. */
function candidateCount({ candidates = 1 }: ChatRequest, { maxCandidates = 1 }: ModelFacts): number {
  if (candidates <= maxCandidates) return candidates
  const limit = maxCandidates === 1 ? 'one reply' : `at most ${maxCandidates} replies`
  throw refused('n', `this model gives ${limit} per request. Send several requests instead.`)
}

const SAMPLING = fieldsFor(
  FIELDS,
  'temperature',
  'topP',
  'topK',
  'maxOutputTokens',
  'stop',
  'seed',
  'frequencyPenalty',
  'presencePenalty',
)
const LOGPROBS = fieldsFor(FIELDS, 'logprobs', 'topLogprobs')
const VERBOSITY = fieldsFor(FIELDS, 'verbosity')
const PARALLEL_CALLS = fieldsFor(FIELDS, 'parallelToolCalls')
const TOP_LOGPROBS = fieldsFor(FIELDS, 'topLogprobs')
const TIER = fieldsFor(FIELDS, 'serviceTier')

/**
 * The members of `generationConfig` except those of the response format. Throws
 * `GatewayError(untranslatable)`.
 *
 * Source: ai.google.dev/api/generate-content, "GenerationConfig", read 2026-11-20.
 */
function encodeConfig(request: ChatRequest, context: EncodeContext): JsonObject {
  const { model, losses } = context
  const body: JsonObject = {}
  const encode = ({ canonical }: ScalarField, value: JsonValue): JsonValue | undefined => {
    switch (canonical) {
      case 'maxOutputTokens':
        return outputLimit(request.maxOutputTokens ?? Infinity, context)
      case 'stop':
        return stopSequences(request.stop ?? [])
      case 'seed':
        return seed(value)
      case 'frequencyPenalty':
      case 'presencePenalty':
        return model.penalties === false ? undefined : value
      case 'logprobs':
        if (value !== true) return null
        return model.logprobs === true ? true : undefined
      case 'topLogprobs':
        return request.logprobs === true && value !== 0 ? value : null
      default:
        return value
    }
  }
  writeFields(request, SAMPLING, { body, losses, encode })
  const resolution = isThirdGeneration(model) ? mediaResolution(request) : null
  if (resolution !== null) body.mediaResolution = resolution
  const thinking = encodeThinking(request, context)
  if (thinking !== undefined) body.thinkingConfig = thinking
  writeFields(request, LOGPROBS, { body, losses, encode })
  return body
}

function outputLimit(
  requested: number,
  { model: { maxOutputTokens = Infinity }, losses }: EncodeContext,
): number {
  if (requested <= maxOutputTokens) return requested
  losses.drop('max_completion_tokens', 'approximated')
  return maxOutputTokens
}

/** Null if there is none. */
function stopSequences(stop: readonly string[]): string[] | null {
  const stops = stop.filter((text) => text !== '')
  if (stops.length > MAX_STOP_SEQUENCES) {
    throw refused('stop', `this upstream accepts at most ${MAX_STOP_SEQUENCES} stop strings.`)
  }
  return stops.length > 0 ? stops : null
}

function seed(value: JsonValue): number {
  if (typeof value === 'number' && value === (value | 0)) return value
  throw refused('seed', 'this upstream accepts whole numbers of 32 bits (±2147483647).')
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
function encodeThinking(request: ChatRequest, { model, losses }: EncodeContext): JsonObject | undefined {
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
  return effort === 'none' ? { thinkingLevel: level } : { thinkingLevel: level, includeThoughts: true }
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
  const thinkingBudget = Math.max(range.min, Math.min(geminiBudget(effort), range.max))
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
const SILENT_FIELDS = new Set([...WITHOUT_EFFECT, 'cache_control', 'safety_identifier', 'store', 'user'])

/** Fields that must not be dropped, and an alternative for each. */
const REFUSED: Readonly<Record<string, string>> = {
  audio: 'Audio output needs an OpenAI audio model.',
  moderation: 'Only OpenAI supports it. Leave it out, or use an OpenAI model.',
  web_search_options: 'Web search through this field needs an OpenAI search model.',
}

/**
 * Throws `GatewayError(untranslatable)` for fields that must not be dropped; reports the others that a Gemini
 * request cannot carry to `losses`, and ignores those that do not affect the reply.
 */
function reportUnsupportedFields(request: ChatRequest, losses: Losses): void {
  if (request.logprobs !== true) {
    writeFields(request, TOP_LOGPROBS, { body: {}, losses, encode: () => undefined })
  }
  loseFields(request, VERBOSITY, losses)
  for (const [field, value] of Object.entries(request.rest)) {
    if (value === null || SILENT_FIELDS.has(field)) continue
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
