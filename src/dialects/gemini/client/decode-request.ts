/**
 * Decodes a generateContent request: one rule for every field of the format. Never changes the body.
 * The model and the stream flag are in the path.
 *
 * Source: ai.google.dev/api/generate-content and the types of @google/genai 2, read 2026-11-20.
 */
import {
  addHosted,
  addUnseen,
  hostedToolName,
  isHarmless,
  tierOption,
} from '../../../chat/hosted-tools.js'
import type { JsonObject, JsonValue } from '../../../chat/json.js'
import type { AssistantPart, ChatRequest, Message, UserPart } from '../../../chat/request.js'
import {
  boolean,
  given,
  object,
  oneOf,
  refuse,
  string,
  text,
} from '../../../wire/json/check-fields.js'
import { checkModelId } from '../../../wire/request-fields.js'
import type { Endpoint } from '../../dialect.js'
import { decodeConfig } from './request/decode-config.js'
import { decodeContents, decodeSystem } from './request/decode-messages.js'
import { decodeToolChoice, decodeTools, unknownConfig } from './request/decode-tools.js'
import { list, message, memberPath, enumValue } from './request/proto-fields.js'
import { loseNative, refuseNative } from './request/native-fields.js'

const MAX_SETTINGS = 64
const MAX_LABELS = 64

/** Google's names of service tiers, and OpenAI's. */
const TIERS: Readonly<Record<string, string>> = {
  STANDARD: 'default',
  FLEX: 'flex',
  PRIORITY: 'priority',
}

/** The model's name from the path. */
export function modelOf({ model = '' }: Endpoint): string {
  const name = model.startsWith('models/') ? model.slice('models/'.length) : model
  if (name === '')
    refuse('model', 'must be in the path, as in /v1beta/models/{model}:generateContent')
  return checkModelId(name)
}

/** Decodes a whole request. Throws `malformed_request` naming the field that breaks a rule. */
export function decodeRequest(body: JsonObject, endpoint: Endpoint): ChatRequest {
  return requestOf(body, endpoint, '')
}

/**
 * Decodes a countTokens request: only `contents`, or a whole generateContent request in
 * `generateContentRequest`. Vertex puts the other members beside `contents`.
 */
export function decodeCount(body: JsonObject, endpoint: Endpoint): ChatRequest {
  const { generateContentRequest: inner, ...beside } = message(body, '')
  if (!given(inner)) return requestOf(beside, endpoint, '')
  if (given(beside['contents'])) refuse('contents', 'must not be used with generateContentRequest')
  const path = 'generateContentRequest'
  const { model, ...request } = message(inner, path)
  if (given(model)) string(model, `${path}.model`)
  return requestOf(request, endpoint, path)
}

function requestOf(body: JsonObject, endpoint: Endpoint, path: string): ChatRequest {
  const fields = message(body, path)
  const stream = endpoint.stream === true
  const request: ChatRequest = {
    model: modelOf(endpoint),
    messages: [],
    stream,
    // Every stream of the format includes usage.
    includeUsage: stream,
    hidesThoughts: true,
    tools: [],
    rest: {},
  }
  const system = fields['systemInstruction']
  const instruction = given(system)
    ? decodeSystem(system, memberPath(path, 'systemInstruction'))
    : null
  const { messages, unknown } = decodeContents(fields['contents'], path)
  request.messages = instruction === null ? messages : [instruction, ...messages]
  if (messages.some(hasFileUri)) addUnseen(request, 'fileData.fileUri')
  for (const each of unknown) loseNative(request, each)
  readTools(fields, request, path)
  for (const [key, value] of Object.entries(fields)) {
    if (!given(value) || READ.has(key)) continue
    const at = memberPath(path, key)
    const rule = RULES.get(key)
    // As a property name it would set the object's prototype.
    if (key === '__proto__') refuse(at, 'is not the name of a field')
    if (rule === undefined) loseNative(request, at)
    else rule(value, request, at)
  }
  return request
}

/** Google reads any file, page or video at the address, also if the client states another media type. */
function hasFileUri(message: Message): boolean {
  return (message.parts as readonly (UserPart | AssistantPart)[]).some(
    (part) => (part.type === 'image' || part.type === 'file') && part.source.kind !== 'base64',
  )
}

/** Decodes the tools, then `toolConfig`, which is checked against them. */
function readTools(fields: JsonObject, request: ChatRequest, path: string): void {
  const tools = decodeTools(fields['tools'], memberPath(path, 'tools'))
  request.tools = tools.functions
  for (const each of tools.hosted) {
    refuseNative(request, each, 'Google runs this tool')
    const name = hostedToolName(each.slice(each.lastIndexOf('.') + 1))
    if (!isHarmless(name)) addHosted(request, { name, path: each })
  }
  for (const each of tools.unknown) loseNative(request, each)
  const config = fields['toolConfig']
  if (!given(config)) return
  const at = memberPath(path, 'toolConfig')
  const choice = decodeToolChoice(config, at, tools)
  if (choice !== undefined) request.toolChoice = choice
  for (const each of unknownConfig(config, at)) loseNative(request, each)
}

/** Fields that are decoded before the rules. `model` repeats the path in some clients. */
const READ = new Set(['contents', 'model', 'systemInstruction', 'toolConfig', 'tools'])

/** Checks one field and stores it. */
type Rule = (value: JsonValue, request: ChatRequest, path: string) => void

const RULES: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ['generationConfig', (value, request, path) => decodeConfig(value, path, request)],
  ['safetySettings', safetySettings],
  ['cachedContent', cachedContent],
  ['labels', labels],
  ['serviceTier', serviceTier],
  ['store', store],
  ['continuationToken', cachedContent],
])

/** Allows Google to log the request. Other providers configure logging elsewhere. */
function store(value: JsonValue, request: ChatRequest, path: string): void {
  if (boolean(value, path)) loseNative(request, path)
}

/** Other providers have filters of their own, which no threshold changes: also `OFF` is lost. */
function safetySettings(value: JsonValue, request: ChatRequest, path: string): void {
  const settings = list(value, path, MAX_SETTINGS)
  for (const [at, entry] of settings.entries()) {
    const setting = message(entry, `${path}[${at}]`)
    enumValue(setting['category'], `${path}[${at}].category`)
    enumValue(setting['threshold'], `${path}[${at}].threshold`)
  }
  if (settings.length > 0) loseNative(request, path)
}

/** Content that Google stores: without it another model would reply to a different prompt. */
function cachedContent(value: JsonValue, request: ChatRequest, path: string): void {
  text(value, path, 16_384)
  refuseNative(request, path, 'it refers to content that Google stores')
  addUnseen(request, path)
}

function labels(value: JsonValue, request: ChatRequest, path: string): void {
  const entries = Object.entries(object(value, path))
  if (entries.length > MAX_LABELS) refuse(path, `must have at most ${MAX_LABELS} labels`)
  for (const [key, label] of entries) string(label, `${path}.${key}`)
  if (entries.length > 0) loseNative(request, path)
}

function serviceTier(value: JsonValue, request: ChatRequest, path: string): void {
  const name = oneOf(enumValue(value, path), path, [
    ...Object.keys(TIERS),
    'SERVICE_TIER_UNSPECIFIED',
  ])
  const tier = TIERS[name]
  if (tier === undefined) return
  request.serviceTier = tier
  addHosted(request, tierOption(tier, path))
}
