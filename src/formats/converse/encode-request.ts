/**
 * Encodes a canonical request as the body of Converse and ConverseStream. Deterministic: equal requests give
 * equal bytes, and a longer conversation keeps the prefix of a shorter one.
 */
import { GatewayError } from '../../errors.js'
import { cloudModelOf } from '../chat/cloud-model-id.js'
import { requestsFreeformJson } from '../chat/json-schema.js'
import { arrayOf, isObject, membersOf, objectOf, type JsonObject, type JsonValue } from '../../base/json.js'
import type { ModelFacts } from '../chat/model-facts.js'
import { demandsCall } from '../chat/must-call.js'
import type { ChatRequest } from '../chat/request.js'
import { tokenCount } from '../chat/usage.js'
import type { Continuation, EncodeContext, Losses, TokenCounter } from '../dialect.js'
import { AWS_EVENT_STREAM } from '../wire/aws/event-stream.js'
import { refused } from '../wire/json/check-fields.js'
import { stringifyExact } from '../wire/json/exact-numbers.js'
import { hasNoEffect, WITHOUT_EFFECT } from '../wire/request-fields.js'
import { loseFields } from '../wire/scalar-fields.js'
import { wireName } from '../wire/tool-names.js'
import { SCHEMA_RULES, TOOL_NAMES } from '../vendors.js'
import { enforcedReplySchema, REPLY_SCHEMA } from '../wire/fit-schema.js'
import { hasObjectRoot } from '../wire/strict-schema.js'
import { withWireProperties } from '../wire/property-names.js'
import { isClaude, isNova } from './constants.js'
import { conversation } from './encode-messages.js'
import { reasoningFields, samplingFields } from './encode-reasoning.js'
import { toolConfig } from './encode-tools.js'
import { FIELDS, OR_OPENAI } from './fields.js'
import { isBlank, type Conversation } from '../wire/block-turns.js'

/** The API's maximum number of cache points. */
const CACHE_POINTS_MAX = 4

const JSON_ONLY = 'Respond with one JSON object only.'

/** For models that cannot be forced to call a tool. */
const CALL_A_TOOL = 'Reply by calling one of the tools.'

/** Members of Converse itself, which are passed unchanged. */
const OWN_MEMBERS = [
  'additionalModelRequestFields',
  'additionalModelResponseFieldPaths',
  'guardrailConfig',
  'performanceConfig',
  'promptVariables',
  'requestMetadata',
]

/** The path of the matched stop sequence in replies of Claude. */
const STOP_SEQUENCE = '/stop_sequence'

/**
 * Encodes the body. Throws `GatewayError(untranslatable)` for fields that must not be dropped; reports the
 * others to `losses`.
 */
export function encodeRequest(given: ChatRequest, model: ModelFacts, losses: Losses): JsonObject {
  const context = { model, losses }
  const request = withWireProperties(given)
  reportUnsupportedFields(request, losses)
  const { system, messages } = conversation(request, model, losses)
  const reasoning = reasoningFields(request, messages, context)
  const forced = model.forcedToolChoice !== false && reasoning.thinking?.type !== 'enabled'
  const textFormat = encodeFormat(request, forced, context)
  if (requestsFreeformJson(request)) system.push({ text: JSON_ONLY })
  if (!forced && demandsCall(request.toolChoice)) system.push({ text: CALL_A_TOOL })
  const tools = toolConfig(request, forced, context)
  const own = membersOf(request.rest, OWN_MEMBERS)
  const body: JsonObject = { messages: messages.map(({ role, content }) => ({ role, content })) }
  if (system.length > 0) body.system = system
  const sampling = samplingFields(request, reasoning.thinking, context)
  const config = inferenceConfig(request, sampling, context)
  if (Object.keys(config).length > 0) body.inferenceConfig = config
  if (tools !== undefined) body.toolConfig = tools
  const { additionalModelRequestFields: clients, ...others } = own
  Object.assign(body, others)
  const additional = {
    ...additionalFields(request, reasoning.thinking, context),
    ...clientFields(clients, losses),
  }
  if (Object.keys(additional).length > 0) body.additionalModelRequestFields = additional
  if (config.stopSequences !== undefined && isClaude(model)) {
    const paths = arrayOf(own.additionalModelResponseFieldPaths)
    body.additionalModelResponseFieldPaths = paths.includes(STOP_SEQUENCE) ? paths : [...paths, STOP_SEQUENCE]
  }
  const output: JsonObject = {}
  if (textFormat !== null) output.textFormat = textFormat
  if (reasoning.effort !== undefined) output.effort = reasoning.effort
  if (Object.keys(output).length > 0) body.outputConfig = output
  const tier = serviceTier(request, losses)
  if (tier !== undefined) body.serviceTier = { type: tier }
  limitCachePoints({ system, messages }, arrayOf(tools?.tools), body, losses)
  return body
}

function inferenceConfig(
  { maxOutputTokens: requested, stop = [] }: ChatRequest,
  { temperature, topP }: { readonly temperature?: number; readonly topP?: number },
  { model, losses }: EncodeContext,
): JsonObject {
  const config: JsonObject = {}
  const limit = model.maxOutputTokens ?? Infinity
  // Without a number the API uses the model's maximum.
  if (requested !== undefined) config.maxTokens = Math.min(requested, limit)
  if (requested !== undefined && requested > limit) {
    losses.drop('max_completion_tokens', 'approximated')
  }
  if (temperature !== undefined) config.temperature = temperature
  if (topP !== undefined) config.topP = topP
  const stopSequences = stop.filter((one) => one !== '')
  if (isClaude(model) && stopSequences.some(isBlank)) {
    throw refused('stop', `Claude accepts no stop sequence of white space only. Leave it out${OR_OPENAI}`)
  }
  if (stopSequences.length > 0) config.stopSequences = stopSequences
  return config
}

/** Members of the model's own API. */
function additionalFields(
  { topK }: ChatRequest,
  thinking: JsonObject | undefined,
  { model, losses }: EncodeContext,
): JsonObject {
  const fields: JsonObject = {}
  if (thinking !== undefined) fields.thinking = thinking
  if (topK === undefined) return fields
  if (isNova(model)) fields.inferenceConfig = { topK }
  else if (isClaude(model) && model.samplingParams !== 'never') fields.top_k = topK
  else losses.drop('top_k', 'no-equivalent')
  return fields
}

/** Members that would replace the model, the tools or the length that limits and budgets were checked for. */
const WITHHELD: ReadonlySet<string> = new Set([
  'max_completion_tokens',
  'max_gen_len',
  'max_new_tokens',
  'max_tokens',
  'max_tokens_to_sample',
  'maxTokens',
  'messages',
  'model',
  'n',
  'num_generations',
  'stream',
  'system',
  'tools',
])

/** The client's own additional fields, without those that are withheld. */
function clientFields(value: JsonValue | undefined, losses: Losses): JsonObject {
  const fields: JsonObject = {}
  for (const [name, field] of Object.entries(objectOf(value))) {
    if (WITHHELD.has(name)) {
      losses.drop(`additionalModelRequestFields.${name}`, 'no-equivalent')
    } else fields[name] = field
  }
  return fields
}

/** `outputConfig.textFormat`; null for text. */
function encodeFormat(
  request: ChatRequest,
  forced: boolean,
  { model, losses }: EncodeContext,
): JsonObject | null {
  const format = request.responseFormat
  if (requestsFreeformJson(request)) {
    losses.drop('response_format', 'approximated')
    return null
  }
  if (format?.type !== 'json-schema') return null
  const strict = enforcedReplySchema(format.schema, SCHEMA_RULES.bedrock)
  if (model.structuredOutput !== false && 'schema' in strict) {
    if (strict.lost) losses.drop(REPLY_SCHEMA, 'approximated')
    const jsonSchema: JsonObject = {
      schema: stringifyExact(strict.schema),
      name: wireName(format.name, TOOL_NAMES.converse),
    }
    if (format.description !== undefined) jsonSchema.description = format.description
    return { type: 'json_schema', structure: { jsonSchema } }
  }
  if (forced && demandsCall(request.toolChoice)) {
    // The reply is a call of the client's own tools, so the format does not apply.
    losses.drop('response_format', 'approximated')
    return null
  }
  const problem =
    'problem' in strict && hasObjectRoot(format.schema)
      ? strict.problem
      : 'problem' in strict
        ? 'the root must be an object'
        : `${model.id} has no structured output`
  throw refused('response_format.json_schema.schema', `${problem}. Change the schema${OR_OPENAI}`)
}

function serviceTier({ serviceTier: tier }: ChatRequest, losses: Losses): string | undefined {
  switch (tier) {
    case undefined:
    case 'auto':
      return undefined
    case 'default':
    case 'flex':
    case 'priority':
      return tier
    default:
      losses.drop('service_tier', 'no-equivalent')
      return undefined
  }
}

/** Keeps the last cache points within the API's limit, in its cache order: tools, system, messages. */
function limitCachePoints(
  { system, messages }: Conversation,
  tools: readonly JsonValue[],
  body: JsonObject,
  losses: Losses,
): void {
  const isPoint = (block: JsonValue): boolean => isObject(block) && block.cachePoint !== undefined
  const lists = [tools, system, ...messages.map(({ content }) => content)]
  const points = lists.flatMap((list) => list.filter(isPoint))
  if (points.length <= CACHE_POINTS_MAX) return
  losses.drop('cache_control', 'approximated')
  const excess = new Set(points.slice(0, -CACHE_POINTS_MAX))
  const kept = <T extends JsonValue>(list: readonly T[]): T[] => list.filter((block) => !excess.has(block))
  if (system.length > 0) body.system = kept(system)
  if (isObject(body.toolConfig)) body.toolConfig = { ...body.toolConfig, tools: kept(tools) }
  body.messages = messages.map(({ role, content }) => ({ role, content: kept(content) }))
}

/** Fields that must not be dropped, and why. */
const REFUSED: Readonly<Record<string, string>> = {
  audio: 'Bedrock does not generate audio',
  moderation: 'Bedrock has no moderation of OpenAI, and dropping it would be unsafe',
  web_search_options: 'this route does not search the web',
}

/**
 * Throws `GatewayError(untranslatable)` for fields that must not be dropped; reports the others to `losses`.
 */
function reportUnsupportedFields(request: ChatRequest, losses: Losses): void {
  loseFields(request, FIELDS, losses)
  for (const [field, value = null] of Object.entries(request.rest)) {
    if (value === null || WITHOUT_EFFECT.has(field)) continue
    const isAudio = field === 'modalities' && Array.isArray(value) && value.includes('audio')
    const why = isAudio ? REFUSED.audio : Object.hasOwn(REFUSED, field) ? REFUSED[field] : undefined
    if (why !== undefined) throw refused(field, `${why}. Leave it out${OR_OPENAI}`)
    const isTaken = OWN_MEMBERS.includes(field) || hasNoEffect(field, value, request)
    if (!isTaken) losses.drop(field, 'no-equivalent')
  }
}

/** Longer than an ARN, and the characters of ids and ARNs; dot-only names would change the path. */
const MODEL_ID = /^[A-Za-z0-9_][\w.:/+@-]{0,2047}$/

/**
 * The path and the `accept` header. A model id is one segment: a bare slash of an ARN would make it another
 * path, which Bedrock answers with a 200. Throws `GatewayError(unknown_model)` for other characters.
 */
export function target(model: string, stream: boolean): { path: string; accept: string } {
  const path = modelPath(model)
  return stream
    ? { path: `${path}/converse-stream`, accept: AWS_EVENT_STREAM }
    : { path: `${path}/converse`, accept: 'application/json' }
}

/** The path of a model, below which its operations are. Throws like `target`. */
export function modelPath(model: string): string {
  if (MODEL_ID.test(model)) return `/model/${encodeURIComponent(model)}`
  throw new GatewayError('unknown_model', 'Unknown model: the id contains characters that no model id has.', {
    param: 'model',
  })
}

/** Members of a body that are counted. */
const COUNTED = ['messages', 'system', 'toolConfig', 'additionalModelRequestFields']

/** `POST /model/{model}/count-tokens`. */
export const tokenCounter: TokenCounter = {
  path: (model) => `${modelPath(cloudModelOf(model)?.foundation ?? model)}/count-tokens`,
  body: (chat) => ({ input: { converse: membersOf(chat, COUNTED) } }),
  read: (reply) => tokenCount(reply.inputTokens) ?? null,
}

const CALL_NOW = 'Call one of the tools now. A reply in text is not accepted.'

/** Nothing pauses; a reply without the call that the client demands is requested again. */
export const continuation: Continuation = {
  mayPause: () => false,
  next: (body) => {
    const messages = [...arrayOf(body.messages)]
    const last = messages.at(-1)
    const demand = { text: CALL_NOW }
    if (isObject(last) && last.role === 'user') {
      messages[messages.length - 1] = { ...last, content: [...arrayOf(last.content), demand] }
    } else messages.push({ role: 'user', content: [demand] })
    return { ...body, messages }
  },
}
