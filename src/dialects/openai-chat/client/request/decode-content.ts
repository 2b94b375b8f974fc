/**
 * Decodes the content of a message: text, images, audio, files, refusals and reasoning. The caller chooses the parts that
 * a role may hold.
 */
import type { JsonObject } from '../../../../chat/json.js'
import type {
  AssistantPart,
  MediaSource,
  TextPart,
  ThinkingPart,
  UserPart,
} from '../../../../chat/request.js'
import { given, object, oneOf, refuse, string, text } from '../../../../wire/json/check-fields.js'
import { decodeMediaUrl } from '../../../../wire/decode-media-url.js'
import {
  decodeParts,
  decodeTextPart,
  decodeUserParts,
  type Content,
} from '../../../../wire/openai/content-parts.js'

/** The text parts of a system or developer message. Empty text is dropped. */
export function textParts(value: Content, path: string): TextPart[] {
  return decodeParts(value, path, (item, at) => {
    oneOf(item['type'], `${at}.type`, ['text'])
    return decodeTextPart(item, 'text', at)
  })
}

/** The parts of a user message or a tool result. Empty text is dropped. */
export function userParts(value: Content, path: string): UserPart[] {
  return decodeUserParts(value, path, {
    text: 'text',
    image: ['image_url', image],
    file: ['file', file],
  })
}

/** The parts of an assistant message: text, refusals (text for the next turn) and Mistral's thinking. */
export function assistantParts(value: Content, path: string): AssistantPart[] {
  return decodeParts<AssistantPart>(value, path, (item, at) => {
    const type = oneOf(item['type'], `${at}.type`, ['text', 'refusal', 'thinking'])
    if (type === 'text') return decodeTextPart(item, 'text', at)
    if (type === 'thinking') return thinkingPart(item, at)
    return { type: 'text', text: string(item['refusal'], `${at}.refusal`) }
  })
}

/** Mistral sends thinking as a list of text parts (recorded). */
function thinkingPart(item: JsonObject, path: string): ThinkingPart {
  const value = item['thinking']
  const text =
    typeof value === 'string' ? value : textParts(value, `${path}.thinking`).map((t) => t.text)
  return { type: 'thinking', text: [text].flat().join(''), origin: 'openai-chat' }
}

function image(item: JsonObject, path: string): Extract<UserPart, { type: 'image' }> {
  const at = `${path}.image_url`
  const value = item['image_url']
  // Mistral's clients send the URL itself in place of an object (recorded).
  if (typeof value === 'string') return { type: 'image', source: decodeMediaUrl(value, at) }
  const inner = object(value, at)
  const part: Extract<UserPart, { type: 'image' }> = {
    type: 'image',
    source: decodeMediaUrl(string(inner['url'], `${at}.url`), `${at}.url`),
  }
  if (given(inner['detail'])) {
    part.detail = oneOf(inner['detail'], `${at}.detail`, ['auto', 'low', 'high', 'original'])
  }
  return part
}

function file(item: JsonObject, path: string): Extract<UserPart, { type: 'file' }> {
  const at = `${path}.file`
  const inner = object(item['file'], at)
  const part: Extract<UserPart, { type: 'file' }> = { type: 'file', source: fileSource(inner, at) }
  if (given(inner['filename'])) part.filename = text(inner['filename'], `${at}.filename`, 1_024)
  return part
}

function fileSource(inner: JsonObject, path: string): MediaSource {
  if (given(inner['file_id'])) {
    return { kind: 'file-id', id: text(inner['file_id'], `${path}.file_id`, 512) }
  }
  if (!given(inner['file_data'])) refuse(path, 'must have file_data or file_id')
  return decodeMediaUrl(string(inner['file_data'], `${path}.file_data`), `${path}.file_data`)
}
