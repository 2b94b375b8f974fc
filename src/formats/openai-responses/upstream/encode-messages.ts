/**
 * Encodes canonical turns as input items. The items of a message depend only on it and on earlier messages,
 * so that a longer conversation has the same prefix, which prompt caches require.
 *
 * Source: OpenAI API reference, "Create a model response", input items, read 2026-11-20.
 */
import { stringOf, type JsonObject } from '../../chat/json.js'
import type { ModelFacts } from '../../chat/model.js'
import type {
  Message,
  OpaquePart,
  TextPart,
  ToolCall,
  UserPart,
  FilePart,
  ImagePart,
} from '../../chat/request.js'
import type { Losses } from '../../dialect.js'
import { refused } from '../../wire/json/check-fields.js'
import { wireCallId, wireName } from '../../wire/openai/tools.js'
import { MAX_CALL_ID } from '../constants.js'
import { ORIGIN, reasoningItem } from '../reasoning-state.js'

/** All turns, in order. */
export function encodeInput(
  messages: readonly Message[],
  model: ModelFacts,
  losses: Losses,
): JsonObject[] {
  const out: JsonObject[] = []
  const custom = new Set<string>()
  const marks = acceptsBreakpoints(model)
  for (const message of messages) {
    switch (message.role) {
      case 'system':
      case 'developer': {
        const role = model.systemRole === 'developer' ? 'developer' : message.role
        out.push(encodeMessage(role, message, marks))
        break
      }
      case 'user':
        out.push(encodeMessage('user', message, marks))
        break
      case 'assistant':
        out.push(...encodeAssistant(message, losses))
        for (const call of message.toolCalls) if (call.custom === true) custom.add(call.id)
        break
      case 'tool':
        if (message.isError === true) losses.drop('messages.is_error', 'no-equivalent')
        out.push(encodeResult(message, custom.has(message.callId), marks))
        break
      default:
        message satisfies never
    }
  }
  return out
}

/**
 * Whether the model accepts breakpoints of the prompt cache. A model that is not in the catalogue counts as
 * new.
 */
export function acceptsBreakpoints(model: ModelFacts): boolean {
  return model.endpoints === undefined || model.promptCacheBreakpoints === true
}

function encodeMessage(
  role: string,
  { parts, index }: { readonly parts: readonly UserPart[]; readonly index: number },
  marks: boolean,
): JsonObject {
  return { role, content: parts.map((part) => encodePart(part, index, marks)) }
}

/**
 * The items of an assistant turn: reasoning, text and hosted tool items in their order, then the calls.
 * Reasoning without a following item is left out, because the API refuses it.
 */
function encodeAssistant(
  message: Extract<Message, { role: 'assistant' }>,
  losses: Losses,
): JsonObject[] {
  const out: JsonObject[] = []
  let texts: TextPart[] = []
  const flush = (): void => {
    if (texts.length > 0) {
      const content = texts.map(({ text }) => ({ type: 'output_text', text }))
      out.push({ role: 'assistant', content })
    }
    texts = []
  }
  for (const part of message.parts) {
    if (part.type === 'opaque') {
      flush()
      if (isOwnItem(part)) out.push(part.block)
      else losses.drop('messages.opaque', 'no-equivalent')
    } else if (part.type === 'text') {
      if (part.text !== '') texts.push(part)
    } else {
      const item = reasoningItem(part)
      if (item === null) losses.drop('messages.thinking', 'no-equivalent')
      else {
        flush()
        out.push(item)
      }
    }
  }
  flush()
  out.push(...message.toolCalls.map(encodeCall))
  while (out.at(-1)?.['type'] === 'reasoning') {
    out.pop()
    losses.drop('messages.thinking', 'no-equivalent')
  }
  return out
}

/**
 * Whether the block is an item of a hosted tool. It is sent back unchanged, because the reasoning before it
 * belongs to it.
 */
function isOwnItem({ provider, block }: OpaquePart): boolean {
  return (
    provider === ORIGIN && /_(?:call|list_tools|search_output)$/.test(stringOf(block['type']) ?? '')
  )
}

function encodeCall(call: ToolCall): JsonObject {
  const id = wireCallId(call.id, MAX_CALL_ID)
  const name = wireName(call.name)
  if (call.custom === true) {
    return { type: 'custom_tool_call', call_id: id, name, input: call.arguments }
  }
  const json = call.arguments.trim() === '' ? '{}' : call.arguments
  return { type: 'function_call', call_id: id, name, arguments: json }
}

/** A result of one text is a string; a result with images or files is a list of parts. */
function encodeResult(
  message: Extract<Message, { role: 'tool' }>,
  custom: boolean,
  marks: boolean,
): JsonObject {
  const { parts } = message
  const [first] = parts
  const isMarked = marks && first?.type === 'text' && first.cache?.breakpoint !== undefined
  const isBare = parts.length === 1 && first?.type === 'text' && !isMarked
  const list = (): JsonObject[] => parts.map((part) => encodePart(part, message.index, marks))
  return {
    type: custom ? 'custom_tool_call_output' : 'function_call_output',
    call_id: wireCallId(message.callId, MAX_CALL_ID),
    output: first === undefined ? '' : isBare ? first.text : list(),
  }
}

/**
 * One part. `index` is the index of its message, for errors. `marks`: the model accepts the breakpoints of
 * OpenAI's prompt cache. Throws `GatewayError(untranslatable)`.
 *
 * Encodes the parts of user messages and tool results as content parts of an input item. Media that the
 * format has no part for is refused.
 */
function encodePart(part: UserPart, index: number, marks: boolean): JsonObject {
  const encoded = encodeContent(part, index)
  const breakpoint = part.type === 'audio' ? undefined : part.cache?.breakpoint
  if (marks && breakpoint !== undefined) {
    encoded['prompt_cache_breakpoint'] = { mode: 'explicit', ...breakpoint }
  }
  return encoded
}

function encodeContent(part: UserPart, index: number): JsonObject {
  switch (part.type) {
    case 'text':
      return { type: 'input_text', text: part.text }
    case 'image':
      refuseForeign(part, index)
      return image(part)
    case 'file':
      refuseForeign(part, index)
      return file(part)
    case 'audio':
      throw refused(
        `messages[${index}].content`,
        "OpenAI's Responses API accepts no audio. Choose an audio model, which is served through chat completions.",
      )
    default:
      return part satisfies never
  }
}

function refuseForeign({ source }: ImagePart | FilePart, index: number): void {
  if (source.kind !== 'file-id' || source.origin === undefined) return
  throw refused(
    `messages[${index}].content`,
    'this upstream does not accept a file id of another provider. Send the data.',
  )
}

function image({ source, detail }: ImagePart): JsonObject {
  const part: JsonObject = { type: 'input_image' }
  if (source.kind === 'file-id') part['file_id'] = source.id
  else if (source.kind === 'url') part['image_url'] = source.url
  else part['image_url'] = `data:${source.mediaType};base64,${source.data}`
  if (detail !== undefined) part['detail'] = detail
  return part
}

function file({ source, filename }: FilePart): JsonObject {
  if (source.kind === 'file-id') return { type: 'input_file', file_id: source.id }
  if (source.kind === 'url') return { type: 'input_file', file_url: source.url }
  return {
    type: 'input_file',
    filename: filename ?? fileName(source.mediaType),
    file_data: `data:${source.mediaType};base64,${source.data}`,
  }
}

/** A name for a file without one: the API requires a name, whose extension decides how the file is read. */
function fileName(mediaType: string): string {
  const extension = mediaType === 'text/plain' ? 'txt' : /\/([a-z0-9]{1,8})$/.exec(mediaType)?.[1]
  return `file.${extension ?? 'bin'}`
}
