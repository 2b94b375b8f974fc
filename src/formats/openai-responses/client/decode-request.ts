/**
 * Decodes a Responses request: one rule for every field of the format. The body is never modified.
 *
 * Source: OpenAI API reference, "Create a model response", and the SDK's types, read 2026-11-20.
 */
import { addUnseen } from '../../chat/hosted-tools.js'
import type {
  ChatRequest,
  Message,
  NativeField,
  ThinkingPart,
  ToolCall,
  TextPart,
  UserPart,
  FilePart,
  ImagePart,
  AssistantMessage,
} from '../../chat/request.js'
import { ConversationCalls } from '../../chat/conversation-calls.js'
import { isObject, type JsonObject, type JsonValue, objectOf, stringOf } from '../../../base/json.js'
import { longTextOf, longTextPart } from '../../chat/long-text.js'
import * as check from '../../wire/json/check-fields.js'
import {
  array,
  boolean,
  finiteObject,
  given,
  integer,
  object,
  oneOf,
  string,
  text,
  refuse,
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
import { readField } from '../../wire/scalar-fields.js'
import { EFFORT, FIELDS } from '../fields.js'
import {
  clientCallIn,
  clientFunctionName,
  clientResultIn,
  joinedName,
  type ClientCall,
} from './client-tools.js'
import { decodeText, decodeToolChoice, decodeTools, native } from './decode-tools.js'
import { repeatedOf } from './response-object.js'
import { decodeFileData, decodeMediaUrl } from '../../wire/inline-media.js'
import { NestedJson } from '../../wire/json/nested-json.js'
import {
  contentOf,
  decodeParts,
  decodeTextPart,
  decodeUserParts,
  type Content,
} from '../../wire/openai/content-parts.js'
import { areNull } from '../../wire/openai/tools.js'
import { toolName } from '../../wire/tool-names.js'
import { isReasoningToken, readReasoningToken } from '../../wire/reasoning-token.js'
import { summaryIn } from '../compaction-item.js'
import { ORIGIN, stateOf } from '../reasoning-state.js'

const MAX_INCLUDES = 64
const MAX_ID = 512
/** Each reference is one read of the store. */
const MAX_REFERENCES = 1_024
const ENCRYPTED_REASONING = 'reasoning.encrypted_content'
const LOGPROBS = 'message.output_text.logprobs'

/** Earlier responses and items that a request refers to. */
interface References {
  /** The response that the request continues; null if none. */
  readonly previous: string | null
  /** Ids of items of earlier responses. */
  readonly items: readonly string[]
}

/** The earlier responses and items that the body refers to. Throws `malformed_request`. */
export function referencesIn(body: JsonObject): References {
  const { previous_response_id: previous, input } = body
  const items: string[] = []
  for (const [at, item] of (Array.isArray(input) ? input : []).entries()) {
    if (isObject(item) && item['type'] === 'item_reference') {
      items.push(text(item['id'], `input[${at}].id`, MAX_ID))
    }
  }
  if (items.length > MAX_REFERENCES) {
    check.refuse('input', `must name at most ${MAX_REFERENCES} items by item_reference`)
  }
  const id = given(previous) ? text(previous, 'previous_response_id', MAX_ID) : null
  return { previous: id, items }
}

/**
 * Throws `malformed_request` naming the field that breaks a rule. `historyItems` is the number of items that
 * the gateway inserted before those of the client; error messages do not count them.
 */
export function decodeRequest(body: JsonObject, historyItems = 0): ChatRequest {
  refuseUnsupported(body)
  const { previous, items } = referencesIn(body)
  const request: ChatRequest = {
    model: modelOf(body),
    messages: [],
    stream: streamOf(body),
    includeUsage: true,
    tools: [],
    repeated: repeatedOf(body),
    rest: {},
  }
  const isPartial = previous !== null || items.length > 0
  decodeTools(body, request, historyItems)
  const { namespaces, clientTools } = request
  const report = (unpaired: NativeField): void => native(request, unpaired)
  request.messages = messagesOf(body, { historyItems, isPartial, namespaces, clientTools, report })
  addStored(body['input'], request, historyItems)
  applyRules(body, RULES, request)
  return request
}

/** Types of items that the client runs, or that have their whole result in them. */
const WHOLE_CALLS = /^(?:apply_patch|computer|custom_tool|function|local_shell|mcp|shell|tool_search)_call$/

/** Records the first item whose content only the provider has: reasoning, and results of hosted tools. */
function addStored(input: JsonValue | undefined, request: ChatRequest, historyItems: number): void {
  if (!Array.isArray(input)) return
  const at = input.findIndex((item) => isObject(item) && isStored(item))
  if (at !== -1) addUnseen(request, `input[${Math.max(0, at - historyItems)}]`)
}

function isStored(item: JsonObject): boolean {
  const { type, id, output } = item
  if (typeof type !== 'string') return false
  if (type === 'reasoning') {
    return typeof id === 'string' && typeof item['encrypted_content'] !== 'string'
  }
  if (type === 'computer_call_output') return isObject(output) && given(output['file_id'])
  return type.endsWith('_call') && !WHOLE_CALLS.test(type)
}

/** The conversation, with the instructions first. */
function messagesOf(body: JsonObject, options: InputOptions): Message[] {
  const { input } = body
  const before = instructionsOf(body)
  const long = longTextOf(body, 'input')
  if (long !== null) {
    return [...before, { role: 'user', index: 0, parts: [longTextPart(long)] }]
  }
  if (typeof input === 'string' && input !== '') {
    return [...before, { role: 'user', index: 0, parts: [{ type: 'text', text: input }] }]
  }
  const items = given(input) && input !== '' ? input : []
  if (!Array.isArray(items)) check.refuse('input', 'must be a string or an array of items')
  const messages = decodeInput(items, options)
  const all = [...before, ...messages]
  // A prompt template stored at OpenAI can contain the input.
  if (all.length === 0 && !options.isPartial && !given(body['prompt'])) {
    const refusal = 'input must be a non-empty string or an array of items with content'
    options.report({ path: 'input', refusal, isMalformed: true })
  }
  return all
}

function instructionsOf(body: JsonObject): Message[] {
  const long = longTextOf(body, 'instructions')
  if (long !== null) return [{ role: 'system', index: 0, parts: [longTextPart(long)] }]
  const { instructions } = body
  if (!given(instructions)) return []
  const content = string(instructions, 'instructions')
  return content === '' ? [] : [{ role: 'system', index: 0, parts: [{ type: 'text', text: content }] }]
}

/** For fields that are already decoded when the rules run. */
const alreadyDecoded: FieldRule = () => undefined

const RULES: FieldRules = new Map<string, FieldRule>([
  ...COMMON_RULES,
  ...scalarRules(FIELDS),
  ['model', alreadyDecoded],
  ['input', alreadyDecoded],
  ['instructions', alreadyDecoded],
  ['stream', alreadyDecoded],
  ['tools', alreadyDecoded],
  ['previous_response_id', alreadyDecoded],
  ['background', (v) => void boolean(v, 'background')],
  // Codex describes itself to OpenAI in this field; other providers have no use for it.
  ['client_metadata', (v) => void object(v, 'client_metadata')],
  ['include', include],
  ['prompt', prompt],
  ['reasoning', reasoning],
  ['store', (v) => void boolean(v, 'store')],
  ['stream_options', streamOptions],
  ['text', decodeText],
  ['tool_choice', decodeToolChoice],
  ['truncation', truncation],
  keepInRest('context_management', (v, path) => array(v, path, MAX_INCLUDES)),
  keepInRest('max_tool_calls', (v, path) => integer(v, path, { min: 1 })),
])

/** Runs first, because these fields change the meaning of an absent or short `input`. */
function refuseUnsupported({ background, conversation }: JsonObject): void {
  // A background reply would have to outlive its request.
  if (background === true) {
    check.refuse('background', 'is not supported: leave it out, and stream long replies')
  }
  // OpenAI stores conversations under the operator's account, which all clients share.
  if (given(conversation)) {
    check.refuse('conversation', 'is not supported: use previous_response_id, or send the items as input')
  }
}

function prompt(value: JsonValue, request: ChatRequest): void {
  finiteObject(value, 'prompt')
  const refusal =
    'prompt: prompt templates are stored at OpenAI, and this model is of another format. Send the text as instructions and input'
  native(request, { path: 'prompt', refusal })
  addUnseen(request, 'prompt')
}

function include(value: JsonValue, request: ChatRequest): void {
  for (const [at, item] of array(value, 'include', MAX_INCLUDES).entries()) {
    const name = string(item, `include[${at}]`)
    if (name === ENCRYPTED_REASONING) request.includeReasoningState = true
    if (name === LOGPROBS) request.logprobs = true
  }
}

/**
 * Replies contain a summary whenever the upstream sends reasoning, so `summary` is checked and needs no
 * translation.
 */
function reasoning(value: JsonValue, request: ChatRequest): void {
  const { effort, summary, generate_summary: former, ...rest } = object(value, 'reasoning')
  if (given(effort)) readField(EFFORT, effort, request, EFFORT.wire)
  const words = ['auto', 'concise', 'detailed', 'none'] as const
  if (given(summary)) oneOf(summary, 'reasoning.summary', words)
  if (given(former)) oneOf(former, 'reasoning.generate_summary', words)
  const others = Object.entries(rest).filter(([, member]) => given(member))
  if (others.length > 0) request.rest['reasoning'] = finiteObject(rest, 'reasoning')
}

function streamOptions(value: JsonValue): void {
  const { include_obfuscation: obfuscation } = object(value, 'stream_options')
  if (given(obfuscation)) boolean(obfuscation, 'stream_options.include_obfuscation')
}

/** `disabled` is the behaviour of every upstream. */
function truncation(value: JsonValue, request: ChatRequest): void {
  if (oneOf(value, 'truncation', ['auto', 'disabled']) === 'auto') request.rest['truncation'] = value
}

// Decodes `input`: items become turns, and every call must have one result. The items of a model's turn
// (reasoning, messages, calls) are consecutive. A result may be anywhere after its call; results are moved to
// the end of the turn, in the order of its calls.
//
// Source: OpenAI API reference, "Create a model response", `input`, read 2026-11-20.

type ToolMessage = Extract<Message, { role: 'tool' }>

/** Longer conversations do not fit any model's context window. */
const MAX_ITEMS = 10_000
const MAX_TYPE = 64
const ROLES = ['user', 'assistant', 'system', 'developer'] as const

/** Context of the items. */
interface InputOptions {
  /** Items before those of the client; the paths in errors do not count them. */
  readonly historyItems: number
  /** Part of the conversation is not in these items: a call may lack its result, and a result its call. */
  readonly isPartial: boolean
  /** Gets an empty conversation, and the first call or result without its counterpart. */
  readonly report: (unpaired: NativeField) => void
  /** The tools in a namespace, by their joined name. */
  readonly namespaces: ChatRequest['namespaces']
  readonly clientTools: ChatRequest['clientTools']
}

/** Dialects of the upstreams that sign calls and texts: Google's, and its endpoint in OpenAI's format. */
const SIGNERS: ReadonlySet<string> = new Set(['gemini', 'openai-chat'])

/** One turn of the model and the results of its calls. */
interface Turn {
  readonly message: AssistantMessage
  readonly results: Map<string, ToolMessage>
  /** The path of each call, for the error about a call without a result. */
  readonly paths: Map<string, string>
}

/** All turns, in order. Throws `malformed_request` naming the item that breaks a rule. */
function decodeInput(value: JsonValue[], options: InputOptions): Message[] {
  array(value, 'input', MAX_ITEMS)
  const conversation = new Conversation(options)
  for (const [at, entry] of value.entries()) conversation.add(entry, at)
  return conversation.messages()
}

class Conversation {
  private readonly options: InputOptions
  private readonly turns: (Message | Turn)[] = []
  /** The model's turn that the next item of the model belongs to. */
  private turn: Turn | null = null
  private readonly ids = new ConversationCalls()
  /** By the call's own id. */
  private readonly calls = new Map<string, { readonly turn: Turn; readonly call: ToolCall }>()
  /** The call ids of calls that the client runs by tools of OpenAI, by the id of their item. */
  private readonly itemCalls = new Map<string, string>()
  /** Ids of calls that only OpenAI accepts. */
  private readonly foreign = new Set<string>()
  private hasUnpaired = false
  private readonly nested = new NestedJson()
  private index = 0

  constructor(options: InputOptions) {
    this.options = options
  }

  add(value: JsonValue, at: number): void {
    this.index = Math.max(0, at - this.options.historyItems)
    const path = `input[${this.index}]`
    const item = object(value, path)
    const type = given(item['type']) ? text(item['type'], `${path}.type`, MAX_TYPE) : 'message'
    switch (type) {
      case 'message':
        return this.addMessage(item, path)
      case 'reasoning':
        return this.addReasoning(item, path)
      case 'function_call':
      case 'custom_tool_call':
        return this.addCall(item, path, type === 'custom_tool_call')
      case 'function_call_output':
      case 'custom_tool_call_output':
        return this.addResult(item, path)
      case 'item_reference':
        if (this.options.isPartial) return undefined
        return refuse(path, 'refers to an unknown item. Send the whole item')
      default:
        return this.addOther(item, path)
    }
  }

  /** An item of a tool of another type: one that the client runs, or one that only OpenAI accepts. */
  private addOther(item: JsonObject, path: string): void {
    const { call_id: callId, id } = item
    const summary = summaryIn(item, path, this.nested)
    if (summary !== null) return this.addMessage({ role: 'user', content: summary }, path)
    const call = clientCallIn(item)
    if (call !== null) return this.addClientCall(call, item, path)
    const result = clientResultIn(item)
    // The result of a local shell may have the id of its call, or of the call's item, as its own.
    const itemId = stringOf(id) ?? ''
    const given = stringOf(callId) ?? this.itemCalls.get(itemId) ?? itemId
    const own = result === null ? null : this.ids.answer(given)
    if (result === null || own === null) {
      if (typeof callId === 'string') this.foreign.add(callId)
      return this.addOpaque(item)
    }
    const message: ToolMessage = { role: 'tool', index: this.index, callId: own, parts: [] }
    if (result !== '') message.parts.push({ type: 'text', text: result })
    this.calls.get(own)?.turn.results.set(own, message)
  }

  private addOpaque(item: JsonObject): void {
    this.open().message.parts.push({ type: 'opaque', provider: ORIGIN, block: item })
  }

  private addClientCall({ type, json }: ClientCall, item: JsonObject, path: string): void {
    const name = clientFunctionName(this.options, type) ?? type
    const id = stringOf(item['id'])
    if (id !== undefined) this.itemCalls.set(id, callIdOf(item, path))
    this.pushCall(item, path, { name, arguments: json })
  }

  messages(): Message[] {
    return this.turns.flatMap((each) => ('role' in each ? [each] : this.messagesOf(each)))
  }

  private messagesOf({ message, results, paths }: Turn): Message[] {
    if (message.parts.length === 0 && message.toolCalls.length === 0) return []
    const toolResults = message.toolCalls.flatMap(({ id }) => {
      const result = results.get(id)
      if (result !== undefined) return [result]
      this.refuseElsewhere(
        paths.get(id) ?? 'input',
        'must be followed by an item with its result and its call_id, such as function_call_output',
      )
      return []
    })
    return [message, ...toolResults]
  }

  private addMessage(item: JsonObject, path: string): void {
    const role = oneOf(item['role'], `${path}.role`, ROLES)
    const content = contentOf(item, 'content')
    const at = `${path}.content`
    if (role === 'assistant') {
      // A reply without content, sent back, has null or none.
      if (given(content)) this.open().message.parts.push(...assistantParts(content, at))
      return
    }
    this.turn = null
    const { index } = this
    if (role === 'user') {
      const parts = userParts(content ?? '', at)
      if (parts.length > 0) this.turns.push({ role, index, parts })
    } else {
      const parts = textParts(content ?? '', at)
      if (parts.length > 0) this.turns.push({ role, index, parts })
    }
  }

  private addReasoning(item: JsonObject, path: string): void {
    for (const key of ['summary', 'content'])
      if (given(item[key])) array(item[key], `${path}.${key}`, MAX_ITEMS)
    const summary = textsIn(item['summary'], `${path}.summary`)
    const text = summary === '' ? textsIn(item['content'], `${path}.content`) : summary
    const { encrypted_content: encrypted } = item
    const token = given(encrypted) ? string(encrypted, `${path}.encrypted_content`) : ''
    if (isReasoningToken(token)) return this.addState(token, text)
    const signature = stateOf(item)
    const state = signature === undefined ? {} : { signature }
    this.addThought({ type: 'thinking', text, ...state, origin: ORIGIN })
  }

  /**
   * Restores another provider's state. The text of a changed token has no origin, so no upstream receives it.
   */
  private addState(token: string, text: string): void {
    const state = readReasoningToken(token, this.nested)
    if (state === null) return this.addThought({ type: 'thinking', text })
    const { origin, thoughts, of } = state
    if (of === undefined) this.addThought({ type: 'thinking', text, ...thoughts[0], origin })
    else if (SIGNERS.has(origin)) this.sign(of, thoughts[0]?.signature)
  }

  private addThought(part: ThinkingPart): void {
    const { text, signature, redacted } = part
    if (text === '' && signature === undefined && redacted === undefined) return
    this.open().message.parts.push(part)
  }

  /** Attaches the signature of a call or a text, which the gateway's replies carry in an item of its own. */
  private sign(of: { readonly call: string } | 'text', signature: string | undefined): void {
    if (signature === undefined) return
    if (of !== 'text') {
      const known = this.calls.get(of.call)
      if (known !== undefined) known.call.signature = signature
      return
    }
    const parts = this.open().message.parts
    const last = parts.at(-1)
    if (last?.type === 'text') last.signature = signature
    else parts.push({ type: 'text', text: '', signature })
  }

  private addCall(item: JsonObject, path: string, custom: boolean): void {
    const key = custom ? 'input' : 'arguments'
    const json = argumentsOf(item[key], `${path}.${key}`, custom)
    const name = this.nameOf(item, path)
    this.pushCall(item, path, custom ? { name, arguments: json, custom } : { name, arguments: json })
  }

  private pushCall(item: JsonObject, path: string, members: Omit<ToolCall, 'id'>): void {
    const turn = this.open()
    const id = this.ids.add(callIdOf(item, path), turn.message.index)
    const call: ToolCall = { id, ...members }
    turn.message.toolCalls.push(call)
    turn.paths.set(id, path)
    this.calls.set(id, { turn, call })
  }

  /** OpenAI also names the namespace of tools from its tool search; those have no namespace in `tools`. */
  private nameOf({ name, namespace }: JsonObject, path: string): string {
    const own = toolName(name, `${path}.name`)
    if (!given(namespace)) return own
    const joined = joinedName(toolName(namespace, `${path}.namespace`), own)
    return this.options.namespaces?.has(joined) === true ? joined : own
  }

  private addResult(item: JsonObject, path: string): void {
    const given = callIdOf(item, path)
    // The call is an item that only OpenAI accepts, so its result is too.
    if (this.foreign.delete(given)) return this.addOpaque(item)
    const callId = this.ids.answer(given) ?? given
    const parts = userParts(contentOf(item, 'output') ?? '', `${path}.output`)
    const message: ToolMessage = { role: 'tool', index: this.index, callId, parts }
    const turn = this.calls.get(callId)?.turn
    if (turn?.results.has(callId) === false) {
      turn.results.set(callId, message)
      return
    }
    if (this.options.isPartial) return
    const rule = turn === undefined ? 'matches no call before it' : 'already has a result'
    this.refuseElsewhere(`${path}.call_id`, rule)
    this.turn = null
    this.turns.push(message)
  }

  /** OpenAI judges by itself, and has the part of the conversation that is not in these items. */
  private refuseElsewhere(path: string, rule: string): void {
    if (this.options.isPartial || this.hasUnpaired) return
    this.hasUnpaired = true
    this.options.report({ path, refusal: `${path} ${rule}`, isMalformed: true })
  }

  /** The model's current turn. An item after a tool result begins a new turn. */
  private open(): Turn {
    if (this.turn !== null && this.turn.results.size === 0) return this.turn
    const message: AssistantMessage = {
      role: 'assistant',
      index: this.index,
      parts: [],
      toolCalls: [],
    }
    this.turn = { message, results: new Map(), paths: new Map() }
    this.turns.push(this.turn)
    return this.turn
  }
}

/** Some servers of open models give their calls no id. */
function callIdOf({ call_id: id }: JsonObject, path: string): string {
  return given(id) && id !== '' ? text(id, `${path}.call_id`, MAX_ID) : ''
}

/** The arguments as text. A call without arguments has an empty object. */
function argumentsOf(value: JsonValue | undefined, path: string, custom: boolean): string {
  if (!custom && areNull(value)) return '{}'
  return given(value) ? string(value, path) : ''
}

/** The texts of a summary or of reasoning content, joined as paragraphs. */
function textsIn(value: JsonValue | undefined, path: string): string {
  if (!given(value)) return ''
  return array(value, path, MAX_ITEMS)
    .map((part) => stringOf(objectOf(part)['text']) ?? '')
    .filter((paragraph) => paragraph !== '')
    .join('\n\n')
}

/** The text parts of a system or developer message. Empty text is dropped. */
function textParts(value: Content, path: string): TextPart[] {
  return decodeParts(value, path, (item, at) => {
    oneOf(item['type'], `${at}.type`, ['input_text'])
    return decodeTextPart(item, 'text', at)
  })
}

/** The parts of a user message or a tool result. Empty text is dropped. */
function userParts(value: Content, path: string): UserPart[] {
  return decodeUserParts(value, path, {
    text: 'input_text',
    image: ['input_image', decodeImage],
    file: ['input_file', decodeFile],
  })
}

/** The parts of an assistant message: text, and refusals (text for the next turn). */
function assistantParts(value: Content, path: string): TextPart[] {
  return decodeParts<TextPart>(value, path, (item, at) => {
    const type = oneOf(item['type'], `${at}.type`, ['output_text', 'refusal', 'input_text', 'text'])
    return decodeTextPart(item, type === 'refusal' ? 'refusal' : 'text', at)
  })
}

/** An `input_image` part. */
function decodeImage(item: JsonObject, path: string): ImagePart {
  const { image_url: url, file_id: id, detail } = item
  const at = `${path}.image_url`
  if (!given(url) && !given(id)) refuse(path, 'must have image_url or file_id')
  const part: ImagePart = {
    type: 'image',
    source: given(url)
      ? decodeFileData(string(isObject(url) ? url['url'] : url, at), at, undefined)
      : { kind: 'file-id', id: text(id, `${path}.file_id`, MAX_ID) },
  }
  if (given(detail)) {
    part.detail = oneOf(detail, `${path}.detail`, ['auto', 'low', 'high', 'original'])
  }
  return part
}

/** An `input_file` part. */
function decodeFile(item: JsonObject, path: string): FilePart {
  const part: FilePart = { type: 'file', source: fileSource(item, path) }
  if (given(item['filename'])) part.filename = text(item['filename'], `${path}.filename`, 1_024)
  return part
}

function fileSource(item: JsonObject, path: string): FilePart['source'] {
  const { file_id: id, file_url: url, file_data: data } = item
  if (given(id)) return { kind: 'file-id', id: text(id, `${path}.file_id`, MAX_ID) }
  if (given(url)) return decodeMediaUrl(string(url, `${path}.file_url`), `${path}.file_url`)
  if (!given(data)) refuse(path, 'must have file_data, file_url or file_id')
  return decodeFileData(string(data, `${path}.file_data`), `${path}.file_data`, item['filename'])
}
