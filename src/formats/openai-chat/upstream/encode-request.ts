/**
 * Encodes a canonical request as a chat-completions body. A field that the format cannot express is reported
 * as a loss, or refused if the reply would be wrong without it.
 *
 * Source: OpenAI API reference, "Create chat completion", read 2026-11-20.
 */
import type { JsonObject, JsonValue } from '../../../base/json.js'
import type { ModelFacts } from '../../chat/model-facts.js'
import type {
  ChatRequest,
  ResponseFormat,
  Tool,
  FilePart,
  ImagePart,
  MediaSource,
  Message,
  TextPart,
  ToolCall,
  UserPart,
} from '../../chat/request.js'
import type { EncodeContext, Losses } from '../../dialect.js'
import { SCHEMA_RULES, TOOL_NAMES, type ChatVendor } from '../../vendors.js'
import { fitReplySchema, fitSchema } from '../../wire/fit-schema.js'
import { bucketRefusal, dataUrlOf, isBucketUrl, mediaOf } from '../../wire/inline-media.js'
import { refused } from '../../wire/json/check-fields.js'
import { soundFormatOf } from '../../wire/media/sound.js'
import { encodeChoice, wireCallId } from '../../wire/openai/tools.js'
import { fieldsFor, writeFields, type ScalarField } from '../../wire/scalar-fields.js'
import { wireName } from '../../wire/tool-names.js'
import { FIELDS } from '../fields.js'
import { SERVICE_TIERS, MAX_CALL_ID } from '../constants.js'
import { effortFor, isDefaultValue, outputLimitField, accepts, acceptsStop } from '../model-rules.js'
import { signatureOut } from '../reasoning-state.js'

const OPENAI: ChatVendor = {}

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

/**
 * The body for an upstream of this format. Throws `GatewayError(untranslatable)`; reports to `losses`.
 * `vendor` has the differences of a vendor other than OpenAI.
 */
export function encodeRequest(
  request: ChatRequest,
  model: ModelFacts,
  losses: Losses,
  vendor: ChatVendor = OPENAI,
): JsonObject {
  const context = { model, losses, vendor }
  const messages = encodeMessages(request.messages, context)
  const last = messages.at(-1)
  if (request.prefix === true && last !== undefined) last['prefix'] = true
  const body: JsonObject = { model: request.model, messages }
  if (request.stream) {
    body['stream'] = true
    body['stream_options'] = { include_usage: true }
  }
  encodeTools(request, body, context)
  const effort = encodeEffort(request, body, context)
  encodeSampling(request, { body, effort }, context)
  encodeOutput(request, body, context)
  encodeRest(request, body, losses)
  return body
}

function encodeTools(request: ChatRequest, body: JsonObject, context: MessageContext): void {
  const { toolChoice, tools, parallelToolCalls } = request
  // Upstreams refuse a choice without tools.
  if (tools.length === 0) return
  body['tools'] = tools.map((tool) => encodeTool(tool, context))
  if (toolChoice !== undefined) {
    body['tool_choice'] = encodeChoice(toolChoice, tools, {
      named: (type, name) => ({ type, [type]: { name } }),
      allowed: (mode, named) => ({ type: 'allowed_tools', allowed_tools: { mode, tools: named } }),
    })
  }
  if (parallelToolCalls !== undefined) body['parallel_tool_calls'] = parallelToolCalls
}

function encodeTool(tool: Tool, { losses, vendor }: MessageContext): JsonObject {
  const inner: JsonObject = { name: tool.name }
  if (tool.description !== undefined) inner['description'] = tool.description
  if (tool.custom !== undefined) {
    if (tool.custom.format !== undefined) inner['format'] = tool.custom.format
    return { type: 'custom', custom: inner }
  }
  if (tool.parameters !== undefined) {
    inner['parameters'] = fitSchema(tool.parameters, vendor.schemas ?? SCHEMA_RULES.openai, { losses })
  }
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

const SAMPLING = fieldsFor(
  FIELDS,
  'topK',
  'temperature',
  'topP',
  'frequencyPenalty',
  'presencePenalty',
  'logprobs',
  'topLogprobs',
)
const CHOICES = fieldsFor(FIELDS, 'seed', 'candidates')

/** Sampling parameters, if the model accepts them. */
function encodeSampling(
  request: ChatRequest,
  { body, effort }: { body: JsonObject; effort: string | undefined },
  { model, losses }: EncodeContext,
): void {
  const encode = ({ wire }: ScalarField, value: JsonValue): JsonValue | undefined =>
    accepts(wire ?? '', model, effort) ? value : undefined
  writeFields(request, SAMPLING, { body, losses, encode })
  const bias = request.rest['logit_bias']
  if (bias !== undefined && accepts('logit_bias', model, effort)) body['logit_bias'] = bias
  else if (bias !== undefined && !isDefaultValue('logit_bias', bias)) {
    losses.drop('logit_bias', 'no-equivalent')
  }
  writeFields(request, CHOICES, { body, losses, encode })
}

const OPTIONS = fieldsFor(FIELDS, 'verbosity', 'userId', 'serviceTier')

function encodeOutput(
  request: ChatRequest,
  body: JsonObject,
  { model, losses, vendor }: MessageContext,
): void {
  const limit = request.maxOutputTokens
  if (limit !== undefined) body[outputLimitField(model)] = limit
  if (acceptsStop(request.stop, model) && request.stop !== undefined) {
    body['stop'] = stopOf(request.stop, model)
  }
  if (request.responseFormat !== undefined) {
    body['response_format'] = encodeFormat(request.responseFormat, { losses, vendor })
  }
  writeFields(request, OPTIONS, {
    body,
    losses,
    encode: ({ canonical }, value) =>
      canonical !== 'serviceTier' || SERVICE_TIERS.some((tier) => tier === value) ? value : undefined,
  })
}

/** OpenAI's limit; other upstreams of the format may accept more. */
const MAX_STOP = 4

function stopOf(stop: string[], { family }: ModelFacts): string[] {
  if (family !== 'openai' || stop.length <= MAX_STOP) return stop
  throw refused(
    'stop',
    `this upstream accepts at most ${MAX_STOP} stop sequences. Send fewer, or choose another model.`,
  )
}

function encodeFormat(
  format: ResponseFormat,
  { losses, vendor }: Pick<MessageContext, 'losses' | 'vendor'>,
): JsonObject {
  if (format.type === 'text') return { type: 'text' }
  if (format.type === 'json-object') return { type: 'json_object' }
  const inner: JsonObject = {
    name: wireName(format.name, TOOL_NAMES.openai),
    schema: fitReplySchema(format.schema, vendor.schemas ?? SCHEMA_RULES.openai, losses),
  }
  if (format.description !== undefined) inner['description'] = format.description
  if (format.strict !== undefined) inner['strict'] = format.strict
  return { type: 'json_schema', json_schema: inner }
}

function encodeRest({ rest }: ChatRequest, body: JsonObject, losses: Losses): void {
  for (const [key, value] of Object.entries(rest)) {
    if (OWN.has(key)) body[key] = value
    else if (key !== 'logit_bias') losses.drop(key, 'no-equivalent')
  }
}

/** What messages are encoded for. */
interface MessageContext extends EncodeContext {
  readonly vendor: ChatVendor
}

/**
 * Encodes canonical turns as `messages`. Images and files of tool results follow the results of the turn as a
 * user message. Content that the format cannot express is reported as a loss, or refused.
 */
function encodeMessages(messages: readonly Message[], context: MessageContext): JsonObject[] {
  const out: JsonObject[] = []
  let media: JsonObject[] = []
  for (const message of messages) {
    if (message.role !== 'tool' && media.length > 0) {
      out.push({ role: 'user', content: media })
      media = []
    }
    if (message.role === 'tool') media.push(...encodeResult(message, out, context))
    else {
      const encoded = encodeMessage(message, context)
      if (encoded !== null) out.push(encoded)
    }
  }
  if (media.length > 0) out.push({ role: 'user', content: media })
  return out
}

function encodeMessage(
  message: Exclude<Message, { role: 'tool' }>,
  context: MessageContext,
): JsonObject | null {
  switch (message.role) {
    case 'system':
    case 'developer': {
      const role = context.model.systemRole === 'developer' ? 'developer' : message.role
      return { role, content: content(message.parts, message.index, context) }
    }
    case 'user':
      return { role: 'user', content: content(message.parts, message.index, context) }
    case 'assistant':
      return encodeAssistant(message, context)
    default:
      return message satisfies never
  }
}

/** A single text part becomes a string, which every upstream of this format accepts. */
function content(parts: readonly UserPart[], index: number, context: MessageContext): string | JsonObject[] {
  const [first] = parts
  if (first === undefined) return ''
  if (parts.length === 1 && first.type === 'text') return first.text
  return parts.map((part) => encodePart(part, index, context))
}

function encodePart(part: UserPart, index: number, context: MessageContext): JsonObject {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text }
    case 'image':
      return { type: 'image_url', image_url: image(part, index) }
    case 'audio':
      return { type: 'input_audio', input_audio: { data: part.data, format: part.format } }
    case 'file':
      return file(part, index, context)
    default:
      return part satisfies never
  }
}

function image(part: ImagePart, index: number): JsonObject {
  const url = { url: address(part.source, `messages[${index}].content`, 'an image') }
  return part.detail === undefined ? url : { ...url, detail: part.detail }
}

function address(source: MediaSource, path: string, what: string): string {
  if (source.kind === 'base64') return dataUrlOf(source)
  if (source.kind === 'url') {
    if (isBucketUrl(source.url)) throw refused(path, bucketRefusal(what))
    return source.url
  }
  throw refused(path, `this upstream does not accept ${what} by file id. Send the data or a URL`)
}

function file(part: FilePart, index: number, context: MessageContext): JsonObject {
  const { losses, vendor } = context
  const { documents } = vendor
  const { source } = part
  const media = mediaPart(part, `messages[${index}].content`, context)
  if (media !== null) return media
  const name = part.filename === undefined ? {} : { filename: part.filename }
  if (source.kind === 'file-id' && source.origin === undefined) {
    return { type: 'file', file: { file_id: source.id, ...name } }
  }
  // The endpoint accepts PDF files only, so a text file becomes a text part.
  if (source.kind === 'base64' && source.mediaType.startsWith('text/')) {
    losses.drop('messages.file', 'approximated')
    return { type: 'text', text: Buffer.from(source.data, 'base64').toString('utf8') }
  }
  const path = `messages[${index}].content`
  if (source.kind === 'url' && documents === undefined) {
    throw refused(path, 'this upstream does not accept a file by URL. Send the data as a data: URL')
  }
  const data = address(source, path, 'a file')
  switch (documents) {
    case undefined:
    case 'file':
      return { type: 'file', file: { file_data: data, ...name } }
    case 'document_url':
      return {
        type: 'document_url',
        document_url: data,
        ...(part.filename !== undefined && { document_name: part.filename }),
      }
    case 'file_url':
      return {
        type: 'file_url',
        // Bytes have no prefix.
        file_url: { url: source.kind === 'base64' ? source.data : data },
        ...(part.filename !== undefined && { file_name: part.filename }),
      }
    default:
      return documents satisfies never
  }
}

/**
 * The part for a video, which vendors of the format have, but not OpenAI, or for sound; null for what can
 * only be a file, which the vendor judges.
 */
function mediaPart({ source }: FilePart, path: string, { model }: MessageContext): JsonObject | null {
  const type = mediaOf(source)
  // Models with `endpoints` in the catalogue are OpenAI's.
  if (type === 'video' && model.endpoints === undefined) {
    return { type: 'video_url', video_url: { url: address(source, path, 'a video') } }
  }
  if (type !== 'audio' || source.kind !== 'base64') return null
  const format = soundFormatOf(source.mediaType)
  return format === undefined ? null : { type: 'input_audio', input_audio: { data: source.data, format } }
}

/** Null for a turn without text, calls and audio, which some upstreams refuse as empty (Kimi). */
function encodeAssistant(
  message: Extract<Message, { role: 'assistant' }>,
  context: MessageContext,
): JsonObject | null {
  const { losses } = context
  const texts: TextPart[] = []
  let thoughts = ''
  const out: JsonObject = { role: 'assistant' }
  for (const part of message.parts) {
    if (part.type === 'text') texts.push(part)
    else if (part.type === 'thinking') {
      if (part.origin === 'openai-chat') thoughts += part.text
      else losses.drop('messages.thinking', 'no-equivalent')
    } else if (part.provider === 'openai-chat' && part.block['type'] === 'audio') {
      out['audio'] = { id: part.block['id'] }
    } else losses.drop('messages.opaque', 'no-equivalent')
  }
  const bare = texts.every(isEmpty)
  if (bare && message.toolCalls.length === 0 && out['audio'] === undefined) {
    if (thoughts !== '') losses.drop('messages.thinking', 'no-equivalent')
    return null
  }
  out['content'] = bare ? null : content(texts, message.index, context)
  if (thoughts !== '') out['reasoning_content'] = thoughts
  if (message.toolCalls.length > 0)
    out['tool_calls'] = message.toolCalls.map((call) => encodeCall(call, context))
  return out
}

function isEmpty(part: TextPart): boolean {
  return part.textBytes === undefined && part.text === ''
}

function encodeCall(call: ToolCall, { model, losses, vendor }: MessageContext): JsonObject {
  const id = wireCallId(call.id, MAX_CALL_ID, vendor.callIds)
  const { name } = call
  const out: JsonObject =
    call.custom === true
      ? { id, type: 'custom', custom: { name, input: call.arguments } }
      : { id, type: 'function', function: { name, arguments: argumentsOf(call) } }
  if (call.signature === undefined) return out
  // Models with `endpoints` in the catalogue are OpenAI's, which refuses unknown members.
  if (model.endpoints === undefined) out['extra_content'] = signatureOut(call.signature)
  else losses.drop('messages.thinking', 'no-equivalent')
  return out
}

/** A call without arguments has an empty object. */
function argumentsOf(call: ToolCall): string {
  return call.arguments.trim() === '' ? '{}' : call.arguments
}

/** Encodes the text of a result; returns its other parts, which a tool message cannot hold. */
function encodeResult(
  message: Extract<Message, { role: 'tool' }>,
  out: JsonObject[],
  context: MessageContext,
): JsonObject[] {
  const { losses, vendor } = context
  const texts = message.parts.filter((part) => part.type === 'text')
  const media = message.parts.filter((part) => part.type !== 'text')
  if (message.isError === true) losses.drop('messages.is_error', 'no-equivalent')
  if (media.length > 0) losses.drop('messages.tool_content', 'approximated')
  out.push({
    role: 'tool',
    tool_call_id: wireCallId(message.callId, MAX_CALL_ID, vendor.callIds),
    content: content(texts, message.index, context),
  })
  return media.map((part) => encodePart(part, message.index, context))
}
