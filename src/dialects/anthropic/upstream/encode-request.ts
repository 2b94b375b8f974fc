/**
 * Encodes a canonical request as the body of `POST /messages`. Deterministic: equal requests give equal
 * bytes, and a longer conversation keeps the prefix of a shorter one.
 */
import { arrayOf, isObject, type JsonObject } from '../../../chat/json.js'
import { requestsFreeformJson } from '../../../chat/reply/json-reply.js'
import type { ModelFacts } from '../../../chat/model.js'
import { demandsCall } from '../../../chat/reply/must-call.js'
import type { ChatRequest } from '../../../chat/request.js'
import { SchemaBudget } from '../../../chat/json-schema/schema-budget.js'
import { GatewayError } from '../../../errors.js'
import { sha256Hex } from '../../../wire/sha256.js'
import type { EncodeContext, Losses } from '../../dialect.js'
import { conversation, type Conversation } from './request/encode-messages.js'
import { reportUnsupportedFields } from './request/report-unsupported-fields.js'
import { strictSchema } from './request/encode-schema.js'
import { hasObjectRoot } from './request/merge-schemas.js'
import { samplingFields, thinkingFields } from './request/encode-thinking.js'
import { toolFields } from './request/encode-tools.js'
import { isBlank } from '../shared/constants.js'

/**
 * `max_tokens` if neither the client nor the catalogue states it: all current models accept it (the API
 * rejects a number above the model's maximum), and few replies are longer.
 */
const MAX_TOKENS_UNKNOWN = 64_000

/**
 * Longer replies are requested as a stream. A whole reply of this size can take more than ten minutes without
 * a byte, which is the limit of the vendor's own clients (they estimate an hour for 128,000 tokens).
 */
const WHOLE_TOKENS_MAX = 21_333

/** The API's maximum number of cache breakpoints. */
const CACHE_MARKS_MAX = 4

/** The maximum length of a `user_id` that is sent unchanged, in characters. */
const USER_ID_MAX = 256

/** For models that cannot be forced to call a tool. */
const CALL_A_TOOL = 'Reply by calling one of the tools.'

const JSON_ONLY = 'Respond with one JSON object only.'

/**
 * Encodes the body. Throws `GatewayError(untranslatable)` for fields that must not be dropped; reports the
 * others to `losses`.
 */
export function encodeRequest(request: ChatRequest, model: ModelFacts, losses: Losses): JsonObject {
  const context = { model, losses }
  reportUnsupportedFields(request, losses)
  const max_tokens = maxTokens(request, model, losses)
  const { system, messages } = conversation(request, model, losses)
  const { thinking, effort } = thinkingFields(request, { maxTokens: max_tokens, messages }, context)
  const forced = model.forcedToolChoice === true && thinking?.type !== 'enabled'
  const omitsCall = !forced && demandsCall(request.toolChoice)
  const format = replyFormat(request, forced, context)
  if (requestsFreeformJson(request)) system.push({ type: 'text', text: JSON_ONLY })
  if (omitsCall) system.push({ type: 'text', text: CALL_A_TOOL })
  const tools = toolFields(request, { forced, replySchema: format.tool }, context)
  const body: JsonObject = { model: request.model, max_tokens }
  if (system.length > 0) body.system = system
  body.messages = messages.map(({ role, content }) => ({ role, content }))
  if (tools.tools !== undefined) body.tools = tools.tools
  if (tools.tool_choice !== undefined) body.tool_choice = tools.tool_choice
  if (request.stop !== undefined) {
    const stop = stopSequences(request.stop)
    if (stop.length > 0) body.stop_sequences = stop
  }
  if (thinking !== undefined) body.thinking = thinking
  if (effort !== undefined || format.native !== null) {
    const output: JsonObject = {}
    if (effort !== undefined) output.effort = effort
    if (format.native !== null) output.format = { type: 'json_schema', schema: format.native }
    body.output_config = output
  }
  const { temperature, top_p, top_k } = samplingFields(request, thinking, context)
  if (temperature !== undefined) body.temperature = temperature
  if (top_p !== undefined) body.top_p = top_p
  if (top_k !== undefined) body.top_k = top_k
  if (request.userId !== undefined && !isBlank(request.userId)) {
    body.metadata = { user_id: userId(request.userId) }
  }
  const tier = serviceTier(request, losses)
  if (tier !== undefined) body.service_tier = tier
  const cacheMarks = limitCacheMarks({ tools: tools.tools ?? [], system, messages }, losses)
  if (cacheMarks === 0 && cachesImplicitly(request)) body.cache_control = { type: 'ephemeral' }
  if (request.stream) body.stream = true
  return body
}

/** True if the reply may be too long to request it whole. */
export function streamsWhole(request: ChatRequest, model: ModelFacts): boolean {
  const limit = model.maxOutputTokens ?? MAX_TOKENS_UNKNOWN
  return Math.min(request.maxOutputTokens ?? limit, limit) > WHOLE_TOKENS_MAX
}

/** `max_tokens`. Both formats count thinking tokens in it, so nothing is added for thinking. */
function maxTokens(request: ChatRequest, model: ModelFacts, losses: Losses): number {
  const limit = model.maxOutputTokens
  const requested = request.maxOutputTokens
  if (requested === undefined) return limit ?? MAX_TOKENS_UNKNOWN
  if (limit === undefined || requested <= limit) return requested
  losses.drop('max_completion_tokens', 'approximated')
  return limit
}

/**
 * The schema of a JSON reply: for `output_config.format`, or for a tool that the model must call. Both null
 * for text.
 */
interface ReplyFormat {
  native: JsonObject | null
  tool: JsonObject | null
}

function replyFormat(
  request: ChatRequest,
  forced: boolean,
  { model, losses }: EncodeContext,
): ReplyFormat {
  const format = request.responseFormat
  if (requestsFreeformJson(request)) losses.drop('response_format', 'approximated')
  if (format?.type !== 'json-schema' || requestsFreeformJson(request))
    return { native: null, tool: null }
  const strict = strictSchema(format.schema, new SchemaBudget('response_format.json_schema.schema'))
  if (model.structuredOutput !== false && 'schema' in strict) {
    return { native: strict.schema, tool: null }
  }
  if (forced && demandsCall(request.toolChoice)) {
    // The reply is a call of the client's own tools, so the format does not apply.
    losses.drop('response_format', 'approximated')
    return { native: null, tool: null }
  }
  const isObjectOnly = hasObjectRoot(format.schema)
  if (forced && isObjectOnly) return { native: null, tool: format.schema }
  const problem = 'problem' in strict ? strict.problem : `${model.id} has no structured output`
  // A tool would need an object schema too.
  const why = isObjectOnly ? `, and ${model.id} cannot be forced to call a tool instead` : ''
  throw new GatewayError(
    'untranslatable',
    `response_format.json_schema.schema: ${problem}${why}. Change the schema, or use another model.`,
    { param: 'response_format.json_schema.schema' },
  )
}

function stopSequences(requested: readonly string[]): string[] {
  const stop = requested.filter((one) => one !== '')
  if (!stop.some(isBlank)) return stop
  throw new GatewayError(
    'untranslatable',
    'stop: Anthropic models do not accept a stop sequence of white space only. Leave it out, or use a ' +
      'route to an OpenAI upstream.',
    { param: 'stop' },
  )
}

/** The API forbids personal data in the id, so email addresses and phone numbers are hashed. */
function userId(id: string): string {
  const personal = id.includes('@') || /^\+?[\d\s().-]{7,20}$/.test(id)
  return personal || id.length > USER_ID_MAX ? sha256Hex(id) : id
}

function serviceTier(request: ChatRequest, losses: Losses): string | undefined {
  switch (request.serviceTier) {
    case undefined:
      return undefined
    case 'auto':
      return 'auto'
    case 'default':
      return 'standard_only'
    default:
      losses.drop('service_tier', 'no-equivalent')
      return undefined
  }
}

/**
 * Keeps the last cache marks within the API's limit, in the API's cache order: tools, system, messages.
 * Returns the number of marks in the request.
 */
function limitCacheMarks(
  { tools, system, messages }: Conversation & { tools: readonly JsonObject[] },
  losses: Losses,
): number {
  const marked: JsonObject[] = []
  collectMarked(tools, marked)
  collectMarked(system, marked)
  for (const { content } of messages) collectMarked(content, marked)
  if (marked.length > CACHE_MARKS_MAX) {
    losses.drop('cache_control', 'approximated')
    for (const block of marked.slice(0, -CACHE_MARKS_MAX)) delete block.cache_control
  }
  return marked.length
}

function cachesImplicitly({ rest }: ChatRequest): boolean {
  return isObject(rest.prompt_cache_options) && rest.prompt_cache_options.mode === 'implicit'
}

/** Collects the marked blocks; blocks inside a tool result precede the result. */
function collectMarked(blocks: readonly JsonObject[], marked: JsonObject[]): void {
  for (const block of blocks) {
    if (block.type === 'tool_result') {
      collectMarked(arrayOf(block.content).filter(isObject), marked)
    }
    if (block.cache_control !== undefined) marked.push(block)
  }
}
