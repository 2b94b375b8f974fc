/**
 * Decodes a Responses request: one rule for every field of the format. The body is never modified.
 *
 * Source: OpenAI API reference, "Create a model response", and the SDK's types, read 2026-11-20.
 */
import { addUnseen } from '../../chat/hosted-tools.js'
import type { ChatRequest, Message } from '../../chat/request.js'
import { isObject, type JsonObject, type JsonValue } from '../../chat/json.js'
import { longTextOf, longTextPart } from '../../chat/long-text.js'
import * as check from '../../wire/json/check-fields.js'
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
import { decodeInput, type InputOptions } from './decode-messages.js'
import { decodeText, decodeToolChoice, decodeTools, native } from './decode-tools.js'
import { repeatedOf } from './response-object.js'

const { array, boolean, finiteObject, given, integer, object, oneOf, string, text } = check

const MAX_INCLUDES = 64
const MAX_ID = 512
/** Each reference is one read of the store. */
const MAX_REFERENCES = 1_024
const ENCRYPTED_REASONING = 'reasoning.encrypted_content'
const LOGPROBS = 'message.output_text.logprobs'

/** Earlier responses and items that a request refers to. */
export interface References {
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
  if (given(body['tools'])) decodeTools(body['tools'], request)
  const { namespaces } = request
  request.messages = messagesOf(body, { historyItems, isPartial, namespaces })
  addStored(body['input'], request, historyItems)
  applyRules(body, RULES, request)
  return request
}

/** Types of items that the client runs, or that have their whole result in them. */
const WHOLE_CALLS =
  /^(?:apply_patch|computer|custom_tool|function|local_shell|mcp|shell|tool_search)_call$/

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
  if (typeof input === 'string') {
    if (input === '') check.refuse('input', 'must not be empty')
    return [...before, { role: 'user', index: 0, parts: [{ type: 'text', text: input }] }]
  }
  const items = given(input) ? input : []
  if (!Array.isArray(items)) check.refuse('input', 'must be a string or an array of items')
  const messages = decodeInput(items, options)
  // A prompt template stored at OpenAI can contain the input.
  if (messages.length === 0 && !options.isPartial && !given(body['prompt'])) {
    check.refuse('input', 'must be a non-empty string or an array of items with content')
  }
  return [...before, ...messages]
}

function instructionsOf(body: JsonObject): Message[] {
  const long = longTextOf(body, 'instructions')
  if (long !== null) return [{ role: 'system', index: 0, parts: [longTextPart(long)] }]
  const { instructions } = body
  if (!given(instructions)) return []
  const content = string(instructions, 'instructions')
  return content === ''
    ? []
    : [{ role: 'system', index: 0, parts: [{ type: 'text', text: content }] }]
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
    check.refuse(
      'conversation',
      'is not supported: use previous_response_id, or send the items as input',
    )
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
  if (oneOf(value, 'truncation', ['auto', 'disabled']) === 'auto')
    request.rest['truncation'] = value
}
