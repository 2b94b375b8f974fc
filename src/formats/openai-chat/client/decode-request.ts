/**
 * Decodes a chat-completions request: one rule for every field of the format. The body is never modified.
 *
 * Source: OpenAI API reference, "Create chat completion", and the SDK's types, read 2026-11-20.
 */
import { EFFORTS, type ChatRequest } from '../../chat/request.js'
import { isObject, type JsonObject, type JsonValue, objectOf } from '../../chat/json.js'
import { addHosted, hostedToolName } from '../../chat/hosted-tools.js'
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
import { decodeMessages } from './decode-messages.js'
import {
  decodeFunctionCall,
  decodeFunctions,
  decodeResponseFormat,
  decodeToolChoice,
  decodeTools,
} from './decode-tools.js'
import { FIELDS } from '../fields.js'

const { array, boolean, finiteObject, given, number, object, oneOf } = check

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
  request.messages = decodeMessages(body['messages'])
  decodeToolFields(body, request)
  applyRules(body, RULES, request)
  return request
}

/** Tools come before the tool choice, which is checked against them. */
function decodeToolFields(body: JsonObject, request: ChatRequest): void {
  const { tools, functions, tool_choice: choice, function_call: call } = body
  if (given(tools)) request.tools = decodeTools(tools)
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

function modalities(value: JsonValue): void {
  array(value, 'modalities', 8).forEach((item, at) => {
    oneOf(item, `modalities[${at}]`, ['text', 'audio'])
  })
}
