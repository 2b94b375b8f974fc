/**
 * The rule book of a chat-completions request: one entry for every field the format knows.
 * Knows no upstream; never changes the body that it reads.
 *
 * Source: OpenAI API reference, "Create chat completion", and the SDK's types, read 2026-11-20.
 */
import { EFFORTS } from '../../../chat/effort.js'
import { isObject, type JsonObject, type JsonValue, objectOf } from '../../../chat/json.js'
import type { ChatRequest } from '../../../chat/request.js'
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
import { decodeMessages } from './request/decode-messages.js'
import {
  decodeFunctionCall,
  decodeFunctions,
  decodeResponseFormat,
  decodeToolChoice,
  decodeTools,
} from './request/decode-tools.js'
import { SERVICE_TIERS } from '../shared/names.js'

/** Checks one field and stores it. */
type Rule = (value: JsonValue, request: ChatRequest) => void

/** Reads a whole request. Throws `malformed_request` naming the field that breaks a rule. */
export function decodeRequest(body: JsonObject): ChatRequest {
  const request: ChatRequest = {
    model: modelOf(body),
    messages: [],
    stream: streamOf(body),
    includeUsage: false,
    tools: [],
    rest: {},
  }
  request.messages = decodeMessages(body['messages'])
  readTools(body, request)
  for (const key of Object.keys(body)) {
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

/** Tools first: the choice of one is checked against them. */
function readTools(body: JsonObject, request: ChatRequest): void {
  const { tools, functions, tool_choice: choice, function_call: call } = body
  if (given(tools)) request.tools = decodeTools(tools)
  if (given(choice)) request.toolChoice = decodeToolChoice(choice, request.tools)
  if (given(functions)) {
    if (given(tools)) refuse('functions', 'cannot be combined with tools')
    request.tools = decodeFunctions(functions)
    request.legacyFunctions = true
  }
  if (!given(call)) return
  if (given(choice)) refuse('function_call', 'cannot be combined with tool_choice')
  request.toolChoice = decodeFunctionCall(call, request.tools)
}

/** Fields that have been read already. */
const done: Rule = () => undefined

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
  ['model', done],
  ['messages', done],
  ['stream', done],
  ['tools', done],
  ['tool_choice', done],
  ['functions', done],
  ['function_call', done],
  ['temperature', (v, r) => void (r.temperature = number(v, 'temperature', 0, 2))],
  ['top_p', (v, r) => void (r.topP = number(v, 'top_p', 0, 1))],
  ['max_tokens', (v, r) => void (r.maxOutputTokens ??= integer(v, 'max_tokens', 1))],
  ['max_completion_tokens', (v, r) => void (r.maxOutputTokens = maxCompletion(v))],
  ['stop', stop],
  ['n', (v, r) => void (r.candidates = integer(v, 'n', 1, 128))],
  ['seed', (v, r) => void (r.seed = integer(v, 'seed', -(2 ** 63), 2 ** 63))],
  ['frequency_penalty', (v, r) => void (r.frequencyPenalty = penalty(v, 'frequency_penalty'))],
  ['presence_penalty', (v, r) => void (r.presencePenalty = penalty(v, 'presence_penalty'))],
  ['logprobs', (v, r) => void (r.logprobs = boolean(v, 'logprobs'))],
  ['top_logprobs', (v, r) => void (r.topLogprobs = integer(v, 'top_logprobs', 0, 20))],
  ['parallel_tool_calls', (v, r) => void (r.parallelToolCalls = boolean(v, 'parallel_tool_calls'))],
  ['response_format', (v, r) => void (r.responseFormat = decodeResponseFormat(v))],
  ['reasoning_effort', (v, r) => void (r.reasoningEffort = oneOf(v, 'reasoning_effort', EFFORTS))],
  ['reasoning', reasoning],
  ['verbosity', (v, r) => void (r.verbosity = oneOf(v, 'verbosity', ['low', 'medium', 'high']))],
  ['stream_options', streamOptions],
  ['user', (v, r) => void (r.userId ??= string(v, 'user'))],
  ['safety_identifier', (v, r) => void (r.userId = text(v, 'safety_identifier', 128))],
  ['service_tier', (v, r) => void (r.serviceTier = oneOf(v, 'service_tier', SERVICE_TIERS))],
  kept('logit_bias', logitBias),
  kept('metadata', metadataPairs),
  kept('modalities', modalities),
  kept('audio', object),
  kept('prediction', finiteObject),
  kept('web_search_options', finiteObject),
  kept('moderation', finiteObject),
  kept('store', boolean),
  kept('prompt_cache_key', string),
  kept('prompt_cache_retention', string),
  kept('prompt_cache_options', finiteObject),
])

function penalty(value: JsonValue, path: string): number {
  return number(value, path, -2, 2)
}

function maxCompletion(value: JsonValue): number {
  return integer(value, 'max_completion_tokens', 1)
}

function stop(value: JsonValue, request: ChatRequest): void {
  if (typeof value === 'string') {
    request.stop = [value]
    return
  }
  const rule = 'must be a string or an array of at most 4 strings'
  if (!Array.isArray(value) || value.length > 4) refuse('stop', rule)
  if (value.length === 0) return
  request.stop = value.map((item, at) => string(item, `stop[${at}]`))
}

/**
 * The object of OpenAI's other endpoint and of OpenRouter. Its effort means the same as the flat
 * field, which wins; what else it says is kept for an encoder to report.
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
  if (!isObject(value)) refuse('logit_bias', 'must be an object')
  for (const [token, bias] of Object.entries(value)) {
    const path = /^\d{1,10}$/.test(token) ? `logit_bias.${token}` : 'logit_bias'
    if (path === 'logit_bias') refuse(path, 'must have token numbers as its keys')
    number(bias, path, -100, 100)
  }
}

function modalities(value: JsonValue): void {
  array(value, 'modalities', 8).forEach((item, at) => {
    oneOf(item, `modalities[${at}]`, ['text', 'audio'])
  })
}
