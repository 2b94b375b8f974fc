/**
 * Reads the content of a message: text, images, audio, files, refusals and reasoning.
 * Knows nothing of turns; which role may hold what is said by its caller.
 */
import type { JsonObject, JsonValue } from '../../../../chat/json.js'
import { LongText, longTextOf, longTextPart } from '../../../../chat/long-text.js'
import type {
  AssistantPart,
  MediaSource,
  TextPart,
  ThinkingPart,
  UserPart,
} from '../../../../chat/request.js'
import { cacheMark } from '../../../../wire/cache-mark.js'
import {
  array,
  given,
  object,
  oneOf,
  refuse,
  string,
  text,
} from '../../../../wire/json/check-fields.js'
import { mediaSource, standardBase64 } from '../../../../wire/media-source.js'

/** More than the 1,500 images and pages that any provider takes in one request. */
const MAX_PARTS = 4_096

/** What the content of a message is; a long text is not decoded. */
export type Content = JsonValue | LongText | undefined

/** The content of a message. */
export function contentOf(item: JsonObject): Content {
  return longTextOf(item, 'content') ?? item['content']
}

/** Text only: what system and developer messages hold. Empty text is dropped. */
export function textParts(value: Content, path: string): TextPart[] {
  return parts(value, path, (item, at) => {
    oneOf(item['type'], `${at}.type`, ['text'])
    return textPart(item, at)
  })
}

/** What a user or a tool may send. Empty text is dropped. */
export function userParts(value: Content, path: string): UserPart[] {
  return parts(value, path, (item, at) => {
    const type = oneOf(item['type'], `${at}.type`, ['text', 'image_url', 'input_audio', 'file'])
    switch (type) {
      case 'text':
        return textPart(item, at)
      case 'image_url':
        return marked(image(item, at), item, at)
      case 'file':
        return marked(file(item, at), item, at)
      case 'input_audio':
        return audio(item, at)
      default:
        return type satisfies never
    }
  })
}

/** What an assistant said: text, refusals (which are text to the next turn) and Mistral's thinking. */
export function assistantParts(value: Content, path: string): AssistantPart[] {
  return parts<AssistantPart>(value, path, (item, at) => {
    const type = oneOf(item['type'], `${at}.type`, ['text', 'refusal', 'thinking'])
    if (type === 'text') return textPart(item, at)
    if (type === 'thinking') return thinkingPart(item, at)
    return { type: 'text', text: string(item['refusal'], `${at}.refusal`) }
  })
}

function parts<T extends AssistantPart | UserPart>(
  value: Content,
  path: string,
  read: (item: JsonObject, path: string) => T | TextPart,
): (T | TextPart)[] {
  if (value instanceof LongText) return [longTextPart(value)]
  if (typeof value === 'string') return value === '' ? [] : [{ type: 'text', text: value }]
  if (!Array.isArray(value)) return refuse(path, 'must be a string or an array of parts')
  const out: (T | TextPart)[] = []
  array(value, path, MAX_PARTS).forEach((item, at) => {
    const where = `${path}[${at}]`
    const part = read(object(item, where), where)
    const isEmpty = part.type === 'text' && part.textBytes === undefined && part.text === ''
    if (!isEmpty) out.push(part)
  })
  return out
}

function textPart(item: JsonObject, path: string): TextPart {
  const long = longTextOf(item, 'text')
  if (long !== null) return marked(longTextPart(long), item, path)
  return marked({ type: 'text', text: string(item['text'], `${path}.text`) }, item, path)
}

/** Mistral's shape: a list of text parts under `thinking` (recorded). */
function thinkingPart(item: JsonObject, path: string): ThinkingPart {
  const value = item['thinking']
  const said =
    typeof value === 'string' ? value : textParts(value, `${path}.thinking`).map((t) => t.text)
  return { type: 'thinking', text: [said].flat().join(''), origin: 'openai-chat' }
}

function marked<T extends Exclude<UserPart, { type: 'audio' }>>(
  part: T,
  item: JsonObject,
  path: string,
): T {
  const cache = cacheMark(item, path)
  if (cache !== undefined) part.cache = cache
  return part
}

function image(item: JsonObject, path: string): Extract<UserPart, { type: 'image' }> {
  const at = `${path}.image_url`
  const value = item['image_url']
  // Mistral's clients send the address itself (recorded).
  if (typeof value === 'string') return { type: 'image', source: mediaSource(value, at) }
  const inner = object(value, at)
  const part: Extract<UserPart, { type: 'image' }> = {
    type: 'image',
    source: mediaSource(string(inner['url'], `${at}.url`), `${at}.url`),
  }
  if (given(inner['detail'])) {
    part.detail = oneOf(inner['detail'], `${at}.detail`, ['auto', 'low', 'high', 'original'])
  }
  return part
}

function audio(item: JsonObject, path: string): Extract<UserPart, { type: 'audio' }> {
  const at = `${path}.input_audio`
  const inner = object(item['input_audio'], at)
  const data = string(inner['data'], `${at}.data`)
  if (data === '') refuse(`${at}.data`, 'must be a non-empty string')
  const format = oneOf(inner['format'], `${at}.format`, ['wav', 'mp3'])
  return { type: 'audio', format, data: standardBase64(data) }
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
  return mediaSource(string(inner['file_data'], `${path}.file_data`), `${path}.file_data`)
}
