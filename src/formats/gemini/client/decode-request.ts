/**
 * Decodes a generateContent request: one rule for every field of the format. Never changes the body.
 * The model and the stream flag are in the path.
 *
 * Source: ai.google.dev/api/generate-content and the types of @google/genai 2, read 2026-11-20.
 */
import { addHosted, addUnseen, hostedToolName, isHarmless } from '../../chat/hosted-tools.js'
import { isClosed } from '../../chat/json-schema.js'
import { type JsonObject, type JsonValue, isObject } from '../../../base/json.js'
import type {
  AssistantPart,
  ChatRequest,
  MediaSetting,
  Message,
  UserPart,
  ReasoningEffort,
  ResponseFormat,
  Tool,
  ToolChoice,
} from '../../chat/request.js'
import { effortOfGeminiBudget } from '../../chat/thinking-budgets.js'
import type { Endpoint } from '../../dialect.js'
import {
  boolean,
  given,
  object,
  refuse,
  string,
  text,
  finiteObject,
  integer,
} from '../../wire/json/check-fields.js'
import { checkModelId } from '../../wire/request-fields.js'
import { readField } from '../../wire/scalar-fields.js'
import { toolName } from '../../wire/tool-names.js'
import { CONFIG, FIELDS } from '../fields.js'
import { decodeContents, decodeSystem } from './decode-messages.js'
import { list, message, memberPath, enumValue, numeric } from './proto-fields.js'

const MAX_MODALITIES = 8
const MAX_FORMATS = 8
const JSON_TYPE = 'application/json'

/** Fields that are decoded together, after the others. */
const FORMAT = ['responseMimeType', 'responseSchema', 'responseJsonSchema', '_responseJsonSchema']

/**
 * Decodes `generationConfig` into the request.
 *
 * Decodes `generationConfig`: one rule for every field of the format. Fields without a canonical form are
 * recorded by their path, so that encoders can report their loss.
 *
 * Source: ai.google.dev/api/generate-content#generationconfig and the types of @google/genai 2, read
 * 2026-11-20.
 */
function decodeConfig(value: JsonValue, path: string, request: ChatRequest): void {
  const config = message(value, path)
  for (const [key, inner] of Object.entries(config)) {
    if (!given(inner) || FORMAT.includes(key)) continue
    const at = `${path}.${key}`
    const rule = CONFIG_RULES.get(key)
    if (rule === undefined) loseNative(request, at)
    else rule(inner, request, at)
  }
  const format = formatOf(config, path, request)
  if (format !== undefined) request.responseFormat = format
}

/** The rules of the scalar fields whose path matches, by the last name of the path. */
function scalarRules(matches: (wire: string) => boolean): [string, Rule][] {
  return FIELDS.flatMap((field): [string, Rule][] => {
    const { wire, check } = field
    if (wire === null || check === null || !matches(wire)) return []
    const name = wire.slice(wire.lastIndexOf('.') + 1)
    return [[name, (value, request, path) => readField(field, value, request, path)]]
  })
}

/** The rule of a field without a canonical form: checks it and records it as native. */
function nativeOnly(check: (value: JsonValue, path: string) => unknown): Rule {
  return (value, request, path) => {
    check(value, path)
    loseNative(request, path)
  }
}

const CONFIG_RULES: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ...scalarRules((wire) => wire.startsWith(`${CONFIG}.`)),
  ['thinkingConfig', thinkingConfig],
  ['responseModalities', responseModalities],
  ['mediaResolution', mediaResolution],
  ['speechConfig', mediaSetting('speechConfig', finiteObject)],
  ['imageConfig', mediaSetting('imageConfig', finiteObject)],
  ['audioTranscriptionConfig', mediaSetting('audioTranscriptionConfig', finiteObject)],
  ['responseFormat', mediaSetting('responseFormat', (value, path) => list(value, path, MAX_FORMATS))],
  ['audioTimestamp', nativeOnly(boolean)],
  ['enableAffectiveDialog', nativeOnly(boolean)],
  ['enableEnhancedCivicAnswers', nativeOnly(boolean)],
  ['routingConfig', nativeOnly(object)],
  ['modelSelectionConfig', nativeOnly(object)],
])

/** Every upstream supports text; any other modality is native. */
function responseModalities(value: JsonValue, request: ChatRequest, path: string): void {
  const kinds = list(value, path, MAX_MODALITIES).map((kind, at) => enumValue(kind, `${path}[${at}]`))
  if (kinds.some((kind) => kind !== 'TEXT' && kind !== 'MODALITY_UNSPECIFIED')) {
    loseNative(request, path)
  }
  if (kinds.length > 0) request.replyModalities = kinds.map((kind) => kind.toLowerCase())
}

/** Only models for pictures and sound have them. */
function mediaSetting(name: MediaSetting, check: (value: JsonValue, path: string) => JsonValue): Rule {
  return (value, request, path) => {
    request.mediaSettings = { ...request.mediaSettings, [name]: check(value, path) }
    loseNative(request, path)
  }
}

const DETAILS: Readonly<Record<string, 'low' | 'high'>> = {
  MEDIA_RESOLUTION_LOW: 'low',
  MEDIA_RESOLUTION_HIGH: 'high',
}

/** Sets the detail of all images, which other formats state per image. The messages are already decoded. */
function mediaResolution(value: JsonValue, request: ChatRequest, path: string): void {
  const detail = DETAILS[enumValue(value, path)]
  if (detail === undefined) return
  for (const { role, parts } of request.messages) {
    if (role !== 'user' && role !== 'tool') continue
    for (const part of parts) if (part.type === 'image') part.detail = detail
  }
}

const LEVELS: Readonly<Record<string, ReasoningEffort>> = {
  MINIMAL: 'minimal',
  LOW: 'low',
  MEDIUM: 'medium',
  HIGH: 'high',
  XHIGH: 'xhigh',
}

function thinkingConfig(value: JsonValue, request: ChatRequest, path: string): void {
  const { thinkingLevel, thinkingBudget, includeThoughts, ...others } = message(value, path)
  if (given(includeThoughts) && boolean(includeThoughts, `${path}.includeThoughts`)) {
    request.hidesThoughts = false
  }
  for (const [key, inner] of Object.entries(others)) {
    if (given(inner)) loseNative(request, `${path}.${key}`)
  }
  const level = given(thinkingLevel) ? enumValue(thinkingLevel, `${path}.thinkingLevel`) : ''
  const named = level !== '' && level !== 'THINKING_LEVEL_UNSPECIFIED'
  if (named && given(thinkingBudget)) {
    refuse(path, 'must not have both thinkingLevel and thinkingBudget')
  }
  if (named) {
    const effort = Object.hasOwn(LEVELS, level) ? LEVELS[level] : undefined
    const rule = `must be one of ${Object.keys(LEVELS).join(', ')}`
    request.reasoningEffort = effort ?? refuse(`${path}.thinkingLevel`, rule)
  }
  if (!given(thinkingBudget)) return
  const tokens = integer(numeric(thinkingBudget), `${path}.thinkingBudget`, { min: -1 })
  // -1 lets the model choose its budget.
  if (tokens === -1) return
  request.reasoningEffort = effortOfGeminiBudget(tokens)
}

function formatOf(config: JsonObject, path: string, request: ChatRequest): ResponseFormat | undefined {
  const { responseMimeType, responseSchema } = config
  const json = config['responseJsonSchema'] ?? config['_responseJsonSchema']
  if (given(responseSchema) && given(json)) {
    refuse(path, 'must not have both responseSchema and responseJsonSchema')
  }
  const type = given(responseMimeType)
    ? string(responseMimeType, `${path}.responseMimeType`).toLowerCase()
    : ''
  // `text/x.enum`: an enum value without quotes, which no other provider supports.
  if (type !== '' && type !== 'text/plain' && type !== JSON_TYPE) {
    loseNative(request, `${path}.responseMimeType`)
    return undefined
  }
  const schema = given(responseSchema)
    ? jsonSchema(responseSchema, `${path}.responseSchema`)
    : given(json)
      ? finiteObject(json, `${path}.responseJsonSchema`)
      : null
  if (schema !== null) {
    const strict = isClosed(schema) ? { strict: true } : {}
    return { type: 'json-schema', name: 'response', schema, ...strict }
  }
  return type === JSON_TYPE ? { type: 'json-object' } : undefined
}

const MAX_SETTINGS = 64
const MAX_LABELS = 64

/** The model's name from the path. */
export function modelOf({ model = '' }: Endpoint): string {
  const name = model.startsWith('models/') ? model.slice('models/'.length) : model
  if (name === '') refuse('model', 'must be in the path, as in /v1beta/models/{model}:generateContent')
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
  const instruction = given(system) ? decodeSystem(system, memberPath(path, 'systemInstruction')) : null
  const { messages, unknown, unpaired } = decodeContents(fields['contents'], path, instruction !== null)
  request.messages = instruction === null ? messages : [instruction, ...messages]
  if (messages.some(hasFileUri)) addUnseen(request, 'fileData.fileUri')
  for (const each of unknown) loseNative(request, each)
  if (unpaired !== null) (request.native ??= []).push(unpaired)
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
  [CONFIG, (value, request, path) => decodeConfig(value, path, request)],
  ['safetySettings', safetySettings],
  ['cachedContent', cachedContent],
  ['labels', labels],
  ...scalarRules((wire) => !wire.includes('.')),
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

/** Other upstreams do not receive the field, and it is reported as lost. */
function loseNative(request: ChatRequest, path: string): void {
  request.native ??= []
  request.native.push({ path })
}

/** Other upstreams cannot serve the request. The error message is the path followed by `why`. */
function refuseNative(request: ChatRequest, path: string, why: string): void {
  request.native ??= []
  const refusal = `${path}: ${why}. Leave it out, or use a model that a Gemini upstream serves.`
  request.native.push({ path, refusal })
}

// Decodes `tools` and `toolConfig`: functions in Google's schema language or in JSON Schema, tools that
// Google runs itself, and the tool choice.

/** The limit of the other dialects; Google's own is 512. */
const MAX_TOOLS = 1_024

/** Members of a function that are decoded, or that are ignored because they do not affect the reply. */
const FUNCTION = new Set([
  'name',
  'description',
  'parameters',
  'parametersJsonSchema',
  'response',
  'responseJsonSchema',
  'behavior',
])

/** The functions, and the paths of tools that only Google can run. */
interface Tools {
  readonly functions: Tool[]
  readonly hosted: readonly string[]
  /** Paths of unknown members. */
  readonly unknown: readonly string[]
}

/** Decodes `tools`. */
function decodeTools(value: JsonValue | undefined, path: string): Tools {
  const functions: Tool[] = []
  const hosted: string[] = []
  const unknown: string[] = []
  const names = new Set<string>()
  list(value, path, MAX_TOOLS).forEach((entry, at) => {
    const here = Array.isArray(value) ? `${path}[${at}]` : path
    const { functionDeclarations, ...others } = message(entry, here)
    const declared = list(functionDeclarations, `${here}.functionDeclarations`, MAX_TOOLS)
    declared.forEach((item, nth) => {
      const itemPath = `${here}.functionDeclarations[${nth}]`
      const tool = declaration(item, itemPath, unknown)
      if (names.has(tool.name))
        refuse(`${itemPath}.name`, 'must differ from the names of the other functions')
      names.add(tool.name)
      functions.push(tool)
    })
    for (const [name, tool] of Object.entries(others)) {
      if (given(tool)) hosted.push(`${here}.${name}`)
    }
  })
  if (functions.length > MAX_TOOLS) refuse(path, `must have at most ${MAX_TOOLS} functions`)
  return { functions, hosted, unknown }
}

function declaration(value: JsonValue, path: string, unknown: string[]): Tool {
  const item = message(value, path)
  const tool: Tool = { name: toolName(item['name'], `${path}.name`) }
  const { description, parameters, parametersJsonSchema } = item
  if (given(description)) tool.description = string(description, `${path}.description`)
  if (given(parameters) && given(parametersJsonSchema)) {
    refuse(path, 'must not have both parameters and parametersJsonSchema')
  }
  const schema = `${path}.parametersJsonSchema`
  if (given(parameters)) tool.parameters = jsonSchema(parameters, `${path}.parameters`)
  else if (given(parametersJsonSchema)) tool.parameters = finiteObject(parametersJsonSchema, schema)
  for (const key in item) if (!FUNCTION.has(key)) unknown.push(`${path}.${key}`)
  return tool
}

/**
 * Decodes `toolConfig`; undefined if it chooses nothing. Throws `malformed_request` if a name is not a
 * declared function, unless the request has Google's own tools, whose functions are not declared.
 */
function decodeToolChoice(
  value: JsonValue,
  path: string,
  { functions, hosted }: Tools,
): ToolChoice | undefined {
  const config = message(value, path)
  if (!given(config['functionCallingConfig'])) return undefined
  const at = `${path}.functionCallingConfig`
  const calling = message(config['functionCallingConfig'], at)
  const names = list(calling['allowedFunctionNames'], `${at}.allowedFunctionNames`, MAX_TOOLS).map(
    (name, nth) => toolName(name, `${at}.allowedFunctionNames[${nth}]`),
  )
  if (hosted.length === 0) {
    const known = new Set(functions.map(({ name }) => name))
    const unknown = names.findIndex((name) => !known.has(name))
    if (unknown !== -1) {
      refuse(`${at}.allowedFunctionNames[${unknown}]`, 'names a function that is not in tools')
    }
  }
  return chosen(calling, at, { names, functionCount: functions.length })
}

interface Choosable {
  /** The allowed names; empty for all functions. */
  readonly names: string[]
  readonly functionCount: number
}

function chosen(
  calling: JsonObject,
  path: string,
  { names, functionCount }: Choosable,
): ToolChoice | undefined {
  const mode = given(calling['mode']) ? enumValue(calling['mode'], `${path}.mode`) : ''
  switch (mode) {
    case '':
    case 'MODE_UNSPECIFIED':
      return undefined
    case 'NONE':
      return { mode: 'none' }
    case 'AUTO':
      return { mode: 'auto' }
    case 'VALIDATED':
      return names.length === 0 ? { mode: 'auto' } : { mode: 'allowed', required: false, names }
    case 'ANY': {
      // With only Google's own tools there is no function to call.
      if (functionCount === 0) return undefined
      const [name] = names
      if (name === undefined) return { mode: 'required' }
      return names.length === 1 ? { mode: 'named', name } : { mode: 'allowed', required: true, names }
    }
    default:
      return refuse(`${path}.mode`, 'must be one of AUTO, ANY, NONE, VALIDATED')
  }
}

/** The paths of members of `toolConfig` that only Gemini upstreams accept. */
function unknownConfig(value: JsonValue, path: string): string[] {
  const others = Object.entries(message(value, path)).filter(
    ([key, inner]) => given(inner) && !CHOICE_KEYS.has(key),
  )
  return others.map(([key]) => memberPath(path, key))
}

/** `includeServerSideToolInvocations` only affects the visibility of Google's own calls. */
const CHOICE_KEYS = new Set(['functionCallingConfig', 'includeServerSideToolInvocations'])

/** Keywords without equivalent in JSON Schema that do not affect validation. */
const IGNORED: ReadonlySet<string> = new Set(['propertyOrdering', 'example', 'nullable'])

const COUNTS: ReadonlySet<string> = new Set([
  'minItems',
  'maxItems',
  'minLength',
  'maxLength',
  'minProperties',
  'maxProperties',
])

/**
 * Google's schema language (`parameters`, `responseSchema`) as JSON Schema: types in lower case, `nullable`
 * as a type, counts as numbers; keywords of both languages are kept. Linear in the size of the schema.
 * Throws `malformed_request` if the value is not an object or has numbers that are not finite.
 *
 * Source: ai.google.dev/api/caching#Schema, read 2026-11-20.
 */
function jsonSchema(value: JsonValue | undefined, path: string): JsonObject {
  return converted(finiteObject(value, path), path)
}

function converted(value: JsonValue | undefined, path: string): JsonObject {
  const schema = message(value, path)
  const out: JsonObject = {}
  for (const [key, inner] of Object.entries(schema)) {
    if (inner === null || inner === undefined || IGNORED.has(key)) continue
    if (key === 'type') out[key] = typeOf(inner, schema['nullable'] === true)
    else if (key === 'enum') out[key] = enumOf(inner, schema['nullable'] === true)
    else if (COUNTS.has(key)) out[key] = numeric(inner)
    else out[keywordOf(key)] = nested(key, inner, path)
  }
  return out
}

/** The JSON Schema keyword: Google's `ref` and `defs` are `$ref` and `$defs`. */
function keywordOf(key: string): string {
  return key === 'ref' || key === 'defs' ? `$${key}` : key
}

function nested(key: string, value: JsonValue, path: string): JsonValue {
  switch (key) {
    case 'properties':
    case 'defs':
    case '$defs':
    case 'definitions':
      return isObject(value)
        ? Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, inSchema(inner, path)]))
        : value
    case 'items':
    case 'additionalProperties':
      return inSchema(value, path)
    case 'anyOf':
    case 'oneOf':
    case 'allOf':
    case 'prefixItems':
      return Array.isArray(value) ? value.map((inner) => inSchema(inner, path)) : value
    default:
      return value
  }
}

function inSchema(value: JsonValue | undefined, path: string): JsonValue {
  return isObject(value) ? converted(value, path) : (value ?? null)
}

/** The type in lower case. Newer APIs also accept JSON Schema's list of types. */
function typeOf(value: JsonValue, nullable: boolean): JsonValue {
  const types = (Array.isArray(value) ? value : [value]).map((type) =>
    typeof type === 'string' ? type.toLowerCase() : type,
  )
  if (nullable && !types.includes('null')) types.push('null')
  return types.length === 1 ? (types[0] ?? null) : types
}

/** The allowed values, with null if the value is nullable. */
function enumOf(value: JsonValue, nullable: boolean): JsonValue {
  if (!Array.isArray(value) || !nullable || value.includes(null)) return value
  return [...value, null]
}
