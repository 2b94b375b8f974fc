/**
 * The key of a request in the exact cache: a hash of what decides the reply. Equal requests of different
 * client formats have one key, because it is made from the canonical request. What the canonical request does
 * not contain (fields that only the client's own format has) is added as the client sent it.
 */
import { createHash, hash, type Hash } from 'node:crypto'
import type { Config, RouteConfig, UpstreamConfig } from '../config/config.js'
import { isObject, stringOf, type JsonObject, type JsonValue } from '../base/json.js'
import type { ModelFacts } from '../formats/chat/model-facts.js'
import type {
  AssistantPart,
  ChatRequest,
  Message,
  Tool,
  ToolCall,
  UserPart,
} from '../formats/chat/request.js'
import type { WireFormat } from '../formats/dialect.js'
import { parseExact, stringifyExact } from '../formats/wire/json/exact-numbers.js'
import type { Steps } from '../base/steps.js'
import { isTextOrMembers, memberOf, membersOf, type Members } from './request-members.js'

/** A change of the key's form or of stored replies makes earlier entries unreachable. */
const VERSION = 1
/** The `anthropic-version` of all SDKs and of requests in other formats. */
const USUAL_VERSION = '2023-06-01'
/** Characters that are hashed in one step, about 2 ms. */
const STEP_CHARS = 1024 * 1024

/** What a key is made of. */
export interface KeyParts {
  readonly request: ChatRequest
  /** The client's format and body, for fields that no other format has. */
  readonly wire: WireFormat
  readonly body: JsonObject
  /** The parameters of the client's query that an upstream may get; often empty. */
  readonly query: string
  /** Facts of the requested model, for its defaults. */
  readonly facts: () => ModelFacts
  /** Facts of the models that the route may ask: requests to upstreams are made with them. */
  readonly targetFacts: readonly ModelFacts[]
  /** As `routeContent`. */
  readonly route: string
  /** The version of the prices. */
  readonly priceVersion: string
  /** Whose requests the entry may answer, and their id; empty for everyone. */
  readonly scope: RouteCacheScope
  readonly scopeId: string
  /** Names of the guardrails that judge the request and its reply: `apply_to` depends on the key. */
  readonly guardrails: readonly string[]
}

type RouteCacheScope = NonNullable<RouteConfig['cache']>['scope']

/** The key, in steps for a large request. */
export function* keySteps(parts: KeyParts): Steps<string> {
  const { request, query, route, priceVersion, scope, scopeId, guardrails } = parts
  const digest = new Digest()
  digest.add([VERSION, scope, scopeId, route, priceVersion, request.model, [...guardrails]])
  digest.add(parts.targetFacts.map(factsText))
  if (query !== '') digest.add(['query', parts.wire, query])
  digest.add(settingsOf(parts))
  for (const tool of request.tools) digest.add(toolOf(tool))
  const { embedding, task } = request
  if (task !== undefined) digest.add(['task', task.kind])
  else if (embedding !== undefined) {
    const { inputs, dimensions = null, base64 } = embedding
    digest.add(['embedding', dimensions, base64])
    for (const input of inputs) {
      digest.add(typeof input === 'string' ? input : [...input])
      if (digest.isStepOver()) yield
    }
  } else {
    for (const item of itemsOf(request.messages)) {
      digest.add(item)
      if (digest.isStepOver()) yield
    }
  }
  const hasOwn = hasOwnFields(parts)
  if (hasOwn) digest.add(['own', parts.wire])
  for (const [name, value = null] of Object.entries(parts.body)) {
    if (IGNORED.has(name)) continue
    if (hasOwn) digest.add([name, value])
    else if (NESTED.has(plainName(name))) {
      for (const unknown of unknownMembers(name, value, membersOf(parts.wire))) {
        digest.add(['unknown', name, ...unknown])
      }
    }
    if (digest.isStepOver()) yield
  }
  return digest.end()
}

/** Hashes values in sequence: those of one step together, because each call costs more than a short text. */
class Digest {
  /** The hash of earlier steps; null in the first one. */
  private earlier: Hash | null = null
  private text = ''

  /** JSON has no line break, which therefore separates values. */
  add(value: JsonValue): void {
    this.text += stringifyExact(value) + '\n'
  }

  /** Whether other requests should be served before more is hashed. */
  isStepOver(): boolean {
    if (this.text.length < STEP_CHARS) return false
    this.earlier ??= createHash('sha256')
    this.earlier.update(this.text)
    this.text = ''
    return true
  }

  end(): string {
    if (this.earlier === null) return hash('sha256', this.text, 'base64url')
    return this.earlier.update(this.text).digest('base64url')
  }
}

/** Fields that do not change what the model writes, by their names in all formats. */
const IGNORED: ReadonlySet<string> = new Set([
  'stream',
  'stream_options',
  'user',
  'metadata',
  'safety_identifier',
  'prompt_cache_key',
  'store',
  'labels',
])

/** The values that models assume for absent fields. */
const DEFAULTS = {
  temperature: 1,
  topP: 1,
  topK: undefined,
  maxOutputTokens: undefined,
  frequencyPenalty: 0,
  presencePenalty: 0,
  seed: undefined,
  candidates: 1,
  logprobs: false,
  topLogprobs: 0,
  verbosity: 'medium',
  serviceTier: 'auto',
  parallelToolCalls: true,
} as const satisfies Partial<Record<keyof ChatRequest, unknown>>

const DEFAULT_ENTRIES = Object.entries(DEFAULTS)

/** The settings that are not defaults, in a fixed order. */
function settingsOf({ request, wire, facts }: KeyParts): JsonObject {
  const settings: JsonObject = {}
  const values: Readonly<Record<string, unknown>> = { ...request }
  for (const [name, standard] of DEFAULT_ENTRIES) {
    const value = values[name]
    if (value !== undefined && value !== standard) settings[name] = scalar(value)
  }
  const { stop, toolChoice, tools, responseFormat, reasoningEffort, repeated } = request
  if (stop !== undefined && stop.length > 0) settings['stop'] = stop
  const usual = tools.length === 0 ? 'none' : 'auto'
  if (request.prefix === true) settings['prefix'] = true
  if (toolChoice !== undefined && toolChoice.mode !== usual) {
    settings['toolChoice'] = { ...toolChoice }
  }
  if (responseFormat !== undefined && responseFormat.type !== 'text') {
    settings['responseFormat'] = { ...responseFormat }
  }
  if (reasoningEffort !== undefined && !isUsualEffort(reasoningEffort, facts())) {
    settings['reasoningEffort'] = reasoningEffort
  }
  if (request.includeReasoningState === true) settings['reasoningState'] = true
  const reasoning = repeated?.['reasoning']
  const summary = isObject(reasoning) ? stringOf(reasoning['summary']) : undefined
  if (summary !== undefined) settings['summary'] = summary
  // A completion continues its prompt where a chat answers it.
  if (wire === 'openai-completions') settings['completion'] = true
  const betas = request.nativeHeaders?.['anthropic-beta']
  if (betas !== undefined) settings['betas'] = betas
  const version = request.nativeHeaders?.['anthropic-version']
  if (version !== undefined && version !== USUAL_VERSION) settings['version'] = version
  for (const name of Object.keys(request.rest).sort()) {
    const value = request.rest[name]
    if (value !== undefined && !IGNORED.has(name) && !isUsualRest(name, value)) {
      settings[`rest.${name}`] = value
    }
  }
  return settings
}

function scalar(value: unknown): JsonValue {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? value
    : JSON.stringify(value)
}

/** Whether the model does not reason by default, and the request does not require it. */
function isUsualEffort(effort: string, { family, thinkingDefault }: ModelFacts): boolean {
  return effort === 'none' && family === 'anthropic' && thinkingDefault !== 'adaptive'
}

function isUsualRest(name: string, value: JsonValue): boolean {
  return name === 'modalities' && Array.isArray(value) && value.length === 1 && value[0] === 'text'
}

/** Without the mark for a provider's cache. */
function toolOf({ name, description, parameters, strict, custom }: Tool): JsonObject {
  const tool: JsonObject = { name }
  if (description !== undefined) tool['description'] = description
  if (parameters !== undefined) tool['parameters'] = parameters
  if (strict !== undefined) tool['strict'] = strict
  if (custom !== undefined) tool['custom'] = custom.format ?? {}
  return tool
}

/** The contents of the messages in order. Ids of calls, which every format makes for itself, are numbered. */
function* itemsOf(messages: readonly Message[]): Generator<JsonValue> {
  const numbers = new Map<string, number>()
  const numberOf = (id: string): number => {
    const number = numbers.get(id) ?? numbers.size
    numbers.set(id, number)
    return number
  }
  let before = ''
  for (const message of messages) {
    const role = message.role === 'developer' ? 'system' : message.role
    // Formats differ in whether they split the messages of the model.
    if (role !== 'assistant' || before !== role) yield [role]
    before = role
    if (message.role === 'tool') yield ['of', numberOf(message.callId), message.isError === true]
    for (const part of message.parts) {
      if (part.type !== 'text' || part.text !== '' || part.signature !== undefined) {
        yield partOf(part)
      }
    }
    if (message.role !== 'assistant') continue
    for (const call of message.toolCalls) yield callOf(call, numberOf(call.id))
  }
}

/** Without marks and without the decoded size. */
function partOf(part: UserPart | AssistantPart): JsonValue {
  switch (part.type) {
    case 'text':
      return part.signature === undefined ? part.text : ['text', part.text, part.signature]
    case 'image': {
      const detail = part.detail === 'auto' ? undefined : part.detail
      return ['image', { ...part.source }, detail ?? null]
    }
    case 'file':
      return ['file', { ...part.source }, part.filename ?? null]
    case 'audio':
      return ['audio', part.format, part.data]
    case 'thinking': {
      const { text, signature = null, redacted = null, origin = null } = part
      return ['thinking', text, signature, redacted, origin]
    }
    case 'opaque':
      return ['opaque', part.provider, part.block]
    default:
      return part satisfies never
  }
}

function callOf(call: ToolCall, number: number): JsonValue {
  const { name, custom = false, signature = null } = call
  return ['call', number, name, custom, signature, argumentsOf(call)]
}

/** The arguments without the spaces of the client's JSON. */
function argumentsOf({ arguments: text, custom }: ToolCall): string {
  if (custom === true) return text
  try {
    return stringifyExact(parseExact(text))
  } catch {
    return text
  }
}

/** Whether the request has fields that its canonical form does not contain. */
function hasOwnFields({ request, wire }: KeyParts): boolean {
  const { native = [], tokenIds, embedding, task, rest } = request
  if (task !== undefined) return true
  if (native.some(({ path }) => !path.startsWith('anthropic-beta.'))) return true
  if (embedding === undefined) return tokenIds !== undefined
  // Each input of a batch has settings of its own.
  return wire.startsWith('gemini') && Object.keys(rest).length > 0
}

/**
 * Members that the canonical request contains wherever a format lists them (`request-members.ts`), in lower
 * case and without underscores. Upstreams of the client's own format get the other ones, too.
 */
const CONTAINED: ReadonlySet<string> = new Set(
  `allowedfunctionnames allowedtools args arguments cachecontrol callid content contents custom data description
  detail effort filedata fileuri filename fileid file format function functioncall functioncallingconfig
  functiondeclarations functionresponse id imageurl inlinedata input inputaudio inputschema iserror jsonschema
  mediatype mimetype mode name output parameters parametersjsonschema parts promptcachebreakpoint redacted
  refusal response responseschema role schema signature source strict summary text thinking thought
  thoughtsignature toolcallid toolcalls tooluseid tools ttl type url verbosity`.split(/\s+/),
)
/** Those of them that the canonical request does not contain, with the member that has them. */
const NOT_CONTAINED: ReadonlySet<string> = new Set([
  ...['functiondeclarations.response', 'filedata.mimetype', 'systeminstruction.role'],
])
/** The fields whose members are not all read or reported one by one. */
const NESTED: ReadonlySet<string> = new Set(
  `contents functions generationconfig input messages outputconfig outputformat responseformat system
  systeminstruction text thinking toolconfig toolchoice tools`.split(/\s+/),
)
/** Members whose scalars are settings of the canonical request: only the objects in them are read. */
const SETTINGS: ReadonlySet<string> = new Set(['generationconfig'])

/** A value that waits to be read: in which member, and which members the format lists for it. */
interface WaitingValue {
  readonly value: JsonValue
  readonly parent: string
  readonly members: Members | null
}

/** The other members of a field, each with its name and the number of objects before it. */
function* unknownMembers(
  name: string,
  field: JsonValue,
  all: Members,
): Generator<[number, string, JsonValue]> {
  let objects = 0
  /** Names of Gemini's calls: a result refers to its call by the name. */
  const called = new Set<JsonValue | undefined>()
  // Depth first, so that the order is that of the body.
  const waiting: WaitingValue[] = [listed(field, name, all)]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { value, parent, members } = next
    if (Array.isArray(value)) {
      for (let at = value.length - 1; at >= 0; at -= 1) {
        waiting.push({ value: value[at] ?? null, parent, members })
      }
      continue
    }
    // Without members it is JSON of the client's own, such as arguments and schemas.
    if (members === null && hasOrder(value)) yield [objects, parent, value]
    if (!isObject(value) || members === null) continue
    objects += 1
    if (parent === 'functioncall') called.add(value['name'])
    for (const [key, member = null] of Object.entries(value)) {
      if (member === null) continue
      const isCall = key === 'name' && parent === 'functionresponse' && !called.has(member)
      if (isCall || !isContained(key, value, next)) yield [objects, key, member]
      else if (typeof member === 'object') waiting.push(listed(member, key, members))
    }
  }
}

/** Whether the canonical request has the member of `object`. */
function isContained(key: string, object: JsonObject, { parent, members }: WaitingValue): boolean {
  const plain = plainName(key)
  const isListed = members !== null && memberOf(members, key) !== undefined
  if (SETTINGS.has(parent)) return true
  // The text of reasoning beside its summary.
  if (plain === 'content' && object['type'] === 'reasoning') return false
  return isListed && CONTAINED.has(plain) && !NOT_CONTAINED.has(`${parent}.${plain}`)
}

/** Whether a schema states the order of its properties, which its canonical form lacks. */
function hasOrder(value: JsonValue): boolean {
  return isObject(value) && /"property_?ordering"/i.test(stringifyExact(value))
}

function plainName(name: string): string {
  return name.replaceAll('_', '').toLowerCase()
}

/** The value of a member with the members that the format lists for it. */
function listed(value: JsonValue, name: string, members: Members): WaitingValue {
  const kind = memberOf(members, name)
  const parent = plainName(name)
  if (kind === undefined || typeof kind === 'string') return { value, parent, members: null }
  return { value, parent, members: isTextOrMembers(kind) ? kind[1] : kind }
}

const factsTexts = new WeakMap<ModelFacts, string>()

/** The facts of a model as text; its prices have a version of their own. */
function factsText(facts: ModelFacts): string {
  const known = factsTexts.get(facts)
  if (known !== undefined) return known
  const text = JSON.stringify({ ...facts, price: undefined })
  factsTexts.set(facts, text)
  return text
}

const contents = new WeakMap<RouteConfig, string>()

/**
 * A hash of the route with its upstreams, without their credentials, and its guardrails. Another route has no
 * influence.
 */
export function routeContent(
  route: RouteConfig,
  { upstreams, guardrails, plugins }: Pick<Config, 'upstreams' | 'guardrails' | 'plugins'>,
): string {
  const known = contents.get(route)
  if (known !== undefined) return known
  const names = [...route.targets, ...route.fallback].map(({ upstream }) => upstream)
  const used = [...new Set(names)].map((name) => upstreamContent(upstreams[name]))
  const guards = guardrails.filter(({ name, applyTo }) => applyTo !== null || route.guardrails.includes(name))
  const isPlugin = guards.some(({ source }) => source.kind === 'plugin')
  const content = createHash('sha256')
    .update(JSON.stringify([route, used, guards, isPlugin ? plugins : []]))
    .digest('base64url')
  contents.set(route, content)
  return content
}

/** What decides the replies of an upstream: its address and how its requests are made. */
function upstreamContent(upstream: UpstreamConfig | undefined): unknown {
  if (upstream === undefined) return null
  const { name, dialect, platform, anthropicVersion, baseUrl, path, query, headers } = upstream
  const { quirks, embeddingQuirks, completions, operations, allowBetas, models } = upstream
  const address = { name, dialect, platform, anthropicVersion, baseUrl, path, query, headers }
  return { ...address, quirks, embeddingQuirks, completions, operations, allowBetas, models }
}
