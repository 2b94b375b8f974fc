/**
 * Decodes the content blocks of user, tool, system and assistant messages.
 * Blocks of Anthropic's own tools are kept whole for Anthropic upstreams.
 *
 * Source: Claude API reference, "Messages", and the types of its SDK 1.12, read 2026-11-22.
 */
import { type JsonObject, type JsonValue, objectOf, stringOf } from '../../../../chat/json.js'
import { LongText, longTextOf, longTextPart } from '../../../../chat/long-text.js'
import type {
  AssistantPart,
  TextPart,
  ThinkingPart,
  ToolCall,
  UserPart,
} from '../../../../chat/request.js'
import { cacheMark, withCacheMark } from '../../../../wire/prompt-cache-markers.js'
import { stringifyExact } from '../../../../wire/json/exact-numbers.js'
import {
  array,
  boolean,
  given,
  object,
  refuse,
  string,
  text,
} from '../../../../wire/json/check-fields.js'
import { PROVIDER } from '../../shared/constants.js'
import { decodeDocument, decodeImage, recordNativeMembers } from './decode-media.js'
import { toolName } from './decode-tools.js'
import type { NativeFields } from './native-fields.js'
import { isThinkingToken, openThinking } from '../reply/thinking-token.js'

/** More than the images and pages that any provider accepts in one request. */
const MAX_BLOCKS = 4_096
const MAX_ID = 512

/** Content as in the body; a long text is not decoded yet. */
export type Content = JsonValue | LongText | undefined

/** The result of a call. */
export interface ToolResult {
  readonly callId: string
  readonly path: string
  readonly parts: UserPart[]
  readonly isError: boolean
  readonly cache: ToolCall['cache']
}

/** The content of a user's message: results of calls, and all other parts. */
export interface UserContent {
  readonly results: ToolResult[]
  readonly parts: UserPart[]
}

/** The content of an assistant message. */
export interface AssistantContent {
  readonly parts: AssistantPart[]
  readonly calls: { readonly path: string; readonly call: ToolCall }[]
}

/** Blocks that are omitted for other upstreams; any other unknown block makes the request untranslatable. */
const OPTIONAL: ReadonlySet<string> = new Set([
  'browser_state',
  'tool_addition',
  'tool_reference',
  'tool_removal',
])

/** Decodes the content of a system prompt or message. Empty text is dropped. */
export function systemParts(content: Content, path: string, native: NativeFields): TextPart[] {
  const parts: TextPart[] = []
  for (const block of blocksOf(content, path)) {
    if (block instanceof LongText) parts.push(longTextPart(block))
    else if (block.item.type === 'text') pushText(parts, textPart(block.item, block.path))
    else foreignBlock(block, native)
  }
  return parts
}

/** Decodes the content of a user's message. */
export function userContent(item: JsonObject, path: string, native: NativeFields): UserContent {
  const results: ToolResult[] = []
  const parts: UserPart[] = []
  for (const block of blocksOf(contentOf(item, 'content'), `${path}.content`)) {
    if (block instanceof LongText) parts.push(longTextPart(block))
    else if (block.item.type === 'tool_result') results.push(toolResult(block, native))
    else addUserPart(block, parts, native)
  }
  return { results, parts }
}

/** Decodes the content of an assistant message. */
export function assistantContent(item: JsonObject, path: string): AssistantContent {
  const content: AssistantContent = { parts: [], calls: [] }
  for (const block of blocksOf(contentOf(item, 'content'), `${path}.content`)) {
    if (block instanceof LongText) content.parts.push(longTextPart(block))
    else addAssistantBlock(block, content)
  }
  return content
}

interface Block {
  readonly item: JsonObject
  readonly path: string
}

/** The content in a member of the body or of a message. */
export function contentOf(holder: JsonObject, key: string): Content {
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
  native.refused(
    path,
    `only Anthropic upstreams accept blocks of type ${JSON.stringify(type.slice(0, 80))}`,
  )
}

function toolResult({ item, path }: Block, native: NativeFields): ToolResult {
  const parts: UserPart[] = []
  if (given(item.content)) {
    for (const block of blocksOf(contentOf(item, 'content'), `${path}.content`)) {
      if (block instanceof LongText) parts.push(longTextPart(block))
      else addUserPart(block, parts, native)
    }
  }
  return {
    callId: text(item.tool_use_id, `${path}.tool_use_id`, MAX_ID),
    path: `${path}.tool_use_id`,
    parts,
    isError: given(item.is_error) && boolean(item.is_error, `${path}.is_error`),
    cache: cacheMark(item, path),
  }
}

function addAssistantBlock({ item, path }: Block, { parts, calls }: AssistantContent): void {
  switch (item.type) {
    case 'text':
      return pushText(parts, textPart(item, path))
    case 'thinking':
      return void parts.push(thinking(item, path))
    case 'redacted_thinking':
      return void parts.push(redacted(item, path))
    case 'tool_use':
      return void calls.push({ path, call: toolCall(item, path) })
    default:
      parts.push({ type: 'opaque', provider: PROVIDER, block: item })
  }
}

/** Thinking of an Anthropic model, or of another model if the signature is the gateway's token. */
function thinking(item: JsonObject, path: string): ThinkingPart {
  const part: ThinkingPart = { type: 'thinking', text: string(item.thinking, `${path}.thinking`) }
  const signature = given(item.signature) ? string(item.signature, `${path}.signature`) : ''
  if (isThinkingToken(signature)) return restored(part, signature)
  part.origin = PROVIDER
  if (signature !== '') part.signature = signature
  return part
}

function redacted(item: JsonObject, path: string): ThinkingPart {
  const data = string(item.data, `${path}.data`)
  const part: ThinkingPart = { type: 'thinking', text: '' }
  return isThinkingToken(data)
    ? restored(part, data)
    : { ...part, origin: PROVIDER, redacted: data }
}

/**
 * Restores another provider's state. The text of a changed token has no origin, so no upstream receives it.
 */
function restored(part: ThinkingPart, token: string): ThinkingPart {
  const opened = openThinking(token)
  if (opened === null) return part
  part.origin = opened.origin
  if (opened.state !== '') part.signature = opened.state
  return part
}

function toolCall(item: JsonObject, path: string): ToolCall {
  const input = object(item.input, `${path}.input`)
  let json: string | undefined
  const call: ToolCall = {
    id: text(item.id, `${path}.id`, MAX_ID),
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

function textPart(item: JsonObject, path: string): TextPart {
  const long = longTextOf(item, 'text')
  const part =
    long === null
      ? { type: 'text' as const, text: string(item.text, `${path}.text`) }
      : longTextPart(long)
  return withCacheMark(part, item, path)
}

function pushText(parts: (UserPart | AssistantPart)[], part: TextPart): void {
  if (part.textBytes !== undefined || part.text !== '') parts.push(part)
}
