/**
 * Encodes canonical turns as `messages`. Content that the format cannot express is reported as a loss, or
 * refused.
 */
import type { JsonObject } from '../../../../chat/json.js'
import type { ModelFacts } from '../../../../chat/model.js'
import type {
  FilePart,
  ImagePart,
  MediaSource,
  Message,
  TextPart,
  ToolCall,
  UserPart,
} from '../../../../chat/request.js'
import { GatewayError } from '../../../../errors.js'
import { wireCallId, wireName } from '../../../../wire/openai/tool-names.js'
import type { Losses } from '../../../dialect.js'
import { signatureOut } from '../../shared/reasoning-state.js'
import { MAX_CALL_ID } from '../../shared/constants.js'

/** All turns. Images and files of tool results follow the results of the turn as a user message. */
export function encodeMessages(
  messages: readonly Message[],
  model: ModelFacts,
  losses: Losses,
): JsonObject[] {
  const out: JsonObject[] = []
  let media: JsonObject[] = []
  for (const message of messages) {
    if (message.role !== 'tool' && media.length > 0) {
      out.push({ role: 'user', content: media })
      media = []
    }
    if (message.role === 'tool') media.push(...encodeResult(message, out, losses))
    else out.push(encodeMessage(message, model, losses))
  }
  if (media.length > 0) out.push({ role: 'user', content: media })
  return out
}

function encodeMessage(
  message: Exclude<Message, { role: 'tool' }>,
  model: ModelFacts,
  losses: Losses,
): JsonObject {
  switch (message.role) {
    case 'system':
    case 'developer': {
      const role = model.systemRole === 'developer' ? 'developer' : message.role
      return { role, content: content(message.parts, message.index, losses) }
    }
    case 'user':
      return { role: 'user', content: content(message.parts, message.index, losses) }
    case 'assistant':
      return encodeAssistant(message, model, losses)
    default:
      return message satisfies never
  }
}

/** A single text part becomes a string, which every upstream of this format accepts. */
function content(parts: readonly UserPart[], index: number, losses: Losses): string | JsonObject[] {
  const [first] = parts
  if (first === undefined) return ''
  if (parts.length === 1 && first.type === 'text') return first.text
  return parts.map((part) => encodePart(part, index, losses))
}

function encodePart(part: UserPart, index: number, losses: Losses): JsonObject {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text }
    case 'image':
      return { type: 'image_url', image_url: image(part, index) }
    case 'audio':
      return { type: 'input_audio', input_audio: { data: part.data, format: part.format } }
    case 'file':
      return file(part, index, losses)
    default:
      return part satisfies never
  }
}

function image(part: ImagePart, index: number): JsonObject {
  const url = { url: address(part.source, `messages[${index}].content`, 'an image') }
  return part.detail === undefined ? url : { ...url, detail: part.detail }
}

function address(source: MediaSource, path: string, what: string): string {
  if (source.kind === 'base64') return `data:${source.mediaType};base64,${source.data}`
  if (source.kind === 'url') return source.url
  throw new GatewayError(
    'untranslatable',
    `${path}: this upstream does not accept ${what} by file id. Send the data or a URL`,
    { param: path },
  )
}

function file(part: FilePart, index: number, losses: Losses): JsonObject {
  const { source } = part
  const name = part.filename === undefined ? {} : { filename: part.filename }
  if (source.kind === 'file-id' && source.origin === undefined) {
    return { type: 'file', file: { file_id: source.id, ...name } }
  }
  // The endpoint accepts PDF files only, so a text file becomes a text part.
  if (source.kind === 'base64' && source.mediaType.startsWith('text/')) {
    losses.drop('messages.file', 'approximated')
    return { type: 'text', text: Buffer.from(source.data, 'base64').toString('utf8') }
  }
  const data = address(source, `messages[${index}].content`, 'a file')
  return { type: 'file', file: { file_data: data, ...name } }
}

function encodeAssistant(
  message: Extract<Message, { role: 'assistant' }>,
  model: ModelFacts,
  losses: Losses,
): JsonObject {
  const texts: TextPart[] = []
  let thoughts = ''
  const out: JsonObject = { role: 'assistant' }
  for (const part of message.parts) {
    if (part.type === 'text') texts.push(part)
    else if (part.type === 'thinking') {
      if (part.origin === 'openai-chat') thoughts += part.text
      else losses.drop('messages.thinking', 'no-equivalent')
    } else if (part.provider === 'openai-chat' && part.block['type'] === 'audio') {
      out['audio'] = { id: part.block['id'] }
    } else losses.drop('messages.opaque', 'no-equivalent')
  }
  const bare = texts.length === 0 && (message.toolCalls.length > 0 || out['audio'] !== undefined)
  out['content'] = bare ? null : content(texts, message.index, losses)
  if (thoughts !== '') out['reasoning_content'] = thoughts
  if (message.toolCalls.length > 0)
    out['tool_calls'] = message.toolCalls.map((call) => encodeCall(call, model, losses))
  return out
}

function encodeCall(call: ToolCall, model: ModelFacts, losses: Losses): JsonObject {
  const id = wireCallId(call.id, MAX_CALL_ID)
  const name = wireName(call.name)
  const out: JsonObject =
    call.custom === true
      ? { id, type: 'custom', custom: { name, input: call.arguments } }
      : { id, type: 'function', function: { name, arguments: call.arguments } }
  if (call.signature === undefined) return out
  // Models with `endpoints` in the catalogue are OpenAI's, which refuses unknown members.
  if (model.endpoints === undefined) out['extra_content'] = signatureOut(call.signature)
  else losses.drop('messages.thinking', 'no-equivalent')
  return out
}

/** Encodes the text of a result; returns its other parts, which a tool message cannot hold. */
function encodeResult(
  message: Extract<Message, { role: 'tool' }>,
  out: JsonObject[],
  losses: Losses,
): JsonObject[] {
  const texts = message.parts.filter((part) => part.type === 'text')
  const media = message.parts.filter((part) => part.type !== 'text')
  if (message.isError === true) losses.drop('messages.is_error', 'no-equivalent')
  if (media.length > 0) losses.drop('messages.tool_content', 'approximated')
  out.push({
    role: 'tool',
    tool_call_id: wireCallId(message.callId, MAX_CALL_ID),
    content: content(texts, message.index, losses),
  })
  return media.map((part) => encodePart(part, message.index, losses))
}
