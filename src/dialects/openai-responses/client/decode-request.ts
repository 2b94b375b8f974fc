/**
 * The rule book of a Responses request: one entry for every field the format knows.
 * Knows no upstream; never changes the body that it reads.
 *
 * Source: OpenAI API reference, "Create a model response", and the SDK's types, read 2026-11-20.
 */
import { EFFORTS } from '../../../chat/effort.js'
import { isObject, type JsonObject, type JsonValue } from '../../../chat/json.js'
import { longTextOf, longTextPart } from '../../../chat/long-text.js'
import type { ChatRequest, Message } from '../../../chat/request.js'
import {
  array,
  boolean,
  finiteObject,
  given,
  integer,
  number,
  object,
  oneOf,
  refuse,
  string,
  text,
} from '../../../wire/json/check-fields.js'
import { metadataPairs, modelOf, refuseForbidden, streamOf } from '../../../wire/openai/fields.js'
import { SERVICE_TIERS } from '../shared/names.js'
import { decodeInput, type InputOptions } from './request/decode-messages.js'
import { decodeText, decodeToolChoice, decodeTools, native } from './request/decode-tools.js'
import { repeatedOf } from './reply/repeated-settings.js'

/** Checks one field and stores it. */
type Rule = (value: JsonValue, request: ChatRequest) => void

const MAX_INCLUDES = 64
const MAX_ID = 512
/** Each is looked up in the store. */
const MAX_REFERENCES = 1_024
const SEALED = 'reasoning.encrypted_content'
const LOGPROBS = 'message.output_text.logprobs'

/** What the client asks to be put before its own input. */
export interface References {
  /** The response that it goes on from; null if none. */
  readonly previous: string | null
  /** Items of earlier responses, by their ids. */
  readonly items: readonly string[]
}

/** What of earlier responses the request names. Throws `malformed_request`. */
export function referencesIn(body: JsonObject): References {
  const { previous_response_id: previous, input } = body
  const items: string[] = []
  for (const [at, item] of (Array.isArray(input) ? input : []).entries()) {
    if (isObject(item) && item['type'] === 'item_reference') {
      items.push(text(item['id'], `input[${at}].id`, MAX_ID))
    }
  }
  if (items.length > MAX_REFERENCES) {
    refuse('input', `must name at most ${MAX_REFERENCES} items by item_reference`)
  }
  const id = given(previous) ? text(previous, 'previous_response_id', MAX_ID) : null
  return { previous: id, items }
}

/**
 * Reads a whole request. Throws `malformed_request` naming the field that breaks a rule. `historyItems`: so many items
 * were put before those of the client.
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
  for (const key of Object.keys(body)) {
    if (DONE.has(key)) continue
    const value = body[key]
    if (!given(value)) continue
    const rule = RULES.get(key)
    if (rule !== undefined) rule(value, request)
    else {
      refuseForbidden(key)
      request.rest[key] = value
    }
  }
  return request
}

/** Fields that have been read already. */
const DONE: ReadonlySet<string> = new Set([
  'model',
  'input',
  'instructions',
  'stream',
  'tools',
  'previous_response_id',
])

/** The conversation, with the instructions first. */
function messagesOf(body: JsonObject, options: InputOptions): Message[] {
  const { input } = body
  const before = instructionsOf(body)
  const long = longTextOf(body, 'input')
  if (long !== null) {
    return [...before, { role: 'user', index: 0, parts: [longTextPart(long)] }]
  }
  if (typeof input === 'string') {
    if (input === '') refuse('input', 'must not be empty')
    return [...before, { role: 'user', index: 0, parts: [{ type: 'text', text: input }] }]
  }
  const items = given(input) ? input : []
  if (!Array.isArray(items)) refuse('input', 'must be a string or an array of items')
  const messages = decodeInput(items, options)
  // A stored prompt of OpenAI's has the input in it.
  if (messages.length === 0 && !options.isPartial && !given(body['prompt'])) {
    refuse('input', 'must be a non-empty string or an array of items with content')
  }
  return [...before, ...messages]
}

function instructionsOf(body: JsonObject): Message[] {
  const long = longTextOf(body, 'instructions')
  if (long !== null) return [{ role: 'system', index: 0, parts: [longTextPart(long)] }]
  const { instructions } = body
  if (!given(instructions)) return []
  const said = string(instructions, 'instructions')
  return said === '' ? [] : [{ role: 'system', index: 0, parts: [{ type: 'text', text: said }] }]
}

/** Checks a field that the canon has no place for. */
function kept(key: string, check: (value: JsonValue, path: string) => unknown): [string, Rule] {
  return [
    key,
    (value, request) => {
      check(value, key)
      request.rest[key] = value
    },
  ]
}

const RULES: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ['background', (v) => void boolean(v, 'background')],
  // Codex tells OpenAI about itself with it; no other provider could use it.
  ['client_metadata', (v) => void object(v, 'client_metadata')],
  ['include', include],
  ['max_output_tokens', (v, r) => void (r.maxOutputTokens = integer(v, 'max_output_tokens', 1))],
  ['parallel_tool_calls', (v, r) => void (r.parallelToolCalls = boolean(v, 'parallel_tool_calls'))],
  ['prompt', prompt],
  ['reasoning', reasoning],
  ['safety_identifier', (v, r) => void (r.userId = text(v, 'safety_identifier', 128))],
  ['service_tier', (v, r) => void (r.serviceTier = oneOf(v, 'service_tier', SERVICE_TIERS))],
  ['store', (v) => void boolean(v, 'store')],
  ['stream_options', streamOptions],
  ['temperature', (v, r) => void (r.temperature = number(v, 'temperature', 0, 2))],
  ['text', decodeText],
  ['tool_choice', decodeToolChoice],
  ['top_logprobs', topLogprobs],
  ['top_p', (v, r) => void (r.topP = number(v, 'top_p', 0, 1))],
  ['truncation', truncation],
  ['user', (v, r) => void (r.userId ??= string(v, 'user'))],
  kept('context_management', (v, path) => array(v, path, MAX_INCLUDES)),
  kept('max_tool_calls', (v, path) => integer(v, path, 1)),
  kept('metadata', metadataPairs),
  kept('moderation', finiteObject),
  kept('prompt_cache_key', string),
  kept('prompt_cache_options', finiteObject),
  kept('prompt_cache_retention', string),
])

/** What no upstream is asked for: it comes first, since the input may rest on it. */
function refuseUnsupported({ background, conversation }: JsonObject): void {
  // An answer that nobody waits for would have to outlive the request.
  if (background === true) {
    refuse('background', 'is not supported: leave it out, and stream long answers')
  }
  // OpenAI's conversations are stored under the operator's account, which clients share.
  if (given(conversation)) {
    refuse('conversation', 'is not supported: use previous_response_id, or send the items as input')
  }
}

function prompt(value: JsonValue, request: ChatRequest): void {
  finiteObject(value, 'prompt')
  const refusal = 'prompt names one that only OpenAI has. Send its text as instructions and input'
  native(request, { path: 'prompt', refusal })
}

function include(value: JsonValue, request: ChatRequest): void {
  for (const [at, item] of array(value, 'include', MAX_INCLUDES).entries()) {
    const name = string(item, `include[${at}]`)
    if (name === SEALED) request.includeReasoningState = true
    if (name === LOGPROBS) request.logprobs = true
  }
}

function topLogprobs(value: JsonValue, request: ChatRequest): void {
  const count = integer(value, 'top_logprobs', 0, 20)
  if (count > 0) request.topLogprobs = count
}

/** A summary is shown wherever the model tells its reasoning, so asking for one is never lost. */
function reasoning(value: JsonValue, request: ChatRequest): void {
  const { effort, summary, generate_summary: older, ...rest } = object(value, 'reasoning')
  if (given(effort)) request.reasoningEffort = oneOf(effort, 'reasoning.effort', EFFORTS)
  const words = ['auto', 'concise', 'detailed', 'none'] as const
  if (given(summary)) oneOf(summary, 'reasoning.summary', words)
  if (given(older)) oneOf(older, 'reasoning.generate_summary', words)
  const others = Object.entries(rest).filter(([, member]) => given(member))
  if (others.length > 0) request.rest['reasoning'] = finiteObject(rest, 'reasoning')
}

function streamOptions(value: JsonValue): void {
  const { include_obfuscation: obfuscation } = object(value, 'stream_options')
  if (given(obfuscation)) boolean(obfuscation, 'stream_options.include_obfuscation')
}

/** `disabled` is what happens anyway. */
function truncation(value: JsonValue, request: ChatRequest): void {
  if (oneOf(value, 'truncation', ['auto', 'disabled']) === 'auto')
    request.rest['truncation'] = value
}
