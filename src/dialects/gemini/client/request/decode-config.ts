/**
 * Decodes `generationConfig`: one rule for every field of the format. Fields without a canonical form are
 * recorded by their path, so that encoders can report their loss.
 *
 * Source: ai.google.dev/api/generate-content#generationconfig and the types of @google/genai 2, read
 * 2026-11-20.
 */
import { isClosed } from '../../../../chat/json-schema/closed-schema.js'
import type { JsonObject, JsonValue } from '../../../../chat/json.js'
import type { ChatRequest, ReasoningEffort, ResponseFormat } from '../../../../chat/request.js'
import {
  boolean,
  finiteObject,
  given,
  integer,
  number,
  object,
  refuse,
  string,
} from '../../../../wire/json/check-fields.js'
import { jsonSchema } from './decode-schema.js'
import { list, message, numeric, enumValue } from './proto-fields.js'
import { loseNative } from './native-fields.js'

/** Checks one field and stores it. */
type Rule = (value: JsonValue, request: ChatRequest, path: string) => void

const MAX_STOPS = 16
const MAX_CANDIDATES = 8
const MAX_MODALITIES = 8
const JSON_TYPE = 'application/json'

/** Fields that are decoded together, after the others. */
const FORMAT = ['responseMimeType', 'responseSchema', 'responseJsonSchema', '_responseJsonSchema']

/** Decodes `generationConfig` into the request. */
export function decodeConfig(value: JsonValue, path: string, request: ChatRequest): void {
  const config = message(value, path)
  for (const [key, inner] of Object.entries(config)) {
    if (!given(inner) || FORMAT.includes(key)) continue
    const at = `${path}.${key}`
    const rule = RULES.get(key)
    if (rule === undefined) loseNative(request, at)
    else rule(inner, request, at)
  }
  const format = formatOf(config, path, request)
  if (format !== undefined) request.responseFormat = format
}

/** The rule of a field without a canonical form: checks it and records it as native. */
function nativeOnly(check: (value: JsonValue, path: string) => unknown): Rule {
  return (value, request, path) => {
    check(value, path)
    loseNative(request, path)
  }
}

const RULES: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ['temperature', (v, r, at) => void (r.temperature = number(v, at, { min: 0, max: 2 }))],
  ['topP', (v, r, at) => void (r.topP = number(v, at, { min: 0, max: 1 }))],
  ['topK', (v, r, at) => void (r.topK = integer(numeric(v), at, { min: 1 }))],
  ['maxOutputTokens', (v, r, at) => void (r.maxOutputTokens = integer(numeric(v), at, { min: 1 }))],
  ['stopSequences', stopSequences],
  [
    'candidateCount',
    (v, r, at) => void (r.candidates = integer(numeric(v), at, { min: 1, max: MAX_CANDIDATES })),
  ],
  [
    'seed',
    (v, r, at) => void (r.seed = integer(numeric(v), at, { min: -(2 ** 31), max: 2 ** 31 - 1 })),
  ],
  ['presencePenalty', (v, r, at) => void (r.presencePenalty = number(v, at, { min: -2, max: 2 }))],
  [
    'frequencyPenalty',
    (v, r, at) => void (r.frequencyPenalty = number(v, at, { min: -2, max: 2 })),
  ],
  ['responseLogprobs', (v, r, at) => void (r.logprobs = boolean(v, at))],
  ['logprobs', (v, r, at) => void (r.topLogprobs = integer(numeric(v), at, { min: 0, max: 20 }))],
  ['thinkingConfig', thinkingConfig],
  ['responseModalities', responseModalities],
  ['mediaResolution', mediaResolution],
  ['speechConfig', nativeOnly(finiteObject)],
  ['imageConfig', nativeOnly(finiteObject)],
  ['audioTimestamp', nativeOnly(boolean)],
  ['enableAffectiveDialog', nativeOnly(boolean)],
  ['enableEnhancedCivicAnswers', nativeOnly(boolean)],
  ['routingConfig', nativeOnly(object)],
  ['modelSelectionConfig', nativeOnly(object)],
])

function stopSequences(value: JsonValue, request: ChatRequest, path: string): void {
  const stop = list(value, path, MAX_STOPS).map((item, at) => string(item, `${path}[${at}]`))
  if (stop.length > 0) request.stop = stop
}

/** Every upstream supports text; any other modality is native. */
function responseModalities(value: JsonValue, request: ChatRequest, path: string): void {
  const kinds = list(value, path, MAX_MODALITIES).map((kind, at) =>
    enumValue(kind, `${path}[${at}]`),
  )
  if (kinds.some((kind) => kind !== 'TEXT' && kind !== 'MODALITY_UNSPECIFIED')) {
    loseNative(request, path)
  }
}

const DETAILS: Readonly<Record<string, 'low' | 'high'>> = {
  MEDIA_RESOLUTION_LOW: 'low',
  MEDIA_RESOLUTION_HIGH: 'high',
}

/** Sets the detail of all images, which other formats state per image. The messages are already decoded. */
function mediaResolution(value: JsonValue, request: ChatRequest, path: string): void {
  const detail = DETAILS[enumValue(value, path)]
  if (detail === undefined) return
  for (const { role, parts } of request.messages) {
    if (role !== 'user' && role !== 'tool') continue
    for (const part of parts) if (part.type === 'image') part.detail = detail
  }
}

const LEVELS: Readonly<Record<string, ReasoningEffort>> = {
  MINIMAL: 'minimal',
  LOW: 'low',
  MEDIUM: 'medium',
  HIGH: 'high',
  XHIGH: 'xhigh',
}

/** Thinking budgets as reasoning efforts: the maximum budget, in tokens, that maps to each effort. */
const BUDGETS: readonly (readonly [number, ReasoningEffort])[] = [
  [0, 'none'],
  [512, 'minimal'],
  [2_048, 'low'],
  [8_192, 'medium'],
  [Infinity, 'high'],
]

function thinkingConfig(value: JsonValue, request: ChatRequest, path: string): void {
  const { thinkingLevel, thinkingBudget, includeThoughts, ...others } = message(value, path)
  if (given(includeThoughts) && boolean(includeThoughts, `${path}.includeThoughts`)) {
    request.hidesThoughts = false
  }
  for (const [key, inner] of Object.entries(others)) {
    if (given(inner)) loseNative(request, `${path}.${key}`)
  }
  const level = given(thinkingLevel) ? enumValue(thinkingLevel, `${path}.thinkingLevel`) : ''
  const named = level !== '' && level !== 'THINKING_LEVEL_UNSPECIFIED'
  if (named && given(thinkingBudget)) {
    refuse(path, 'must not have both thinkingLevel and thinkingBudget')
  }
  if (named) {
    const effort = Object.hasOwn(LEVELS, level) ? LEVELS[level] : undefined
    const rule = `must be one of ${Object.keys(LEVELS).join(', ')}`
    request.reasoningEffort = effort ?? refuse(`${path}.thinkingLevel`, rule)
  }
  if (!given(thinkingBudget)) return
  const tokens = integer(numeric(thinkingBudget), `${path}.thinkingBudget`, { min: -1 })
  // -1 lets the model choose its budget.
  if (tokens === -1) return
  request.reasoningEffort = BUDGETS.find(([maxTokens]) => tokens <= maxTokens)?.[1] ?? 'high'
}

function formatOf(
  config: JsonObject,
  path: string,
  request: ChatRequest,
): ResponseFormat | undefined {
  const { responseMimeType, responseSchema } = config
  const json = config['responseJsonSchema'] ?? config['_responseJsonSchema']
  if (given(responseSchema) && given(json)) {
    refuse(path, 'must not have both responseSchema and responseJsonSchema')
  }
  const type = given(responseMimeType)
    ? string(responseMimeType, `${path}.responseMimeType`).toLowerCase()
    : ''
  // `text/x.enum`: an enum value without quotes, which no other provider supports.
  if (type !== '' && type !== 'text/plain' && type !== JSON_TYPE) {
    loseNative(request, `${path}.responseMimeType`)
    return undefined
  }
  const schema = given(responseSchema)
    ? jsonSchema(responseSchema, `${path}.responseSchema`)
    : given(json)
      ? finiteObject(json, `${path}.responseJsonSchema`)
      : null
  if (schema !== null) {
    const strict = isClosed(schema) ? { strict: true } : {}
    return { type: 'json-schema', name: 'response', schema, ...strict }
  }
  return type === JSON_TYPE ? { type: 'json-object' } : undefined
}
