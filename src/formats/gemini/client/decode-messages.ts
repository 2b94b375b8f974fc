/**
 * Decodes `systemInstruction` and `contents` to messages. Consecutive model contents are one turn, because
 * Google's SDKs keep each chunk of a stream as a content of its own.
 */
import { ConversationCalls } from '../../chat/conversation-calls.js'
import { stringOf, type JsonObject, type JsonValue } from '../../../base/json.js'
import { longTextOf, longTextPart } from '../../chat/long-text.js'
import type {
  NativeField,
  AssistantPart,
  Message,
  TextPart,
  ThinkingPart,
  ToolCall,
  UserPart,
  OpaquePart,
  MediaSource,
  AssistantMessage,
} from '../../chat/request.js'
import { isBucketUrl, soundOrVideo, standardBase64, statedType } from '../../wire/inline-media.js'
import { soundFormatOf } from '../../wire/media/sound.js'
import { given, refuse, text, object, string } from '../../wire/json/check-fields.js'
import { stringifyExact } from '../../wire/json/exact-numbers.js'
import { NestedJson } from '../../wire/json/nested-json.js'
import { isReasoningToken, readReasoningToken, type FoundState } from '../../wire/reasoning-token.js'
import { toolName } from '../../wire/tool-names.js'
import { PROVIDER, SKIP_SIGNATURE } from '../constants.js'
import { list, message, memberPath } from './proto-fields.js'

type ToolMessage = Extract<Message, { role: 'tool' }>
/** More contents than fit the context window of any model. */
const MAX_CONTENTS = 10_000
/** More than the 3,000 images that providers accept in one request. */
const MAX_PARTS = 4_096
const MAX_ID = 512

/** Placeholders that Google documents for lost signatures. */
const PLACEHOLDERS: ReadonlySet<string> = new Set([SKIP_SIGNATURE, 'context_engineering_is_the_way_to_go'])

/** The messages, and the paths of parts that only Gemini upstreams support. */
interface Conversation {
  readonly messages: Message[]
  readonly unknown: readonly string[]
  /** The first call or result without its counterpart; null if there is none. */
  readonly unpaired: NativeField | null
}

/** Decodes the system instruction: a string, parts or a content. Null if it has no text. */
export function decodeSystem(value: JsonValue, path: string): Message | null {
  const parts = typeof value === 'string' ? [{ text: value }] : partsIn(value, path)
  const texts = parts.flatMap((entry, at) => {
    const part = partOf(entry, `${path}.parts[${at}]`)
    if (part.kind !== 'text') refuse(part.path, 'must be text: a system instruction supports no other parts')
    const read = textPart(part)
    return isEmpty(read) ? [] : [read]
  })
  return texts.length === 0 ? null : { role: 'system', index: 0, parts: texts }
}

/** The parts of a content, or of a value that is the parts themselves. */
function partsIn(value: JsonValue, path: string): JsonValue[] {
  if (Array.isArray(value)) return list(value, path, MAX_PARTS)
  const content = message(value, path)
  const parts = given(content['parts']) || given(content['role']) ? content['parts'] : value
  return list(parts, `${path}.parts`, MAX_PARTS)
}

/**
 * Decodes `contents`, which may be empty beside instructions. `path` is the path of the body; empty for the
 * top level.
 */
export function decodeContents(
  value: JsonValue | undefined,
  path: string,
  hasInstruction: boolean,
): Conversation {
  const at = memberPath(path, 'contents')
  const contents = list(value, at, MAX_CONTENTS)
  if (contents.length === 0 && !hasInstruction) refuse(at, 'must be a non-empty array')
  const decoder = new ContentsDecoder()
  contents.forEach((entry, index) => decoder.content(entry, `${at}[${index}]`, index))
  return decoder.done(at, hasInstruction)
}

class ContentsDecoder {
  private readonly out: Message[] = []
  private readonly unknown: string[] = []
  /** The open model turn. */
  private model: AssistantMessage | null = null
  private calls = new PairedCalls()
  private readonly ids = new ConversationCalls()
  private hasParts = false
  private readonly nested = new NestedJson()
  /** User messages between the model's calls and its next turn. */
  private pendingUserMessages: Message[] = []

  content(value: JsonValue, path: string, index: number): void {
    const content: JsonObject =
      typeof value === 'string' ? { parts: [{ text: value }] } : message(value, path)
    const role = roleOf(content['role'], `${path}.role`)
    // A blocked reply, sent back, has no parts.
    const parts = list(content['parts'] ?? [], `${path}.parts`, MAX_PARTS).map((entry, at) =>
      partOf(entry, `${path}.parts[${at}]`),
    )
    this.hasParts ||= parts.length > 0
    if (role === 'model') this.modelContent(parts, index)
    else this.userContent(parts, index)
  }

  done(path: string, hasInstruction: boolean): Conversation {
    this.closeModel()
    this.closeResults()
    if (this.out.length === 0) {
      if (!this.hasParts && !hasInstruction) this.ids.refuseElsewhere(path, 'must have at least one part')
      // Gemini accepts a request that has only a system instruction.
      this.out.push({ role: 'user', index: 0, parts: [{ type: 'text', text: '' }] })
    }
    return { messages: this.out, unknown: this.unknown, unpaired: this.ids.unpaired }
  }

  /** Decodes a content of a user or a tool. */
  private userContent(parts: readonly Part[], index: number): void {
    this.closeModel()
    const own: UserPart[] = []
    for (const part of parts) {
      if (part.kind === 'functionCall') this.misplaced(part, 'model')
      else if (part.kind === 'functionResponse') this.result(part, index)
      else if (part.kind === 'text') {
        const read = textPart(part)
        if (!isEmpty(read)) own.push(read)
      } else {
        const media = mediaPart(part)
        if (media !== null) own.push(media)
        else if (part.kind !== 'none') this.unknown.push(part.path)
      }
    }
    if (own.length > 0) this.pendingUserMessages.push({ role: 'user', index, parts: own })
  }

  /** Decodes a content of the model. */
  private modelContent(parts: readonly Part[], index: number): void {
    if (parts.length === 0) return
    if (this.model === null) {
      this.closeResults()
      this.model = { role: 'assistant', index, parts: [], toolCalls: [] }
    }
    for (const part of parts) this.modelPart(part, this.model)
  }

  private modelPart(part: Part, turn: AssistantMessage): void {
    const hasToken = isReasoningToken(part.signature)
    const state = hasToken ? readReasoningToken(part.signature, this.nested) : null
    const signature = hasToken ? undefined : googleSignature(part.signature)
    const isThought = part.item['thought'] === true
    // Reasoning of another provider's model precedes the part that carries it.
    if (state !== null) {
      const { origin } = state
      const text = isThought ? textOf(part) : ''
      addThoughts(
        turn.parts,
        state.thoughts.map((thought) => ({ type: 'thinking', text, ...thought, origin })),
      )
    }
    switch (part.kind) {
      case 'text':
      case 'none':
        if (!isThought) addText(turn.parts, part, signature)
        else if (!hasToken) addThought(turn.parts, textOf(part), signature)
        return
      case 'functionCall':
        this.call(part, turn, { id: callOf(state), signature })
        return
      case 'functionResponse':
        this.misplaced(part, 'user')
        return
      default:
        turn.parts.push(opaquePart(part))
    }
  }

  private misplaced({ path }: Part, role: 'model' | 'user'): void {
    this.ids.refuseElsewhere(path, `must be in a content whose role is ${role}`)
  }

  private call(
    { item, path }: Part,
    turn: AssistantMessage,
    state: { id: string | undefined; signature: string | undefined },
  ): void {
    const at = `${path}.functionCall`
    const given = message(item['functionCall'], at)
    const name = toolName(given['name'], `${at}.name`)
    const id = idOf(given['id'], `${at}.id`) ?? state.id
    // A generated id is the same in every request of the conversation and differs from those of other turns.
    const suffix = turn.toolCalls.length === 0 ? '' : `_${turn.toolCalls.length}`
    const givenId = id ?? `call_fn_${turn.index}${suffix}`
    const call: ToolCall = {
      id: this.ids.add(givenId, turn.index),
      name,
      arguments: stringifyExact(argumentsOf(given['args'], `${at}.args`)),
    }
    if (state.signature !== undefined) call.signature = state.signature
    turn.toolCalls.push(call)
    this.calls.add(call, { path: at, id })
  }

  private result({ item, path }: Part, index: number): void {
    const at = `${path}.functionResponse`
    const given = message(item['functionResponse'], at)
    const name = toolName(given['name'], `${at}.name`)
    const { parts, isError } = resultOf(argumentsOf(given['response'], `${at}.response`))
    list(given['parts'], `${at}.parts`, MAX_PARTS).forEach((entry, partIndex) => {
      const media = mediaPart(partOf(entry, `${at}.parts[${partIndex}]`))
      if (media === null) refuse(`${at}.parts[${partIndex}]`, 'must have inlineData or fileData')
      parts.push(media)
    })
    const id = idOf(given['id'], `${at}.id`)
    const messageFor = (callId: string): ToolMessage => {
      return { role: 'tool', index, callId, parts, ...(isError ? { isError } : {}) }
    }
    const found = this.calls.addResult({ name, id }, messageFor)
    if (found !== null) return
    this.ids.refuseElsewhere(at, 'matches no functionCall of the model content before it')
    this.pendingUserMessages.push(messageFor(id ?? name))
  }

  private closeModel(): void {
    const turn = this.model
    this.model = null
    if (turn !== null && (turn.parts.length > 0 || turn.toolCalls.length > 0)) this.out.push(turn)
  }

  /** Appends the results of a turn in the order of its calls, then the pending user messages. */
  private closeResults(): void {
    this.out.push(...this.calls.results((path, rule) => this.ids.refuseElsewhere(path, rule)))
    this.calls = new PairedCalls()
    this.out.push(...this.pendingUserMessages)
    this.pendingUserMessages = []
  }
}

/** Google's signature; undefined if it is empty or a placeholder. */
function googleSignature(signature: string): string | undefined {
  return signature === '' || PLACEHOLDERS.has(signature) ? undefined : signature
}

/** The id of the call that carries the state. */
function callOf(state: FoundState | null): string | undefined {
  return state?.of === undefined || state.of === 'text' ? undefined : state.of.call
}

function roleOf(value: JsonValue | undefined, path: string): 'user' | 'model' {
  if (!given(value) || value === '' || value === 'user' || value === 'function') return 'user'
  return value === 'model' ? 'model' : refuse(path, 'must be user, model or function')
}

function idOf(value: JsonValue | undefined, path: string): string | undefined {
  return given(value) && value !== '' ? text(value, path, MAX_ID) : undefined
}

function textOf({ item }: Part): string {
  return stringOf(item['text']) ?? ''
}

function isEmpty(part: TextPart): boolean {
  return part.textBytes === undefined && part.text === ''
}

/** Joins consecutive texts, which are chunks of one stream, up to a signature. */
function addText(parts: AssistantPart[], part: Part, signature: string | undefined): void {
  const read: TextPart = part.kind === 'text' ? textPart(part) : { type: 'text', text: '' }
  if (signature !== undefined) read.signature = signature
  else if (isEmpty(read)) return
  const last = parts.at(-1)
  const joins =
    last?.type === 'text' &&
    last.signature === undefined &&
    last.textBytes === undefined &&
    read.textBytes === undefined
  if (!joins) {
    parts.push(read)
    return
  }
  last.text += read.text
  if (signature !== undefined) last.signature = signature
}

/** Joins consecutive thoughts of Google's models up to a signature. */
function addThought(parts: AssistantPart[], text: string, signature: string | undefined): void {
  const last = parts.at(-1)
  if (last?.type === 'thinking' && last.origin === PROVIDER && last.signature === undefined) {
    last.text += text
    if (signature !== undefined) last.signature = signature
    return
  }
  if (text === '' && signature === undefined) return
  const part: ThinkingPart = { type: 'thinking', text, origin: PROVIDER }
  if (signature !== undefined) part.signature = signature
  parts.push(part)
}

/**
 * Adds the thoughts of a token. The text of a streamed thought precedes it in parts without a token.
 */
function addThoughts(parts: AssistantPart[], thoughts: readonly ThinkingPart[]): void {
  for (const thought of thoughts) {
    const last = parts.at(-1)
    const isContinued = last?.type === 'thinking' && last.origin === PROVIDER && last.signature === undefined
    if (isContinued && thought.redacted === undefined) {
      parts.pop()
      parts.push({ ...thought, text: last.text + thought.text })
    } else parts.push(thought)
  }
}

/**
 * The parts of a function response: the text of its only member `output` or `error`, else the object as JSON.
 */
function resultOf(response: JsonObject): { parts: UserPart[]; isError: boolean } {
  const keys = Object.keys(response)
  const [key = ''] = keys
  const only = keys.length === 1 ? response[key] : undefined
  const isError = keys.length === 1 && key === 'error'
  const plain = (key === 'output' || key === 'error') && typeof only === 'string'
  const text = plain ? only : stringifyExact(response)
  return { parts: text === '' ? [] : [{ type: 'text', text }], isError }
}

/** A call and its result, which is null until it arrives. */
interface PairedCall {
  readonly call: ToolCall
  /** The call's path, for the error if it has no result. */
  readonly path: string
  result: ToolMessage | null
}

/**
 * Pairs the calls of one turn with their results: by id, or by name and order if the client keeps no ids. The
 * cost is linear in the number of calls.
 */
class PairedCalls {
  private readonly all: PairedCall[] = []
  private readonly byId = new Map<string, Queue>()
  private readonly byName = new Map<string, Queue>()
  private readonly withoutId = new Map<string, Queue>()

  /** Adds a call with the id that the client sent, if any. Calls with the same id are answered in order. */
  add(call: ToolCall, { path, id }: { readonly path: string; readonly id: string | undefined }): void {
    const entry: PairedCall = { call, path, result: null }
    this.all.push(entry)
    enqueue(this.byName, call.name, entry)
    if (id === undefined) enqueue(this.withoutId, call.name, entry)
    else enqueue(this.byId, id, entry)
  }

  /**
   * Assigns a result to its call, with the message that `messageFor` makes for the call's own id; null if
   * there is no such call.
   */
  addResult(
    { name, id }: { name: string; id: string | undefined },
    messageFor: (callId: string) => ToolMessage,
  ): ToolMessage | null {
    const exact = id === undefined ? undefined : firstOpen(this.byId.get(id))
    const entry = exact ?? firstOpen((id === undefined ? this.byName : this.withoutId).get(name))
    if (entry === undefined) return null
    entry.result = messageFor(entry.call.id)
    return entry.result
  }

  /** The results in the order of the calls. A call without one is reported. */
  results(report: ConversationCalls['refuseElsewhere']): ToolMessage[] {
    return this.all.flatMap(({ result, path }) => {
      if (result === null) report(path, 'must be followed by a functionResponse with its result')
      return result ?? []
    })
  }
}

/** Calls of one name or id in order; those before `next` have results. */
interface Queue {
  readonly calls: PairedCall[]
  next: number
}

function enqueue(queues: Map<string, Queue>, key: string, entry: PairedCall): void {
  const queue = queues.get(key)
  if (queue === undefined) queues.set(key, { calls: [entry], next: 0 })
  else queue.calls.push(entry)
}

function firstOpen(queue: Queue | undefined): PairedCall | undefined {
  if (queue === undefined) return undefined
  while (queue.calls[queue.next]?.result !== null && queue.next < queue.calls.length) queue.next += 1
  return queue.calls[queue.next]
}

/** Members of a part, of which it has exactly one. */
const KINDS = [
  'text',
  'inlineData',
  'fileData',
  'functionCall',
  'functionResponse',
  'executableCode',
  'codeExecutionResult',
  'toolCall',
  'toolResponse',
] as const

/** The kind of a part. `none` is a part that has only a thought signature. */
type PartKind = (typeof KINDS)[number] | 'none'

/** A part with camelCase names, and its kind. */
interface Part {
  readonly item: JsonObject
  readonly kind: PartKind
  readonly path: string
  /** Empty if the part has none. */
  readonly signature: string
}

/** Reads the common members of a part. Unknown members are not checked. */
function partOf(value: JsonValue, path: string): Part {
  const item = message(value, path)
  const kinds = KINDS.filter((kind) => given(item[kind]))
  const [kind = 'none', other] = kinds
  if (other !== undefined) refuse(path, `must not have both ${kind} and ${other}`)
  if (kind === 'text') string(item['text'], `${path}.text`)
  const { thoughtSignature } = item
  const signature = given(thoughtSignature) ? string(thoughtSignature, `${path}.thoughtSignature`) : ''
  return { item, kind, path, signature }
}

/** The text of a part; a long text is decoded on first access. */
function textPart({ item, path }: Part): TextPart {
  const long = longTextOf(item, 'text')
  return long === null ? { type: 'text', text: string(item['text'], `${path}.text`) } : longTextPart(long)
}

/** The media of a user's or tool's part; null for a part that only Gemini upstreams support. */
function mediaPart({ item, kind, path }: Part): UserPart | null {
  if (kind === 'inlineData') return decodeInlineData(item['inlineData'], `${path}.inlineData`)
  if (kind === 'fileData') return decodeFileData(item['fileData'], `${path}.fileData`)
  return null
}

/**
 * A part of a model content without equivalent in other formats: executed code, Google's tools, generated
 * images.
 */
function opaquePart({ item }: Part): OpaquePart {
  return { type: 'opaque', provider: PROVIDER, block: item }
}

/** The object of a call or result; empty if absent. */
function argumentsOf(value: JsonValue | undefined, path: string): JsonObject {
  return given(value) ? object(value, path) : {}
}

const MAX_URI = 8_192
const MAX_FILENAME = 1_024
const MEDIA_TYPE = /^[\w.+-]{1,64}\/[\w.+-]{1,128}(?:;.*)?$/

/** Data in the request: an image, audio or a file. */
function decodeInlineData(value: JsonValue | undefined, path: string): UserPart {
  const blob = message(value, path)
  const data = string(blob['data'], `${path}.data`)
  const mediaType = mediaTypeOf(statedType(blob['mimeType'], data), `${path}.mimeType`)
  if (data === '') refuse(`${path}.data`, 'must hold base64 data')
  const format = soundFormatOf(mediaType)
  if (format !== undefined) return { type: 'audio', format, data: standardBase64(data) }
  const source = inlineSource(mediaType, data)
  return mediaType.startsWith('image/')
    ? { type: 'image', source }
    : { type: 'file', source, ...filename(blob, path) }
}

/** Inline data. Python clients send the URL-safe alphabet, which is converted on first access. */
function inlineSource(mediaType: string, given: string): MediaSource {
  let standard: string | null = null
  return {
    kind: 'base64',
    mediaType,
    get data() {
      standard ??= standardBase64(given)
      return standard
    },
  }
}

/** An image or a file by its URI. */
function decodeFileData(value: JsonValue | undefined, path: string): UserPart {
  const file = message(value, path)
  const uri = text(file['fileUri'], `${path}.fileUri`, MAX_URI)
  const { mimeType } = file
  const mediaType = given(mimeType) ? mediaTypeOf(mimeType, `${path}.mimeType`) : ''
  const source = sourceOf(uri, soundOrVideo(mediaType))
  return mediaType.startsWith('image/')
    ? { type: 'image', source }
    : { type: 'file', source, ...filename(file, path) }
}

/**
 * The source of a URI: files in Google's Files API are readable only by Google, other web URLs by all,
 * buckets by a cloud.
 */
function sourceOf(uri: string, media: 'audio' | 'video' | undefined): MediaSource {
  const isOwn = /^https:\/\/generativelanguage\.googleapis\.com\//i.test(uri)
  if (!isOwn && (/^https?:\/\//i.test(uri) || isBucketUrl(uri))) {
    return media === undefined ? { kind: 'url', url: uri } : { kind: 'url', url: uri, media }
  }
  return { kind: 'file-id', id: uri, origin: PROVIDER }
}

function filename(holder: JsonObject, path: string): { filename?: string } {
  const name = holder['displayName']
  return given(name) && name !== '' ? { filename: text(name, `${path}.displayName`, MAX_FILENAME) } : {}
}

/** The media type in lower case, without parameters. */
function mediaTypeOf(value: JsonValue | undefined, path: string): string {
  if (typeof value !== 'string' || !MEDIA_TYPE.test(value)) {
    refuse(path, 'must be a media type such as image/png')
  }
  const [type = ''] = value.split(';', 1)
  return type.toLowerCase()
}
