/**
 * Decodes a chat-completions request: one rule for every field of the format. The body is never modified.
 *
 * Source: OpenAI API reference, "Create chat completion", and the SDK's types, read 2026-11-20.
 */
import {
  EFFORTS,
  type ChatRequest,
  type ResponseFormat,
  type Tool,
  type ToolChoice,
  type AssistantPart,
  type Message,
  type ToolCall,
  type TextPart,
  type ThinkingPart,
  type UserPart,
  type MediaSource,
} from '../../chat/request.js'
import { ConversationCalls } from '../../chat/conversation-calls.js'
import { stringifyExact } from '../../wire/json/exact-numbers.js'
import { arrayOf, isObject, type JsonObject, type JsonValue, objectOf, stringOf } from '../../../base/json.js'
import { addHosted, hostedToolName } from '../../chat/hosted-tools.js'
import * as check from '../../wire/json/check-fields.js'
import {
  array,
  boolean,
  finiteObject,
  given,
  number,
  object,
  oneOf,
  refuse,
  string,
  text,
} from '../../wire/json/check-fields.js'
import {
  applyRules,
  COMMON_RULES,
  keepInRest,
  scalarRules,
  type FieldRule,
  type FieldRules,
} from '../../wire/openai/field-rules.js'
import { modelOf, streamOf } from '../../wire/request-fields.js'
import { FIELDS } from '../fields.js'
import { cacheMark } from '../../wire/prompt-cache-markers.js'
import {
  areNull,
  decodeFunctionTool,
  decodeNamedTool,
  MAX_TOOLS,
  namesInChoice,
  noteName,
} from '../../wire/openai/tools.js'
import { TOOL_NAMES } from '../../vendors.js'
import { toolName } from '../../wire/tool-names.js'
import { decodeFormat, formatType } from '../../wire/openai/response-format.js'
import { decodeFileData, decodeMediaUrl } from '../../wire/inline-media.js'
import {
  contentOf,
  decodeParts,
  decodeTextPart,
  decodeUserParts,
  type Content,
} from '../../wire/openai/content-parts.js'
import { decodeReasoning, attachSignatures, thoughtSignature } from '../reasoning-state.js'

/** Throws `malformed_request` naming the field that breaks a rule. */
export function decodeRequest(body: JsonObject): ChatRequest {
  const request: ChatRequest = {
    model: modelOf(body),
    messages: [],
    stream: streamOf(body),
    includeUsage: false,
    tools: [],
    rest: {},
  }
  request.messages = decodeMessages(body['messages'], request)
  decodeToolFields(body, request)
  applyRules(body, RULES, request)
  return request
}

/** Tools come before the tool choice, which is checked against them. */
function decodeToolFields(body: JsonObject, request: ChatRequest): void {
  const { tools, functions, tool_choice: choice, function_call: call } = body
  if (given(tools)) request.tools = decodeTools(tools)
  for (const [at, { name, custom }] of request.tools.entries()) {
    const path = `tools[${at}].${custom === undefined ? 'function' : 'custom'}.name`
    noteName(request, { name, path }, TOOL_NAMES.openai)
  }
  if (given(choice)) request.toolChoice = decodeToolChoice(choice, request.tools)
  if (given(functions)) {
    if (given(tools)) check.refuse('functions', 'cannot be combined with tools')
    request.tools = decodeFunctions(functions)
    request.legacyFunctions = true
  }
  if (!given(call)) return
  if (given(choice)) check.refuse('function_call', 'cannot be combined with tool_choice')
  request.toolChoice = decodeFunctionCall(call, request.tools)
}

/** For fields that are already decoded when the rules run. */
const alreadyDecoded: FieldRule = () => undefined

const RULES: FieldRules = new Map<string, FieldRule>([
  ...COMMON_RULES,
  ...scalarRules(FIELDS),
  ['model', alreadyDecoded],
  ['messages', alreadyDecoded],
  ['stream', alreadyDecoded],
  ['tools', alreadyDecoded],
  ['tool_choice', alreadyDecoded],
  ['functions', alreadyDecoded],
  ['function_call', alreadyDecoded],
  ['response_format', (v, r) => void (r.responseFormat = decodeResponseFormat(v))],
  ['reasoning', reasoning],
  ['stream_options', streamOptions],
  keepInRest('logit_bias', logitBias),
  keepInRest('modalities', modalities),
  keepInRest('audio', object),
  keepInRest('prediction', finiteObject),
  ['web_search_options', webSearchOptions],
  keepInRest('store', boolean),
])

function webSearchOptions(value: JsonValue, request: ChatRequest): void {
  const path = 'web_search_options'
  request.rest[path] = finiteObject(value, path)
  addHosted(request, { name: hostedToolName(path), path })
}

/**
 * The `reasoning` object of OpenAI's Responses and of OpenRouter. The flat field `reasoning_effort` takes
 * precedence over its effort; an object with other members is kept in `rest`, and encoders report it as a
 * loss.
 */
function reasoning(value: JsonValue, request: ChatRequest): void {
  const { effort, ...others } = objectOf(value)
  const known = EFFORTS.find((one) => one === effort)
  if (known !== undefined) request.reasoningEffort ??= known
  const whole = isObject(value) && (known !== undefined || !given(effort))
  if (!whole || Object.values(others).some(given)) request.rest['reasoning'] = value
}

function streamOptions(value: JsonValue, request: ChatRequest): void {
  const options = object(value, 'stream_options')
  const { include_usage: usage, include_obfuscation: obfuscation } = options
  if (given(obfuscation)) boolean(obfuscation, 'stream_options.include_obfuscation')
  if (given(usage)) {
    request.includeUsage = boolean(usage, 'stream_options.include_usage') && request.stream
  }
}

function logitBias(value: JsonValue): void {
  if (!isObject(value)) check.refuse('logit_bias', 'must be an object')
  for (const [token, bias] of Object.entries(value)) {
    const path = /^\d{1,10}$/.test(token) ? `logit_bias.${token}` : 'logit_bias'
    if (path === 'logit_bias') check.refuse(path, 'must have token numbers as its keys')
    number(bias, path, { min: -100, max: 100 })
  }
}

/** Vendors have more kinds than OpenAI: their price decides. */
function modalities(value: JsonValue): void {
  array(value, 'modalities', 8).forEach((item, at) => {
    text(item, `modalities[${at}]`, 64)
  })
}

// Decodes `tools`, `tool_choice`, their legacy forms, and `response_format`.

/** Decodes `tools`. Throws `malformed_request` naming the tool that breaks a rule. */
function decodeTools(value: JsonValue | undefined): Tool[] {
  return array(value, 'tools', MAX_TOOLS).map((item, at) => decodeTool(item, `tools[${at}]`))
}

/** Decodes the legacy `functions`. */
function decodeFunctions(value: JsonValue | undefined): Tool[] {
  return array(value, 'functions', MAX_TOOLS).map((item, at) => {
    const path = `functions[${at}]`
    return decodeFunctionTool(object(item, path), path)
  })
}

function decodeTool(value: JsonValue, path: string): Tool {
  const item = object(value, path)
  // Mistral's clients omit the type (recorded).
  const type = given(item['type']) ? oneOf(item['type'], `${path}.type`, ['function', 'custom']) : 'function'
  const inner = `${path}.${type}`
  const body = object(item[type], inner)
  const tool = type === 'function' ? decodeFunctionTool(body, inner) : decodeCustom(body, inner)
  const cache = cacheMark(item, path)
  if (cache !== undefined) tool.cache = cache
  return tool
}

function decodeCustom(body: JsonObject, path: string): Tool {
  const tool = decodeNamedTool(body, path)
  tool.custom = {}
  if (given(body['format'])) {
    const format = object(body['format'], `${path}.format`)
    oneOf(format['type'], `${path}.format.type`, ['text', 'grammar'])
    tool.custom = { format }
  }
  return tool
}

/** Decodes `tool_choice`. A choice that forces a call requires tools; a choice by name requires that tool. */
function decodeToolChoice(value: JsonValue, tools: readonly Tool[]): ToolChoice {
  const choice = readToolChoice(value)
  if (choice.mode === 'auto' || choice.mode === 'none') return choice
  if (tools.length === 0) refuse('tool_choice', 'needs at least one tool in tools')
  const known = new Set(tools.map((tool) => tool.name))
  for (const name of namesInChoice(choice)) {
    if (!known.has(name)) {
      refuse('tool_choice', `names ${JSON.stringify(name)}, which is not in tools`)
    }
  }
  return choice
}

function readToolChoice(value: JsonValue): ToolChoice {
  if (typeof value === 'string') {
    const mode = oneOf(value, 'tool_choice', ['auto', 'none', 'required', 'any'])
    // Mistral's clients send `any` for `required` (recorded).
    return { mode: mode === 'any' ? 'required' : mode }
  }
  const item = object(value, 'tool_choice')
  const type = oneOf(item['type'], 'tool_choice.type', ['function', 'custom', 'allowed_tools'])
  const inner = object(item[type], `tool_choice.${type}`)
  if (type !== 'allowed_tools') {
    return { mode: 'named', name: toolName(inner['name'], `tool_choice.${type}.name`) }
  }
  const path = 'tool_choice.allowed_tools'
  const mode = oneOf(inner['mode'], `${path}.mode`, ['auto', 'required'])
  const names = array(inner['tools'], `${path}.tools`, MAX_TOOLS).map((tool, at) => {
    const entry = object(tool, `${path}.tools[${at}]`)
    const kind = oneOf(entry['type'], `${path}.tools[${at}].type`, ['function', 'custom'])
    const named = object(entry[kind], `${path}.tools[${at}].${kind}`)
    return toolName(named['name'], `${path}.tools[${at}].${kind}.name`)
  })
  if (names.length === 0) refuse(`${path}.tools`, 'must name at least one tool')
  return { mode: 'allowed', required: mode === 'required', names }
}

/** Decodes the legacy `function_call`. */
function decodeFunctionCall(value: JsonValue, tools: readonly Tool[]): ToolChoice {
  if (typeof value === 'string') {
    return { mode: oneOf(value, 'function_call', ['auto', 'none']) }
  }
  const name = toolName(object(value, 'function_call')['name'], 'function_call.name')
  if (!tools.some((tool) => tool.name === name)) {
    refuse('function_call', `names ${JSON.stringify(name)}, which is not in functions`)
  }
  return { mode: 'named', name }
}

/** Decodes `response_format`. */
function decodeResponseFormat(value: JsonValue): ResponseFormat {
  const item = object(value, 'response_format')
  const type = formatType(item['type'], 'response_format.type')
  const path = 'response_format.json_schema'
  return decodeFormat(type, () => object(item['json_schema'], path), path)
}

// Decodes `messages` and pairs every tool call with its result. System messages keep their position and
// arguments their text.

type ToolMessage = Extract<Message, { role: 'tool' }>

/** Longer conversations do not fit any model's context window. */
const MAX_MESSAGES = 10_000
const MAX_CALLS = 1_024
const MAX_ID = 512
const ROLES = ['system', 'developer', 'user', 'assistant', 'tool', 'function'] as const

/** An assistant turn with tool calls, and the results received for them. */
interface Turn {
  path: string
  calls: ToolCall[]
  results: Map<string, ToolMessage>
  /** The call is a legacy `function_call`. */
  legacy: boolean
}

/** An entry of `messages`. */
interface Entry {
  readonly item: JsonObject
  readonly path: string
  readonly index: number
}

/** Decodes `messages`; the results of a turn are returned in the order of its calls. */
function decodeMessages(value: JsonValue | undefined, request: ChatRequest): Message[] {
  if (!Array.isArray(value) || value.length === 0) refuse('messages', 'must be a non-empty array')
  const decoder = new MessagesDecoder()
  for (const [index, member] of array(value, 'messages', MAX_MESSAGES).entries()) {
    const path = `messages[${index}]`
    decoder.add({ item: object(member, path), path, index })
  }
  return decoder.done(request)
}

class MessagesDecoder {
  private readonly messages: Message[] = []
  private readonly calls = new ConversationCalls()
  private turn: Turn | null = null
  /** A turn to be continued is dropped, because it has no content. */
  private losesPrefix = false
  /** The latest turn is to be continued. */
  private isPrefix = false

  add(entry: Entry): void {
    const { item, path, index } = entry
    const role = oneOf(item['role'], `${path}.role`, ROLES)
    if (given(item['name']) && role !== 'function') text(item['name'], `${path}.name`, 256)
    if (role === 'tool' || role === 'function') {
      this.addResult(entry, role)
      return
    }
    this.closeTurn()
    const message = roleMessage(entry, role)
    if (message === null) {
      this.losesPrefix ||= item['prefix'] === true
      return
    }
    this.messages.push(message)
    this.isPrefix = item['prefix'] === true
    if (message.role !== 'assistant' || message.toolCalls.length === 0) return
    for (const call of message.toolCalls) call.id = this.calls.add(call.id, index)
    const legacy = !hasCalls(item)
    this.turn = { path, calls: message.toolCalls, results: new Map(), legacy }
  }

  done(request: ChatRequest): Message[] {
    this.closeTurn()
    const { messages, calls } = this
    if (messages.length === 0) this.unpaired('messages', 'must have at least one message with content')
    if (calls.unpaired !== null) (request.native ??= []).push(calls.unpaired)
    if (this.losesPrefix) (request.native ??= []).push({ path: 'messages.prefix' })
    if (this.isPrefix && messages.at(-1)?.role === 'assistant') request.prefix = true
    return messages
  }

  private addResult(entry: Entry, role: 'tool' | 'function'): void {
    const { item, path } = entry
    const { turn } = this
    const callId = role === 'tool' ? this.callOf(item, path) : this.callNamed(item, path)
    const message = toolMessage(entry, callId ?? '')
    if (turn === null || callId === null) this.messages.push(message)
    else turn.results.set(callId, message)
  }

  /** The own id of the call that a result belongs to; null, and reported, if there is none. */
  private callOf(item: JsonObject, path: string): string | null {
    const at = `${path}.tool_call_id`
    const id = optionalId(item['tool_call_id'], at)
    const callId = this.calls.answer(id)
    if (this.turn === null) this.unpaired(path, 'must follow an assistant message with tool_calls')
    else if (callId === null) {
      const isKnown = this.turn.results.has(id)
      this.unpaired(
        at,
        isKnown ? 'already has a result' : 'matches no call of the assistant message before it',
      )
    }
    return callId
  }

  /** The same for a result of the legacy form, which has the function's name. */
  private callNamed(item: JsonObject, path: string): string | null {
    const { turn } = this
    const name = toolName(item['name'], `${path}.name`)
    if (turn === null) this.unpaired(path, 'must follow an assistant message with tool_calls')
    const call = turn?.calls.find((each) => each.name === name && !turn.results.has(each.id))
    if (call === undefined) this.unpaired(`${path}.name`, 'must name a function call without a result')
    return call?.id ?? null
  }

  private unpaired(path: string, rule: string): void {
    this.calls.refuseElsewhere(path, rule)
  }

  /** Adds the results of the turn in the order of its calls. */
  private closeTurn(): void {
    const { turn } = this
    this.turn = null
    this.calls.close()
    if (turn === null) return
    for (const [at, call] of turn.calls.entries()) {
      const message = turn.results.get(call.id)
      if (message !== undefined) this.messages.push(message)
      else {
        const path = turn.legacy ? `${turn.path}.function_call` : `${turn.path}.tool_calls[${at}]`
        const role = turn.legacy ? 'function' : 'tool'
        this.unpaired(path, `must be followed by a ${role} message with its result`)
      }
    }
  }
}

/** An empty list, as some providers send it, is none. */
function hasCalls(item: JsonObject): boolean {
  return arrayOf(item['tool_calls']).length > 0
}

/** A message that is not a tool result; null for one without content, which the same format passes on. */
function roleMessage(entry: Entry, role: 'system' | 'developer' | 'user' | 'assistant'): Message | null {
  const { item, path, index } = entry
  const at = `${path}.content`
  switch (role) {
    case 'system':
    case 'developer': {
      const parts = textParts(contentOf(item, 'content') ?? '', at)
      messageMark(item, path, parts)
      return parts.length === 0 ? null : { role, index, parts }
    }
    case 'user': {
      const parts = userParts(contentOf(item, 'content') ?? '', at)
      messageMark(item, path, parts)
      return parts.length === 0 ? null : { role, index, parts }
    }
    case 'assistant':
      return assistant(entry)
    default:
      return role satisfies never
  }
}

/** A `cache_control` on a message applies to its last text part. */
function messageMark(item: JsonObject, path: string, parts: Message['parts']): void {
  const cache = cacheMark(item, path)
  const last = parts.at(-1)
  if (cache !== undefined && last?.type === 'text') last.cache ??= cache
}

function assistant({ item, path, index }: Entry): Message | null {
  const toolCalls = given(item['tool_calls'])
    ? array(item['tool_calls'], `${path}.tool_calls`, MAX_CALLS).map((call, at) =>
        toolCall(call, `${path}.tool_calls[${at}]`),
      )
    : []
  if (toolCalls.length === 0 && given(item['function_call'])) {
    toolCalls.push(functionCall(item['function_call'], `${path}.function_call`, index))
  }
  const state = decodeReasoning(item, path)
  const parts: AssistantPart[] = state.thoughts
  const content = contentOf(item, 'content')
  if (given(content)) parts.push(...assistantParts(content, `${path}.content`))
  const other = otherContent(item, path)
  if (other !== null) parts.push(other)
  messageMark(item, path, parts)
  attachSignatures(state, parts, toolCalls)
  // A reply without content, which its client sends back, is no turn.
  if (parts.length === 0 && toolCalls.length === 0) return null
  return { role: 'assistant', index, parts, toolCalls }
}

/** Members beside `content`: a refusal, or audio that only OpenAI can refer to. */
function otherContent(item: JsonObject, path: string): AssistantPart | null {
  if (given(item['refusal'])) {
    const refusal = string(item['refusal'], `${path}.refusal`)
    if (refusal !== '') return { type: 'text', text: refusal }
  }
  if (!given(item['audio'])) return null
  const audio = object(item['audio'], `${path}.audio`)
  const id = text(audio['id'], `${path}.audio.id`, MAX_ID)
  // Replies have a transcript, which other models read in place of the sound.
  const transcript = stringOf(audio['transcript'])
  const block = { type: 'audio', id, ...(transcript !== undefined && { transcript }) }
  return { type: 'opaque', provider: 'openai-chat', block }
}

function toolCall(value: JsonValue, path: string): ToolCall {
  const item = object(value, path)
  const id = optionalId(item['id'], `${path}.id`)
  // Mistral and Google's OpenAI-compatible endpoint omit the type (recorded).
  const type = given(item['type']) ? oneOf(item['type'], `${path}.type`, ['function', 'custom']) : 'function'
  const inner = object(item[type], `${path}.${type}`)
  const name = toolName(inner['name'], `${path}.${type}.name`)
  const key = type === 'function' ? 'arguments' : 'input'
  const call: ToolCall = { id, name, arguments: argumentsOf(inner[key], `${path}.${type}.${key}`, type) }
  if (type === 'custom') call.custom = true
  const signature = thoughtSignature(item)
  if (signature !== undefined) call.signature = signature
  const cache = cacheMark(item, path)
  if (cache !== undefined) call.cache = cache
  return call
}

/**
 * The legacy form has no ids. The id derives from the message's index, which is the same on every later turn.
 */
function functionCall(value: JsonValue | undefined, path: string, index: number): ToolCall {
  const item = object(value, path)
  const name = toolName(item['name'], `${path}.name`)
  const text = argumentsOf(item['arguments'], `${path}.arguments`, 'function')
  return { id: `call_fn_${index}`, name, arguments: text }
}

/** The arguments as text. A call without arguments has an empty object. */
function argumentsOf(value: JsonValue | undefined, path: string, type: 'function' | 'custom'): string {
  if (type === 'function' && areNull(value)) return '{}'
  // Mistral and Ollama have them as an object too.
  if (type === 'function' && isObject(value)) return stringifyExact(value)
  return given(value) ? string(value, path) : ''
}

function toolMessage({ item, path, index }: Entry, callId: string): ToolMessage {
  const parts = userParts(contentOf(item, 'content') ?? '', `${path}.content`)
  const message: ToolMessage = { role: 'tool', index, callId, parts }
  const cache = cacheMark(item, path)
  if (cache !== undefined) message.cache = cache
  return message
}

/** Some servers of open models give their calls no id. */
function optionalId(value: JsonValue | undefined, path: string): string {
  return given(value) && value !== '' ? text(value, path, MAX_ID) : ''
}

/** The text parts of a system or developer message. Empty text is dropped. */
function textParts(value: Content, path: string): TextPart[] {
  return decodeParts(value, path, (item, at) => {
    oneOf(item['type'], `${at}.type`, ['text'])
    return decodeTextPart(item, 'text', at)
  })
}

/** The parts of a user message or a tool result. Empty text is dropped. */
function userParts(value: Content, path: string): UserPart[] {
  return decodeUserParts(value, path, {
    text: 'text',
    image: ['image_url', decodeImage],
    file: ['file', decodeFile],
  })
}

/** The parts of an assistant message: text, refusals (text for the next turn) and Mistral's thinking. */
function assistantParts(value: Content, path: string): AssistantPart[] {
  return decodeParts<AssistantPart>(value, path, (item, at) => {
    const type = oneOf(item['type'], `${at}.type`, ['text', 'refusal', 'thinking'])
    if (type === 'text') return decodeTextPart(item, 'text', at)
    if (type === 'thinking') return thinkingPart(item, at)
    return { type: 'text', text: string(item['refusal'], `${at}.refusal`) }
  })
}

/** Mistral sends thinking as a list of text parts (recorded). */
function thinkingPart(item: JsonObject, path: string): ThinkingPart {
  const value = item['thinking']
  const text = typeof value === 'string' ? value : textParts(value, `${path}.thinking`).map((t) => t.text)
  return { type: 'thinking', text: [text].flat().join(''), origin: 'openai-chat' }
}

/** An `image_url` part. */
function decodeImage(item: JsonObject, path: string): Extract<UserPart, { type: 'image' }> {
  const at = `${path}.image_url`
  const value = item['image_url']
  // Mistral's clients send the URL itself in place of an object (recorded).
  if (typeof value === 'string') return { type: 'image', source: decodeFileData(value, at, undefined) }
  const inner = object(value, at)
  const part: Extract<UserPart, { type: 'image' }> = {
    type: 'image',
    // Clients of Ollama and LM Studio send base64 alone.
    source: decodeFileData(string(inner['url'], `${at}.url`), `${at}.url`, undefined),
  }
  if (given(inner['detail'])) {
    part.detail = oneOf(inner['detail'], `${at}.detail`, ['auto', 'low', 'high', 'original'])
  }
  return part
}

/** A `file` part. */
function decodeFile(item: JsonObject, path: string): Extract<UserPart, { type: 'file' }> {
  const at = `${path}.file`
  const inner = object(item['file'], at)
  const part: Extract<UserPart, { type: 'file' }> = { type: 'file', source: fileSource(inner, at) }
  if (given(inner['filename'])) part.filename = text(inner['filename'], `${at}.filename`, 1_024)
  return part
}

function fileSource(inner: JsonObject, path: string): MediaSource {
  if (given(inner['file_id'])) {
    return { kind: 'file-id', id: text(inner['file_id'], `${path}.file_id`, 512) }
  }
  if (given(inner['file_url'])) {
    return decodeMediaUrl(string(inner['file_url'], `${path}.file_url`), `${path}.file_url`)
  }
  if (!given(inner['file_data'])) refuse(path, 'must have file_data or file_id')
  const at = `${path}.file_data`
  return decodeFileData(string(inner['file_data'], at), at, inner['filename'])
}
