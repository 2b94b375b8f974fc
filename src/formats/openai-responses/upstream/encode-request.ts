/**
 * Encodes a canonical request as the body of `POST /responses`. A field that the format cannot express is
 * reported as a loss, or refused if the reply would be wrong without it.
 *
 * Source: OpenAI API reference, "Create a model response", read 2026-11-20.
 */
import {
  arrayOf,
  isObject,
  objectOf,
  membersOf,
  type JsonObject,
  type JsonValue,
  stringOf,
} from '../../../base/json.js'
import { acceptsSampling, type ModelFacts } from '../../chat/model-facts.js'
import {
  nearestEffort,
  type ChatRequest,
  type ResponseFormat,
  type Tool,
  type ToolChoice,
  type Message,
  type OpaquePart,
  type TextPart,
  type ToolCall,
  type UserPart,
  type FilePart,
  type ImagePart,
} from '../../chat/request.js'
import { tokenCount } from '../../chat/usage.js'
import type { EncodeContext, Losses, TokenCounter } from '../../dialect.js'
import { SCHEMA_RULES, TOOL_NAMES } from '../../vendors.js'
import { fitReplySchema, fitSchema } from '../../wire/fit-schema.js'
import { bucketRefusal, dataUrlOf, isBucketUrl, transcriptOf } from '../../wire/inline-media.js'
import { refused } from '../../wire/json/check-fields.js'
import { encodeChoice, wireCallId } from '../../wire/openai/tools.js'
import { fieldsFor, loseFields, writeFields, type ScalarField } from '../../wire/scalar-fields.js'
import { wireName } from '../../wire/tool-names.js'
import { FIELDS, NO_AUDIO } from '../fields.js'
import { MIN_OUTPUT_TOKENS, SERVICE_TIERS, MAX_CALL_ID } from '../constants.js'
import { ORIGIN, reasoningItem } from '../reasoning-state.js'

/** Fields in `request.rest` that have the same name in this format. */
const SAME = new Set([
  'metadata',
  'moderation',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'truncation',
])

/** Fields that are encoded elsewhere in this file, or do not change the reply. */
const ENCODED_OR_SILENT = new Set(['cache_control', 'prediction', 'reasoning', 'store', 'web_search_options'])

/** The members of `reasoning` beside the effort. */
const REASONING = new Set(['context', 'mode', 'summary'])

/**
 * The body. Throws `GatewayError(untranslatable)` for fields that must not be dropped; reports others to
 * `losses`.
 */
export function encodeRequest(request: ChatRequest, model: ModelFacts, losses: Losses): JsonObject {
  refuseUnsupported(request, losses)
  const context = { model, losses }
  const body: JsonObject = {
    model: request.model,
    input: encodeInput(request.messages, model, losses),
    // OpenAI stores responses by default, but not chat completions.
    store: request.rest['store'] === true,
  }
  if (request.prefix === true) losses.drop('messages.prefix', 'no-equivalent')
  if (request.stream) body['stream'] = true
  encodeTools(request, body, losses)
  encodeReasoning(request, body, context)
  encodeSampling(request, body, context)
  encodeOutput(request, body, losses)
  encodeRest(request, body, context)
  return body
}

const REFUSED = fieldsFor(FIELDS, 'stop', 'candidates')

/** Refuses fields that the format does not have and that change the reply. */
function refuseUnsupported(request: ChatRequest, losses: Losses): void {
  loseFields(request, REFUSED, losses)
  const { audio, modalities } = request.rest
  if (audio !== undefined) throw refused('audio', NO_AUDIO)
  if (Array.isArray(modalities) && modalities.includes('audio')) {
    throw refused('modalities', NO_AUDIO)
  }
}

function encodeTools(request: ChatRequest, body: JsonObject, losses: Losses): void {
  const { toolChoice, tools, parallelToolCalls, rest } = request
  const written = tools.map((tool) => encodeTool(tool, losses))
  const search = rest['web_search_options']
  if (isObject(search)) written.push(encodeWebSearch(search))
  // Upstreams refuse a choice without tools.
  if (written.length === 0) return
  body['tools'] = written
  if (toolChoice !== undefined) body['tool_choice'] = encodeToolChoice(toolChoice, tools)
  if (parallelToolCalls !== undefined) body['parallel_tool_calls'] = parallelToolCalls
}

/** The effort, and a request for the encrypted reasoning, which the next turn sends back. */
function encodeReasoning(request: ChatRequest, body: JsonObject, { model, losses }: EncodeContext): void {
  const { reasoningEffort: requested, rest } = request
  // Models without reasoning refuse `include`: "Encrypted content is not supported".
  if (model.reasoning === false) {
    if (requested !== undefined && requested !== 'none') {
      losses.drop('reasoning_effort', 'no-equivalent')
    }
    if (rest['reasoning'] !== undefined) losses.drop('reasoning', 'no-equivalent')
    return
  }
  body['include'] = ['reasoning.encrypted_content']
  const reasoning: JsonObject = {}
  for (const [key, value] of Object.entries(objectOf(rest['reasoning']))) {
    if (REASONING.has(key)) reasoning[key] = value
    else if (key !== 'effort') losses.drop(`reasoning.${key}`, 'no-equivalent')
  }
  if (requested !== undefined) {
    const effort = nearestEffort(requested, model.reasoningEfforts)
    if (effort !== requested) losses.drop('reasoning_effort', 'approximated')
    reasoning['effort'] = effort
  }
  if (Object.keys(reasoning).length > 0) body['reasoning'] = reasoning
}

const SAMPLING = fieldsFor(FIELDS, 'temperature', 'topP', 'topK')
const LOGPROBS = fieldsFor(FIELDS, 'logprobs', 'topLogprobs')
const MISSING = fieldsFor(FIELDS, 'frequencyPenalty', 'presencePenalty', 'seed')

/** Sampling parameters, if the model accepts them. The format has no penalties and no seed. */
function encodeSampling(request: ChatRequest, body: JsonObject, { model, losses }: EncodeContext): void {
  const accepted = acceptsSampling(model, objectOf(body['reasoning'])['effort'])
  const encode = (_field: ScalarField, value: JsonValue): JsonValue | undefined =>
    accepted ? value : undefined
  writeFields(request, SAMPLING, { body, losses, encode })
  if (accepted && request.logprobs === true) encodeLogprobs(request, body)
  else writeFields(request, LOGPROBS, { body, losses, encode: () => undefined })
  loseFields(request, MISSING, losses)
}

/** Token probabilities, which models do not return while they reason. */
function encodeLogprobs({ topLogprobs = 0 }: ChatRequest, body: JsonObject): void {
  body['include'] = [...arrayOf(body['include']), 'message.output_text.logprobs']
  if (topLogprobs > 0) body['top_logprobs'] = topLogprobs
}

const OPTIONS = fieldsFor(FIELDS, 'userId', 'serviceTier')

function encodeOutput(request: ChatRequest, body: JsonObject, losses: Losses): void {
  const { maxOutputTokens: limit, responseFormat, verbosity } = request
  if (limit !== undefined) {
    body['max_output_tokens'] = Math.max(limit, MIN_OUTPUT_TOKENS)
    if (limit < MIN_OUTPUT_TOKENS) losses.drop('max_completion_tokens', 'approximated')
  }
  const text: JsonObject = {}
  if (responseFormat !== undefined) text['format'] = encodeFormat(responseFormat, losses)
  if (verbosity !== undefined) text['verbosity'] = verbosity
  if (Object.keys(text).length > 0) body['text'] = text
  writeFields(request, OPTIONS, {
    body,
    losses,
    encode: ({ canonical }, value) =>
      canonical !== 'serviceTier' || SERVICE_TIERS.some((tier) => tier === value) ? value : undefined,
  })
}

function encodeRest(request: ChatRequest, body: JsonObject, { model, losses }: EncodeContext): void {
  for (const [key, value] of Object.entries(request.rest)) {
    if (isHarmless(key, value, model)) continue
    if (SAME.has(key)) body[key] = value
    else losses.drop(key, 'no-equivalent')
  }
}

/** Whether the field can be omitted without changing the reply. */
function isHarmless(key: string, value: JsonValue, model: ModelFacts): boolean {
  if (key === 'prompt_cache_options' && !acceptsBreakpoints(model)) return true
  if (key === 'logit_bias') return Object.keys(objectOf(value)).length === 0
  if (key === 'prompt_cache_retention') return model.promptCacheRetention === false
  // Modalities with audio are refused before.
  return key === 'modalities' || ENCODED_OR_SILENT.has(key)
}

/** A reasoning model may send nothing for minutes, during which proxies close the silent connection. */
export function streamsWhole(_request: ChatRequest, model: ModelFacts): boolean {
  return model.reasoning !== false
}

const NO_PARAMETERS: JsonObject = { type: 'object', properties: {} }

/**
 * One tool. `strict` is always sent, because the API's default is true and that of other formats is false.
 *
 * Encodes tools, the tool choice and the response format. Their members are flat, while chat completions
 * nests them under the type.
 *
 * Source: OpenAI API reference, "Create a model response", `tools` and `text`, read 2026-11-20.
 */
function encodeTool(tool: Tool, losses: Losses): JsonObject {
  const { name } = tool
  const described = tool.description === undefined ? {} : { description: tool.description }
  if (tool.custom !== undefined) {
    const { format } = tool.custom
    const formatted = format === undefined ? {} : { format: customFormat(format) }
    return { type: 'custom', name, ...described, ...formatted }
  }
  return {
    type: 'function',
    name,
    ...described,
    parameters: fitSchema(tool.parameters ?? NO_PARAMETERS, SCHEMA_RULES.openai, { losses }),
    strict: tool.strict ?? false,
  }
}

/** `{type:"grammar",grammar:{syntax,definition}}` without the nesting. */
function customFormat(format: JsonObject): JsonObject {
  const { grammar, ...rest } = format
  return { ...rest, ...objectOf(grammar) }
}

/** `tool_choice`. */
function encodeToolChoice(choice: ToolChoice, tools: readonly Tool[]): string | JsonObject {
  return encodeChoice(choice, tools, {
    named: (type, name) => ({ type, name }),
    allowed: (mode, named) => ({ type: 'allowed_tools', mode, tools: named }),
  })
}

/** `text.format`. */
function encodeFormat(format: ResponseFormat, losses: Losses): JsonObject {
  if (format.type === 'text') return { type: 'text' }
  if (format.type === 'json-object') return { type: 'json_object' }
  const described = format.description === undefined ? {} : { description: format.description }
  return {
    type: 'json_schema',
    name: wireName(format.name, TOOL_NAMES.openai),
    ...described,
    schema: fitReplySchema(format.schema, SCHEMA_RULES.openai, losses),
    strict: format.strict ?? false,
  }
}

/** The web search tool, from the `web_search_options` of chat completions. */
function encodeWebSearch(options: JsonObject): JsonObject {
  const { search_context_size: size, user_location: location } = options
  const place = objectOf(location)
  const near = { type: 'approximate', ...objectOf(place['approximate']) }
  return {
    type: 'web_search',
    ...(size === undefined || size === null ? {} : { search_context_size: size }),
    ...(Object.keys(place).length === 0 ? {} : { user_location: near }),
  }
}

/** The members of a request that the endpoint accepts. */
const COUNTED = [
  'model',
  'input',
  'instructions',
  'parallel_tool_calls',
  'reasoning',
  'text',
  'tool_choice',
  'tools',
  'truncation',
]

/**
 * `POST /responses/input_tokens`.
 *
 * Source: OpenAI API reference, "Get input token counts", read 2026-11-22.
 */
export const tokenCounter: TokenCounter = {
  path: () => '/responses/input_tokens',
  body: (chat) => membersOf(chat, COUNTED),
  read: (reply) => tokenCount(reply['input_tokens']) ?? null,
}

// Encodes canonical turns as input items. The items of a message depend only on it and on earlier messages,
// so that a longer conversation has the same prefix, which prompt caches require.
//
// Source: OpenAI API reference, "Create a model response", input items, read 2026-11-20.

/** All turns, in order. */
function encodeInput(messages: readonly Message[], model: ModelFacts, losses: Losses): JsonObject[] {
  const out: JsonObject[] = []
  const custom = new Set<string>()
  const marks = acceptsBreakpoints(model)
  for (const message of messages) {
    switch (message.role) {
      case 'system':
      case 'developer': {
        const role = model.systemRole === 'developer' ? 'developer' : message.role
        out.push(encodeMessage(role, message, marks))
        break
      }
      case 'user':
        out.push(encodeMessage('user', message, marks))
        break
      case 'assistant':
        out.push(...encodeAssistant(message, losses))
        for (const call of message.toolCalls) if (call.custom === true) custom.add(call.id)
        break
      case 'tool':
        if (message.isError === true) losses.drop('messages.is_error', 'no-equivalent')
        out.push(encodeResult(message, custom.has(message.callId), marks))
        break
      default:
        message satisfies never
    }
  }
  return out
}

/**
 * Whether the model accepts breakpoints of the prompt cache. A model that is not in the catalogue counts as
 * new.
 */
function acceptsBreakpoints(model: ModelFacts): boolean {
  return model.endpoints === undefined || model.promptCacheBreakpoints === true
}

function encodeMessage(
  role: string,
  { parts, index }: { readonly parts: readonly UserPart[]; readonly index: number },
  marks: boolean,
): JsonObject {
  return { role, content: parts.map((part) => encodePart(part, index, marks)) }
}

/**
 * The items of an assistant turn: reasoning, text and hosted tool items in their order, then the calls.
 * Reasoning without a following item is left out, because the API refuses it.
 */
function encodeAssistant(message: Extract<Message, { role: 'assistant' }>, losses: Losses): JsonObject[] {
  const out: JsonObject[] = []
  let texts: TextPart[] = []
  const flush = (): void => {
    if (texts.length > 0) {
      const content = texts.map(({ text }) => ({ type: 'output_text', text }))
      out.push({ role: 'assistant', content })
    }
    texts = []
  }
  for (const part of message.parts) {
    if (part.type === 'opaque' && part.block['type'] === 'audio') {
      const transcript = transcriptOf(part, losses)
      if (transcript !== null) texts.push(transcript)
    } else if (part.type === 'opaque') {
      flush()
      if (isOwnItem(part)) out.push(part.block)
      else losses.drop('messages.opaque', 'no-equivalent')
    } else if (part.type === 'text') {
      if (part.text !== '') texts.push(part)
    } else {
      const item = reasoningItem(part)
      if (item === null) losses.drop('messages.thinking', 'no-equivalent')
      else {
        flush()
        out.push(item)
      }
    }
  }
  flush()
  out.push(...message.toolCalls.map(encodeCall))
  while (out.at(-1)?.['type'] === 'reasoning') {
    out.pop()
    losses.drop('messages.thinking', 'no-equivalent')
  }
  return out
}

/**
 * Whether the block is an item of a hosted tool. It is sent back unchanged, because the reasoning before it
 * belongs to it.
 */
function isOwnItem({ provider, block }: OpaquePart): boolean {
  return provider === ORIGIN && /_(?:call|list_tools|search_output)$/.test(stringOf(block['type']) ?? '')
}

function encodeCall(call: ToolCall): JsonObject {
  const id = wireCallId(call.id, MAX_CALL_ID)
  const { name } = call
  if (call.custom === true) {
    return { type: 'custom_tool_call', call_id: id, name, input: call.arguments }
  }
  const json = call.arguments.trim() === '' ? '{}' : call.arguments
  return { type: 'function_call', call_id: id, name, arguments: json }
}

/** A result of one text is a string; a result with images or files is a list of parts. */
function encodeResult(
  message: Extract<Message, { role: 'tool' }>,
  custom: boolean,
  marks: boolean,
): JsonObject {
  const { parts } = message
  const [first] = parts
  const isMarked = marks && first?.type === 'text' && first.cache?.breakpoint !== undefined
  const isBare = parts.length === 1 && first?.type === 'text' && !isMarked
  const list = (): JsonObject[] => parts.map((part) => encodePart(part, message.index, marks))
  return {
    type: custom ? 'custom_tool_call_output' : 'function_call_output',
    call_id: wireCallId(message.callId, MAX_CALL_ID),
    output: first === undefined ? '' : isBare ? first.text : list(),
  }
}

/**
 * A part of a user message or a tool result. `index` is that of its message, for errors. `marks`: the model
 * accepts the breakpoints of OpenAI's prompt cache. Throws `GatewayError(untranslatable)` for media that the
 * format has no part for.
 */
function encodePart(part: UserPart, index: number, marks: boolean): JsonObject {
  const encoded = encodeContent(part, index)
  const breakpoint = part.type === 'audio' ? undefined : part.cache?.breakpoint
  if (marks && breakpoint !== undefined) {
    encoded['prompt_cache_breakpoint'] = { mode: 'explicit', ...breakpoint }
  }
  return encoded
}

function encodeContent(part: UserPart, index: number): JsonObject {
  switch (part.type) {
    case 'text':
      return { type: 'input_text', text: part.text }
    case 'image':
      refuseForeign(part, index)
      return image(part)
    case 'file':
      refuseForeign(part, index)
      return file(part)
    case 'audio':
      throw refused(
        `messages[${index}].content`,
        "OpenAI's Responses API accepts no audio. Choose an audio model, which is served through chat completions.",
      )
    default:
      return part satisfies never
  }
}

function refuseForeign({ type, source }: ImagePart | FilePart, index: number): void {
  if (source.kind === 'url' && isBucketUrl(source.url)) {
    throw refused(`messages[${index}].content`, bucketRefusal(type === 'image' ? 'an image' : 'a file'))
  }
  if (source.kind !== 'file-id' || source.origin === undefined) return
  throw refused(
    `messages[${index}].content`,
    'this upstream does not accept a file id of another provider. Send the data.',
  )
}

function image({ source, detail }: ImagePart): JsonObject {
  const part: JsonObject = { type: 'input_image' }
  if (source.kind === 'file-id') part['file_id'] = source.id
  else if (source.kind === 'url') part['image_url'] = source.url
  else part['image_url'] = dataUrlOf(source)
  if (detail !== undefined) part['detail'] = detail
  return part
}

function file({ source, filename }: FilePart): JsonObject {
  if (source.kind === 'file-id') return { type: 'input_file', file_id: source.id }
  if (source.kind === 'url') return { type: 'input_file', file_url: source.url }
  return {
    type: 'input_file',
    filename: filename ?? fileName(source.mediaType),
    file_data: dataUrlOf(source),
  }
}

/** A name for a file without one: the API requires a name, whose extension decides how the file is read. */
function fileName(mediaType: string): string {
  const extension = mediaType === 'text/plain' ? 'txt' : /\/([a-z0-9]{1,8})$/.exec(mediaType)?.[1]
  return `file.${extension ?? 'bin'}`
}
