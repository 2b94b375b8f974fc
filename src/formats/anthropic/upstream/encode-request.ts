/**
 * Encodes a canonical request as the body of `POST /messages`. Deterministic: equal requests give equal
 * bytes, and a longer conversation keeps the prefix of a shorter one.
 */
import type { WireError } from '../../../errors.js'
import { requestsFreeformJson } from '../../chat/json-schema.js'
import { arrayOf, isObject, membersOf, type JsonObject, type JsonValue } from '../../../base/json.js'
import type { ModelFacts } from '../../chat/model-facts.js'
import { demandsCall } from '../../chat/must-call.js'
import type { ChatRequest } from '../../chat/request.js'
import { tokenCount } from '../../chat/usage.js'
import type { EncodeContext, Losses, TokenCounter } from '../../dialect.js'
import { TextSizer, type SizedText } from '../../wire/frames/sized-text.js'
import { withoutBoundThinking } from '../../wire/claude-thinking.js'
import { refused } from '../../wire/json/check-fields.js'
import { stringifyExact } from '../../wire/json/exact-numbers.js'
import { hasNoEffect, WITHOUT_EFFECT } from '../../wire/request-fields.js'
import { sha256Hex } from '../../wire/sha256.js'
import { loseFields } from '../../wire/scalar-fields.js'
import { FIELDS, OR_OPENAI } from '../fields.js'
import { conversation } from './encode-messages.js'
import { SCHEMA_RULES } from '../../vendors.js'
import { enforcedReplySchema, REPLY_SCHEMA } from '../../wire/fit-schema.js'
import { hasObjectRoot } from '../../wire/strict-schema.js'
import { withWireProperties } from '../../wire/property-names.js'
import { samplingFields, thinkingFields } from './encode-thinking.js'
import { toolFields } from './encode-tools.js'
import { isBlank, type Conversation } from '../../wire/block-turns.js'

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
export function encodeRequest(given: ChatRequest, model: ModelFacts, losses: Losses): JsonObject {
  const context = { model, losses }
  const request = withWireProperties(given)
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

function replyFormat(request: ChatRequest, forced: boolean, { model, losses }: EncodeContext): ReplyFormat {
  const format = request.responseFormat
  if (requestsFreeformJson(request)) losses.drop('response_format', 'approximated')
  if (format?.type !== 'json-schema' || requestsFreeformJson(request)) return { native: null, tool: null }
  const strict = enforcedReplySchema(format.schema, SCHEMA_RULES.anthropic)
  if (model.structuredOutput !== false && 'schema' in strict) {
    if (strict.lost) losses.drop(REPLY_SCHEMA, 'approximated')
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
  throw refused(
    'response_format.json_schema.schema',
    `${problem}${why}. Change the schema, or use another model.`,
  )
}

function stopSequences(requested: readonly string[]): string[] {
  const stop = requested.filter((one) => one !== '')
  if (!stop.some(isBlank)) return stop
  throw refused(
    'stop',
    `Anthropic models do not accept a stop sequence of white space only. Leave it out${OR_OPENAI}`,
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

/**
 * Throws `GatewayError(untranslatable)` for fields that must not be dropped; reports the others that a
 * Messages request cannot carry to `losses`, and ignores those that do not affect the reply.
 */
function reportUnsupportedFields(request: ChatRequest, losses: Losses): void {
  loseFields(request, FIELDS, losses)
  const { rest } = request
  for (const field in rest) {
    const value = rest[field] ?? null
    if (value === null || WITHOUT_EFFECT.has(field)) continue
    refuseField(field, value)
    if (!hasNoEffect(field, value, request)) losses.drop(field, 'no-equivalent')
  }
}

function refuseField(field: string, value: JsonValue): void {
  const audio = field === 'modalities' && Array.isArray(value) && value.includes('audio')
  if (field === 'audio' || audio) {
    throw refused(field, `Anthropic models do not generate audio. Request text${OR_OPENAI}`)
  }
  if (field === 'moderation') {
    throw refused(
      field,
      `Anthropic models do not support moderation, and dropping it would be unsafe. Leave it out${OR_OPENAI}`,
    )
  }
  if (field === 'web_search_options') {
    throw refused(field, `this route does not search the web. Leave it out${OR_OPENAI}`)
  }
}

/** Members of a Messages body that the endpoint accepts. */
const COUNTED = [
  'model',
  'messages',
  'cache_control',
  'output_config',
  'speed',
  'system',
  'thinking',
  'tool_choice',
  'tools',
]

/**
 * `POST /messages/count_tokens`.
 *
 * Source: Claude API reference, "Count tokens in a Message", read 2026-11-22.
 */
export const tokenCounter: TokenCounter = {
  path: () => '/messages/count_tokens',
  body: (chat) => membersOf(chat, COUNTED),
  read: (reply) => tokenCount(reply.input_tokens) ?? null,
}

/** The body with the option to drop thinking of another conversation; null if that is not the error. */
export function dropReasoning(body: JsonObject, error: WireError): JsonObject | null {
  const thinking = withoutBoundThinking(body.thinking, error)
  return thinking === null ? null : { ...body, thinking }
}

/**
 * The JSON text of a body: the same bytes as `stringifyExact` in a third of the time. Turns of text, the
 * usual case, are concatenated here; all other values may contain exact numbers and use `stringifyExact`.
 */
export function write(body: JsonObject): SizedText {
  const sizer = new TextSizer()
  let text = ''
  for (const name in body) {
    const value = body[name]
    if (value === undefined) continue
    text += `${text === '' ? '{' : ','}${memberText(name, value, sizer)}`
  }
  return sizer.whole(text === '' ? '{}' : `${text}}`)
}

function memberText(name: string, value: JsonValue, sizer: TextSizer): string {
  switch (name) {
    case 'model':
      if (typeof value === 'string') return `"model":${sizer.name(value)}`
      break
    case 'system':
      if (Array.isArray(value)) return `"system":[${itemsText(value, blockText, sizer)}]`
      break
    case 'messages':
      if (Array.isArray(value)) return `"messages":[${itemsText(value, messageText, sizer)}]`
      break
    case 'max_tokens':
      if (typeof value === 'number' && Number.isInteger(value)) return `"max_tokens":${value}`
      break
    default:
  }
  return `${sizer.quoted(name)}:${sizer.part(stringifyExact(value))}`
}

/** The JSON text of the items of a list, without brackets. */
function itemsText(
  items: readonly JsonValue[],
  itemText: (item: JsonValue, sizer: TextSizer) => string,
  sizer: TextSizer,
): string {
  let text = ''
  for (let at = 0; at < items.length; at += 1) {
    const item = items[at] ?? null
    text += at === 0 ? itemText(item, sizer) : `,${itemText(item, sizer)}`
  }
  return text
}

function messageText(message: JsonValue, sizer: TextSizer): string {
  if (isObject(message) && hasOnly(message, 'role', 'content')) {
    const { role, content } = message
    if (typeof role === 'string' && Array.isArray(content)) {
      return `{"role":${sizer.name(role)},"content":[${itemsText(content, blockText, sizer)}]}`
    }
  }
  return sizer.part(stringifyExact(message))
}

function blockText(block: JsonValue, sizer: TextSizer): string {
  if (isObject(block) && hasOnly(block, 'type', 'text')) {
    const { type, text } = block
    if (type === 'text' && typeof text === 'string') {
      return `{"type":"text","text":${sizer.quoted(text)}}`
    }
  }
  return sizer.part(stringifyExact(block))
}

/** True if the object has exactly these two members, in this order. */
function hasOnly(object: JsonObject, first: string, second: string): boolean {
  let members = 0
  for (const name in object) {
    if (members > 1 || name !== (members === 0 ? first : second)) return false
    members += 1
  }
  return members === 2
}
