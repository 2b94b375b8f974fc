/**
 * Keeps the heads of the last requests of this process for `sluice plan`: key, model, format, kinds of
 * content, sizes and usage, but no contents. Of many requests per second it keeps a sample.
 */
import type { Labels } from '../../accounts/labels.js'
import { isObject, stringOf, type JsonObject, type JsonValue } from '../../base/json.js'
import type {
  AssistantPart,
  ChatRequest,
  MediaSource,
  Message,
  Tool,
  ToolCall,
  UserPart,
} from '../../formats/chat/request.js'
import { isImplausible, type Usage } from '../../formats/chat/usage.js'
import type { DialectName, WireFormat } from '../../formats/dialect.js'
import type { ClientFormat } from '../../formats/chat/operations.js'
import { promptSizeOf, inputTokens } from '../../ledger/estimate-tokens.js'
import { nameOf, outcomeOf } from '../charges/ledger-entry.js'
import type { Exchange } from '../client-exchange.js'

/** One request without its contents. Can be serialized as JSON. */
export interface RequestHead {
  /** When it ended, ms since 1970. */
  readonly atMs: number
  /** The id of the API key, or `playground`. */
  readonly keyId: string
  readonly accountId: string
  readonly labels: Labels
  readonly format: ClientFormat
  readonly dialect: DialectName
  readonly wire: WireFormat
  /** The model that the client requested; at most 256 characters. */
  readonly model: string
  readonly stream: boolean
  readonly bodyBytes: number
  /** The upstream's count, else an estimate. */
  readonly promptTokens: number
  /** The counts that the upstream reported; empty if it reported none or no request was sent. */
  readonly usage: Usage
  /** The vendor's tier that served it; null if unknown. */
  readonly tier: string | null
  /** `ok`, or the kind of error that ended it. */
  readonly outcome: string
  readonly sketch: RequestShape
}

/** Number of requests that a process keeps: at most about 1 MB. */
export const MAX_HEADS = 1_000
/**
 * The number of requests per second that are kept after a burst of `MAX_HEADS`. A higher number would fill
 * the ring with the last few milliseconds and cost up to 7 % of a request's CPU time.
 */
const HEADS_PER_MS = 0.1

/** The last requests, in a ring. */
export class RecentHeads {
  private readonly ring: RequestHead[] = []
  private next = 0
  /** The number of heads that may be added now; see `HEADS_PER_MS`. */
  private free = MAX_HEADS
  private sinceMs = 0

  /** Whether the head of a request that ends now is to be added. `nowMs` is monotonic. */
  takes(nowMs: number): boolean {
    this.free = Math.min(MAX_HEADS, this.free + (nowMs - this.sinceMs) * HEADS_PER_MS)
    this.sinceMs = nowMs
    if (this.free < 1) return false
    this.free -= 1
    return true
  }

  add(head: RequestHead): void {
    this.ring[this.next] = head
    this.next = (this.next + 1) % MAX_HEADS
  }

  /** Oldest first. */
  all(): RequestHead[] {
    return [...this.ring.slice(this.next), ...this.ring.slice(0, this.next)]
  }
}

/** Merges the heads of several processes, oldest first; keeps the newest `MAX_HEADS`. */
export function mergedHeads(lists: readonly (readonly RequestHead[])[]): RequestHead[] {
  const heads = lists.flat().sort((a, b) => a.atMs - b.atMs)
  return heads.slice(-MAX_HEADS)
}

/** The head of an ended exchange; null if its body was not read or its key was refused. */
export function headOf(x: Exchange): RequestHead | null {
  const { authenticated, received: call, intake, replyResult } = x
  if (authenticated === null || call === null) return null
  const { keyId, accountId, labels } = authenticated.identity
  const { request, format, dialect, wire } = call
  const reported = replyResult?.usage ?? {}
  const usage = isImplausible(reported) ? {} : reported
  const model = nameOf(request.model) ?? ''
  const estimate = (): number => inputTokens(promptSizeOf(request), x.generation.facts(model).family)
  return {
    atMs: Date.now(),
    keyId,
    accountId,
    labels,
    format,
    dialect,
    wire,
    model,
    stream: request.stream,
    bodyBytes: intake?.bytes ?? 0,
    promptTokens: usage.input ?? estimate(),
    usage,
    tier: replyResult?.tier ?? null,
    outcome: outcomeOf(x),
    sketch: requestShapeOf(call.added === undefined ? request : withoutMaximum(request)),
  }
}

/** The request of the client, which set no maximum of output tokens: the gateway did. */
function withoutMaximum(request: ChatRequest): ChatRequest {
  const own = { ...request }
  delete own.maxOutputTokens
  return own
}

/** A field that only upstreams of the client's own format accept. */
interface NativeField {
  readonly path: string
  /** The gateway refuses the request for other upstreams; if false, the field is lost. */
  readonly isRefused: boolean
}

/**
 * The settings of a request that are numbers, flags or words of a closed set. A setting is absent if the
 * client did not send it.
 */
export interface ShapeSettings {
  readonly includeUsage?: boolean
  readonly parallelToolCalls?: boolean
  readonly legacyFunctions?: boolean
  readonly maxOutputTokens?: number
  readonly temperature?: number
  readonly topP?: number
  readonly topK?: number
  readonly frequencyPenalty?: number
  readonly presencePenalty?: number
  readonly candidates?: number
  readonly logprobs?: boolean
  readonly topLogprobs?: number
  readonly reasoningEffort?: string
  readonly verbosity?: string
  readonly serviceTier?: string
  readonly hidesThoughts?: boolean
  readonly includeReasoningState?: boolean
  /** Number of stop sequences. */
  readonly stops?: number
  readonly hasSeed?: boolean
  readonly hasUserId?: boolean
  /** `auto`, `none`, `required`, `named`, `allowed` or `allowed required`. */
  readonly toolChoice?: string
  /** `text`, `json-object`, `json-schema` or `json-schema strict`. */
  readonly format?: string
}

/** The shape of one request. Words are separated by spaces: `image base64 image/png`. */
export interface RequestShape {
  /** Each distinct turn once, in the order of first appearance: the role, then the kinds of its parts. */
  readonly turns: readonly (readonly string[])[]
  /** The roles of the first turn after the instructions, and of the last one. */
  readonly ends: readonly string[]
  /** Each distinct kind of tool once. */
  readonly tools: readonly string[]
  readonly settings: ShapeSettings
  /** Fields that the canonical request does not have. Texts are replaced unless they are in `WORDS`. */
  readonly rest: JsonObject
  readonly native: readonly NativeField[]
}

/** Maximum number of distinct turns, of kinds of parts in a turn, of tools, and of fields. */
const MAX_SHAPES = 32
const MAX_DEPTH = 3
const MAX_LIST = 4
/** A field path that may be kept; others become `other`. */
const PLAIN_NAME = /^[\w$.[\]-]{1,80}$/
const PLAIN_WORD = /^[\w./+:-]{1,40}$/
/** Values of vendor settings that affect the translation. Any other text becomes `x`. */
const WORDS = new Set(
  (
    'adaptive all audio auto concise current_turn default detailed disabled enabled ephemeral fast flex high image ' +
    'in_memory low max medium minimal none priority standard standard_only text xhigh 24h 5m 1h'
  ).split(' '),
)

/**
 * The shape of a request: its kinds of parts, tools and settings, without its text, in one pass over its
 * parts. `sluice plan` builds a request of the same shape and translates it for another upstream. Pure.
 */
export function requestShapeOf(request: ChatRequest): RequestShape {
  const { native = [], tools } = request
  return {
    turns: turnsOf(request.messages),
    ends: endsOf(request.messages),
    tools: [...new Set(tools.map(toolKind))].slice(0, MAX_SHAPES),
    settings: settingsOf(request),
    rest: fieldsOf(request.rest, 0),
    native: native.slice(0, MAX_SHAPES).map(({ path, refusal }) => {
      return { path: plainName(path), isRefused: refusal !== undefined }
    }),
  }
}

function turnsOf(messages: readonly Message[]): string[][] {
  const seen = new Map<string, string[]>()
  for (const message of messages) {
    const kinds = kindsOf(message)
    const name = kinds.join('\n')
    if (!seen.has(name) && seen.size < MAX_SHAPES) seen.set(name, kinds)
  }
  return [...seen.values()]
}

function endsOf(messages: readonly Message[]): string[] {
  const first = messages.find(({ role }) => role !== 'system' && role !== 'developer')
  const last = messages.at(-1)
  return first === undefined || last === undefined ? [] : [first.role, last.role]
}

function kindsOf(message: Message): string[] {
  const kinds = new Set<string>()
  const { role } = message
  for (const part of message.parts) {
    if (kinds.size < MAX_SHAPES) kinds.add(partKind(part))
  }
  if (role === 'assistant') {
    for (const call of message.toolCalls) {
      if (kinds.size < MAX_SHAPES) kinds.add(callKind(call))
    }
  }
  if (role === 'tool' && message.isError === true) kinds.add('error')
  if (role === 'tool' && message.cache !== undefined) kinds.add('cached')
  return [role, ...kinds]
}

function partKind(part: UserPart | AssistantPart): string {
  switch (part.type) {
    case 'text':
      return words('text', part.signature !== undefined && 'signed', isCached(part) && 'cached')
    case 'image':
      return words('image', ...sourceWords(part.source), isCached(part) && 'cached')
    case 'file':
      return words('file', ...sourceWords(part.source), isCached(part) && 'cached')
    case 'audio':
      return words('audio', plainWord(part.format))
    case 'thinking': {
      const isSigned = part.signature !== undefined || part.redacted !== undefined
      return words('thinking', plainWord(part.origin ?? 'unknown'), isSigned && 'signed')
    }
    case 'opaque': {
      // Gemini's parts have no type: the name of their only member is used instead.
      const [member = 'other'] = Object.keys(part.block)
      return words('opaque', plainWord(part.provider), plainWord(stringOf(part.block['type']) ?? member))
    }
    default:
      return part satisfies never
  }
}

function isCached({ cache }: { readonly cache?: unknown }): boolean {
  return cache !== undefined
}

function sourceWords(source: MediaSource): string[] {
  switch (source.kind) {
    case 'base64':
      return ['base64', plainWord(source.mediaType)]
    case 'url':
      return ['url', ...bucketWord(source.url)]
    case 'file-id':
      return ['file-id', plainWord(source.origin ?? 'openai'), ...bucketWord(source.id)]
    default:
      return source satisfies never
  }
}

/** The scheme of an address in a bucket, which few upstreams take. */
function bucketWord(address: string): string[] {
  const [, scheme] = /^(gs|s3):\/\//i.exec(address) ?? []
  return scheme === undefined ? [] : [scheme.toLowerCase()]
}

function callKind({ custom, signature }: ToolCall): string {
  return words('call', custom === true && 'custom', signature !== undefined && 'signed')
}

function toolKind({ custom, strict, parameters, cache }: Tool): string {
  const format = custom?.format
  return words(
    custom === undefined ? 'function' : 'custom',
    format !== undefined && plainWord(`format:${stringOf(format['type']) ?? 'text'}`),
    parameters !== undefined && 'parameters',
    strict === true && 'strict',
    cache !== undefined && 'cached',
  )
}

function words(...flags: readonly (string | false)[]): string {
  return flags.filter((word) => word !== false).join(' ')
}

function plainWord(word: string): string {
  return PLAIN_WORD.test(word) ? word : 'other'
}

function plainName(name: string): string {
  return PLAIN_NAME.test(name) ? name : 'other'
}

/** Settings that are copied unchanged. */
const SCALARS = [
  'parallelToolCalls',
  'legacyFunctions',
  'maxOutputTokens',
  'temperature',
  'topP',
  'topK',
  'frequencyPenalty',
  'presencePenalty',
  'candidates',
  'logprobs',
  'topLogprobs',
  'reasoningEffort',
  'verbosity',
  'hidesThoughts',
  'includeReasoningState',
] as const satisfies readonly (keyof ShapeSettings & keyof ChatRequest)[]

function settingsOf(request: ChatRequest): ShapeSettings {
  const settings: Record<string, string | number | boolean> = {}
  for (const name of SCALARS) {
    const value = request[name]
    if (value !== undefined) settings[name] = value
  }
  const { includeUsage, serviceTier, stop, seed, userId, toolChoice, responseFormat } = request
  if (includeUsage) settings['includeUsage'] = true
  if (serviceTier !== undefined) settings['serviceTier'] = plainWord(serviceTier)
  if (stop !== undefined) settings['stops'] = stop.filter((text) => text !== '').length
  if (seed !== undefined) settings['hasSeed'] = true
  if (userId !== undefined) settings['hasUserId'] = true
  if (toolChoice !== undefined) {
    const isRequired = toolChoice.mode === 'allowed' && toolChoice.required
    settings['toolChoice'] = words(toolChoice.mode, isRequired && 'required')
  }
  if (responseFormat !== undefined) {
    const isStrict = responseFormat.type === 'json-schema' && responseFormat.strict === true
    settings['format'] = words(responseFormat.type, isStrict && 'strict')
  }
  return settings
}

function fieldsOf(object: JsonObject, depth: number): JsonObject {
  const fields: JsonObject = {}
  let count = 0
  for (const name in object) {
    const value = object[name]
    if (value === undefined) continue
    if ((count += 1) > MAX_SHAPES) break
    fields[plainName(name)] = valueOf(value, depth + 1)
  }
  return fields
}

/** Replaces every text that is not in `WORDS`, and limits depth and number of elements. */
function valueOf(value: JsonValue, depth: number): JsonValue {
  if (typeof value === 'string') return WORDS.has(value) ? value : 'x'
  if (Array.isArray(value)) {
    return depth > MAX_DEPTH ? [] : value.slice(0, MAX_LIST).map((element) => valueOf(element, depth + 1))
  }
  if (!isObject(value)) return value
  return depth > MAX_DEPTH ? {} : fieldsOf(value, depth)
}
