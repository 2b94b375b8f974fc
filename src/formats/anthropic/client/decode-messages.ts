/**
 * Decodes `system` and `messages`, and pairs every call with its result.
 * Consecutive messages of one role are one turn, as in Anthropic's API.
 */
import { ConversationCalls } from '../../chat/conversation-calls.js'
import { objectOf, stringOf, type JsonObject, type JsonValue } from '../../../base/json.js'
import { LongText, longTextOf, longTextPart } from '../../chat/long-text.js'
import type {
  Message,
  ToolCall,
  AssistantPart,
  TextPart,
  ThinkingPart,
  UserPart,
  FilePart,
  ImagePart,
  MediaSource,
  AssistantMessage,
} from '../../chat/request.js'
import { decodeMediaUrl, standardBase64, statedType } from '../../wire/inline-media.js'
import { array, given, object, oneOf, refuse, boolean, string, text } from '../../wire/json/check-fields.js'
import { stringifyExact } from '../../wire/json/exact-numbers.js'
import { NestedJson } from '../../wire/json/nested-json.js'
import { cacheMark, withCacheMark } from '../../wire/prompt-cache-markers.js'
import { isReasoningToken, readReasoningToken } from '../../wire/reasoning-token.js'
import { foundText, isProgram, PROVIDER } from '../constants.js'
import { toolName } from '../../wire/tool-names.js'
import type { NativeFields } from './native-fields.js'

type ToolMessage = Extract<Message, { role: 'tool' }>

/** More messages than fit the context window of any model. */
const MAX_MESSAGES = 10_000
const MAX_CALLS = 1_024

/**
 * The system prompt as the first message, then all messages. The results of a turn have the order of its
 * calls.
 */
export function decodeMessages(body: JsonObject, native: NativeFields): Message[] {
  const { messages } = body
  if (!Array.isArray(messages) || (messages.length === 0 && !given(body.system))) {
    refuse('messages', 'must be a non-empty array')
  }
  const decoder = new MessagesDecoder(native)
  if (given(body.system)) decoder.system(body)
  for (const [index, entry] of array(messages, 'messages', MAX_MESSAGES).entries()) {
    decoder.add(entry, index)
  }
  return decoder.done()
}

/** A turn with calls that have no result yet. */
interface OpenTurn {
  readonly message: AssistantMessage
  /** The path of each call in the request, by its id. */
  readonly paths: Map<string, string>
  readonly results: Map<string, ToolMessage>
}

class MessagesDecoder {
  private readonly out: Message[] = []
  private readonly native: NativeFields
  private readonly nested = new NestedJson()
  private turn: OpenTurn | null = null
  private readonly calls = new ConversationCalls()
  /** The number of user and assistant messages with content. */
  private nonEmptyCount = 0

  constructor(native: NativeFields) {
    this.native = native
  }

  system(body: JsonObject): void {
    const parts = systemParts(contentOf(body, 'system'), 'system', this.native)
    if (parts.length > 0) this.out.push({ role: 'system', index: 0, parts })
  }

  add(entry: JsonValue, index: number): void {
    const path = `messages[${index}]`
    const item = object(entry, path)
    const role = oneOf(item.role, `${path}.role`, ['user', 'assistant', 'system'])
    switch (role) {
      case 'user':
        return this.addUser(item, path, index)
      case 'assistant':
        return this.addAssistant(item, path, index)
      case 'system': {
        const parts = systemParts(contentOf(item, 'content') ?? '', `${path}.content`, this.native)
        this.closeTurn()
        if (parts.length > 0) this.out.push({ role, index, parts })
        return
      }
      default:
        role satisfies never
    }
  }

  done(): Message[] {
    this.closeTurn()
    if (this.nonEmptyCount === 0 && this.out.length === 0) {
      this.calls.refuseElsewhere('messages', 'must have at least one message with content')
    }
    const { unpaired } = this.calls
    if (unpaired !== null) this.native.add(unpaired)
    return this.out
  }

  private addUser(item: JsonObject, path: string, index: number): void {
    const { results, parts } = userContent(item, path, this.native)
    for (const result of results) this.addResult(result, index)
    const isEmpty = parts.length === 0 && results.length === 0 && isText(item.content)
    if (!isEmpty) this.nonEmptyCount += 1
    this.appendResults()
    if (parts.length === 0) return
    this.closeTurn()
    this.out.push({ role: 'user', index, parts })
  }

  private addResult({ callId, path, parts, isError, cache }: ToolResult, index: number): void {
    const { turn } = this
    const own = this.calls.answer(callId)
    const message: ToolMessage = { role: 'tool', index, callId: own ?? callId, parts }
    if (isError) message.isError = true
    if (cache !== undefined) message.cache = cache
    if (turn !== null && own !== null) {
      turn.results.set(own, message)
      return
    }
    const rule =
      turn?.results.has(callId) === true
        ? 'already has a result'
        : 'matches no tool_use of the message before it'
    this.calls.refuseElsewhere(path, rule)
    this.out.push(message)
  }

  private addAssistant(item: JsonObject, path: string, index: number): void {
    const { parts, calls } = assistantContent(item, path, { nested: this.nested, native: this.native })
    if (calls.length > MAX_CALLS) refuse(`${path}.content`, `must have at most ${MAX_CALLS} calls`)
    if (parts.length === 0 && calls.length === 0) return
    this.nonEmptyCount += 1
    const message = this.assistantMessage(index)
    message.parts.push(...parts)
    if (calls.length === 0) return
    const turn = this.turn ?? { message, paths: new Map<string, string>(), results: new Map() }
    this.turn = turn
    for (const { path: at, call } of calls) {
      call.id = this.calls.add(call.id, turn.message.index)
      turn.paths.set(call.id, at)
      turn.message.toolCalls.push(call)
    }
  }

  /** The previous assistant message if no user message or result follows it; else a new one. */
  private assistantMessage(index: number): AssistantMessage {
    const last = this.out.at(-1)
    const isAnswered = this.turn !== null && this.turn.results.size > 0
    if (last?.role === 'assistant' && !isAnswered) return last
    this.closeTurn()
    const message: AssistantMessage = { role: 'assistant', index, parts: [], toolCalls: [] }
    this.out.push(message)
    return message
  }

  /** Appends the results of the open turn, in the order of its calls, once it has all of them. */
  private appendResults(): void {
    const { turn } = this
    if (turn !== null && turn.results.size === turn.paths.size) this.closeTurn()
  }

  /** Appends the results of the open turn. A call without one is reported. */
  private closeTurn(): void {
    const { turn } = this
    if (turn === null) return
    for (const [id, path] of turn.paths) {
      const result = turn.results.get(id)
      if (result !== undefined) this.out.push(result)
      else {
        this.calls.refuseElsewhere(path, 'must be followed by a user message with a tool_result for it')
      }
    }
    this.turn = null
    this.calls.close()
  }
}

/** True if all content is text. Blocks that only Anthropic supports count as content. */
function isText(content: JsonValue | undefined): boolean {
  if (!Array.isArray(content)) return true
  return content.every((block) => objectOf(block).type === 'text')
}

/** More than the images and pages that any provider accepts in one request. */
const MAX_BLOCKS = 4_096
const MAX_ID = 512

/** Content as in the body; a long text is not decoded yet. */
type Content = JsonValue | LongText | undefined

/** The result of a call. */
interface ToolResult {
  readonly callId: string
  readonly path: string
  readonly parts: UserPart[]
  readonly isError: boolean
  readonly cache: ToolCall['cache']
}

/** The content of a user's message: results of calls, and all other parts. */
interface UserContent {
  readonly results: ToolResult[]
  readonly parts: UserPart[]
}

/** The content of an assistant message. */
interface AssistantContent {
  readonly parts: AssistantPart[]
  readonly calls: { readonly path: string; readonly call: ToolCall }[]
}

/** What the blocks of all messages have in common. */
interface AssistantContext {
  readonly nested: NestedJson
  readonly native: NativeFields
}

/** Blocks that are omitted for other upstreams; any other unknown block makes the request untranslatable. */
const OPTIONAL: ReadonlySet<string> = new Set([
  'browser_state',
  'tool_addition',
  'tool_reference',
  'tool_removal',
])

/**
 * Decodes the content of a system prompt or message. Empty text is dropped.
 *
 * Source: Claude API reference, "Messages", and the types of its SDK 1.12, read 2026-11-22.
 */
function systemParts(content: Content, path: string, native: NativeFields): TextPart[] {
  const parts: TextPart[] = []
  for (const block of blocksOf(content, path)) {
    if (block instanceof LongText) parts.push(longTextPart(block))
    else if (block.item.type === 'text') pushText(parts, textPart(block.item, block.path))
    else foreignBlock(block, native)
  }
  return parts
}

/** Decodes the content of a user's message. */
function userContent(item: JsonObject, path: string, native: NativeFields): UserContent {
  const results: ToolResult[] = []
  const parts: UserPart[] = []
  for (const block of blocksOf(contentOf(item, 'content') ?? '', `${path}.content`)) {
    if (block instanceof LongText) parts.push(longTextPart(block))
    else if (block.item.type === 'tool_result') results.push(toolResult(block, native))
    else addUserPart(block, parts, native)
  }
  return { results, parts }
}

/** Decodes the content of an assistant message. A reply without content, sent back, has null or none. */
function assistantContent(item: JsonObject, path: string, context: AssistantContext): AssistantContent {
  const content: AssistantContent = { parts: [], calls: [] }
  if (!given(item.content)) return content
  for (const block of blocksOf(contentOf(item, 'content'), `${path}.content`)) {
    if (block instanceof LongText) content.parts.push(longTextPart(block))
    else addAssistantBlock(block, content, context)
  }
  return content
}

interface Block {
  readonly item: JsonObject
  readonly path: string
}

/** The content in a member of the body or of a message. */
function contentOf(holder: JsonObject, key: string): Content {
  return longTextOf(holder, key) ?? holder[key]
}

/** The blocks of content. A string is one text block; an empty string has none. */
function blocksOf(content: Content, path: string): (Block | LongText)[] {
  if (content instanceof LongText) return [content]
  if (typeof content === 'string') {
    return content === '' ? [] : [{ item: { type: 'text', text: content }, path }]
  }
  if (!Array.isArray(content)) return refuse(path, 'must be a string or an array of content blocks')
  return array(content, path, MAX_BLOCKS).map((value, at) => {
    const blockPath = `${path}[${at}]`
    const item = object(value, blockPath)
    if (typeof item.type !== 'string') refuse(`${blockPath}.type`, 'must be a string')
    return { item, path: blockPath }
  })
}

function addUserPart(block: Block, parts: UserPart[], native: NativeFields): void {
  const { item, path } = block
  switch (item.type) {
    case 'text':
      return pushText(parts, textPart(item, path))
    case 'image':
      return void parts.push(withCacheMark(decodeImage(item, path), item, path))
    case 'document':
      if (objectOf(item.source).type === 'content') return addDocumentContent(block, parts, native)
      return void parts.push(withCacheMark(decodeDocument(item, path, native), item, path))
    case 'search_result':
      native.lost('messages.search_result')
      return pushText(parts, searchResult(block))
    default:
      foreignBlock(block, native)
  }
}

/** Replaces a document made of text and images by its texts and images. */
function addDocumentContent({ item, path }: Block, parts: UserPart[], native: NativeFields): void {
  const at = `${path}.source.content`
  recordNativeMembers(item, path, native)
  native.lost('messages.document')
  for (const block of blocksOf(contentOf(objectOf(item.source), 'content'), at)) {
    if (block instanceof LongText) parts.push(longTextPart(block))
    else addUserPart(block, parts, native)
  }
}

/** A search result that the client provides, as text: title, source and content, one per line. */
function searchResult({ item, path }: Block): TextPart {
  const title = string(item.title, `${path}.title`)
  const source = string(item.source, `${path}.source`)
  const content = array(item.content, `${path}.content`, MAX_BLOCKS).map((value, at) => {
    const blockPath = `${path}.content[${at}]`
    return string(object(value, blockPath).text, `${blockPath}.text`)
  })
  const part: TextPart = { type: 'text', text: [title, source, ...content].join('\n') }
  return withCacheMark(part, item, path)
}

/** Records a block that only Anthropic's models support. */
function foreignBlock({ item, path }: Block, native: NativeFields): void {
  const type = stringOf(item.type) ?? ''
  if (OPTIONAL.has(type)) {
    native.lost(`messages.${type}`)
    return
  }
  native.unseen.push(path)
  native.refused(path, `only Anthropic upstreams accept blocks of type ${JSON.stringify(type.slice(0, 80))}`)
}

function toolResult({ item, path }: Block, native: NativeFields): ToolResult {
  const parts: UserPart[] = []
  if (given(item.content)) {
    const references: Block[] = []
    for (const block of blocksOf(contentOf(item, 'content'), `${path}.content`)) {
      if (block instanceof LongText) parts.push(longTextPart(block))
      else if (block.item.type === 'tool_reference') references.push(block)
      else addUserPart(block, parts, native)
    }
    const [first] = references
    // Formats with one text for a result join its parts.
    if (first !== undefined) parts.unshift(foundTools(first, references, parts.length > 0 ? '\n' : ''))
  }
  return {
    callId: optionalId(item.tool_use_id, `${path}.tool_use_id`),
    path: `${path}.tool_use_id`,
    parts,
    isError: given(item.is_error) && boolean(item.is_error, `${path}.is_error`),
    cache: cacheMark(item, path),
  }
}

/** The tools that a search of the client has found, as a line of text: they themselves are in `tools`. */
function foundTools({ item, path }: Block, references: readonly Block[], end: string): TextPart {
  const names = references.map((each) => string(each.item.tool_name, `${each.path}.tool_name`))
  const part: TextPart = { type: 'text', text: foundText(names) + end }
  return withCacheMark(part, item, path)
}

function addAssistantBlock(
  { item, path }: Block,
  { parts, calls }: AssistantContent,
  { nested, native }: AssistantContext,
): void {
  switch (item.type) {
    case 'text':
      return pushText(parts, textPart(item, path))
    case 'thinking':
      return void parts.push(thinking(item, path, nested))
    case 'redacted_thinking':
      return void parts.push(redacted(item, path, nested))
    case 'tool_use':
      if (isProgram(item.caller)) native.lost('messages.caller')
      return void calls.push({ path, call: toolCall(item, path) })
    default:
      parts.push({ type: 'opaque', provider: PROVIDER, block: item })
  }
}

/** Thinking of an Anthropic model, or of another model if the signature is the gateway's token. */
function thinking(item: JsonObject, path: string, nested: NestedJson): ThinkingPart {
  const part: ThinkingPart = { type: 'thinking', text: string(item.thinking, `${path}.thinking`) }
  const signature = given(item.signature) ? string(item.signature, `${path}.signature`) : ''
  if (isReasoningToken(signature)) return restored(part, signature, nested)
  part.origin = PROVIDER
  if (signature !== '') part.signature = signature
  return part
}

function redacted(item: JsonObject, path: string, nested: NestedJson): ThinkingPart {
  const data = string(item.data, `${path}.data`)
  const part: ThinkingPart = { type: 'thinking', text: '' }
  return isReasoningToken(data) ? restored(part, data, nested) : { ...part, origin: PROVIDER, redacted: data }
}

/**
 * Restores another provider's state. The text of a changed token has no origin, so no upstream receives it.
 */
function restored(part: ThinkingPart, token: string, nested: NestedJson): ThinkingPart {
  const state = readReasoningToken(token, nested)
  return state === null ? part : { ...part, ...state.thoughts[0], origin: state.origin }
}

function toolCall(item: JsonObject, path: string): ToolCall {
  const input = given(item.input) && item.input !== '' ? object(item.input, `${path}.input`) : {}
  let json: string | undefined
  const call: ToolCall = {
    id: optionalId(item.id, `${path}.id`),
    name: toolName(item.name, `${path}.name`),
    // Lazy: a request that passes through to Anthropic as bytes does not need the text.
    get arguments() {
      return (json ??= stringifyExact(input))
    },
  }
  const cache = cacheMark(item, path)
  if (cache !== undefined) call.cache = cache
  return call
}

/** Some servers of open models give their calls no id. */
function optionalId(value: JsonValue | undefined, path: string): string {
  return given(value) && value !== '' ? text(value, path, MAX_ID) : ''
}

function textPart(item: JsonObject, path: string): TextPart {
  const long = longTextOf(item, 'text')
  const part =
    long === null ? { type: 'text' as const, text: string(item.text, `${path}.text`) } : longTextPart(long)
  return withCacheMark(part, item, path)
}

function pushText(parts: (UserPart | AssistantPart)[], part: TextPart): void {
  if (part.textBytes !== undefined || part.text !== '') parts.push(part)
}

const IMAGE_TYPES = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'] as const
const MAX_FILE_ID = 512

/** Decodes an image block. */
function decodeImage(item: JsonObject, path: string): ImagePart {
  const at = `${path}.source`
  const source = object(item.source, at)
  const type = oneOf(source.type, `${at}.type`, ['base64', 'url', 'file'])
  if (type !== 'base64') return { type: 'image', source: reference(source, type, at) }
  const data = base64(source, at)
  const mediaType = oneOf(statedType(source.media_type, data), `${at}.media_type`, IMAGE_TYPES)
  return { type: 'image', source: { kind: 'base64', mediaType, data } }
}

/** Decodes a document block, except one whose source is content blocks. */
function decodeDocument(item: JsonObject, path: string, native: NativeFields): FilePart {
  const at = `${path}.source`
  const source = object(item.source, at)
  const part: FilePart = { type: 'file', source: documentSource(source, at) }
  if (given(item.title)) part.filename = string(item.title, `${path}.title`).slice(0, 1_024)
  recordNativeMembers(item, path, native)
  return part
}

/** Records the members of a document that only Anthropic upstreams accept. */
function recordNativeMembers(item: JsonObject, path: string, native: NativeFields): void {
  if (given(item.context)) {
    string(item.context, `${path}.context`)
    native.lost('messages.context')
  }
  if (!given(item.citations)) return
  const { enabled } = object(item.citations, `${path}.citations`)
  if (given(enabled) && boolean(enabled, `${path}.citations.enabled`)) {
    native.lost('messages.citations')
  }
}

/** Longer than any registered media type. */
const MAX_MEDIA_TYPE = 255

function documentSource(source: JsonObject, path: string): MediaSource {
  const type = oneOf(source.type, `${path}.type`, ['base64', 'text', 'url', 'file'])
  switch (type) {
    case 'base64': {
      const data = base64(source, path)
      // The API takes PDF alone; other vendors read other types too, and refuse what they do not.
      const mediaType = text(statedType(source.media_type, data), `${path}.media_type`, MAX_MEDIA_TYPE)
      return { kind: 'base64', mediaType, data }
    }
    case 'text': {
      oneOf(source.media_type, `${path}.media_type`, ['text/plain'])
      const data = Buffer.from(string(source.data, `${path}.data`)).toString('base64')
      return { kind: 'base64', mediaType: 'text/plain', data }
    }
    case 'url':
    case 'file':
      return reference(source, type, path)
    default:
      return type satisfies never
  }
}

function reference(source: JsonObject, type: 'url' | 'file', path: string): MediaSource {
  if (type === 'url') return decodeMediaUrl(string(source.url, `${path}.url`), `${path}.url`)
  return {
    kind: 'file-id',
    id: text(source.file_id, `${path}.file_id`, MAX_FILE_ID),
    origin: PROVIDER,
  }
}

function base64(source: JsonObject, path: string): string {
  const data = string(source.data, `${path}.data`)
  if (data === '') refuse(`${path}.data`, 'must be a non-empty string')
  return standardBase64(data)
}
