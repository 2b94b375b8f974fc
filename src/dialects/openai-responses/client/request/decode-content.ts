/**
 * Reads what stands inside an input item: text, images, files and audio.
 * Knows no turns; the caller decides who may say what.
 *
 * Source: OpenAI API reference, "Create a model response", `input`, read 2026-11-20.
 */
import type { JsonObject, JsonValue } from '../../../../chat/json.js'
import { LongText, longTextOf, longTextPart } from '../../../../chat/long-text.js'
import type { FilePart, ImagePart, TextPart, UserPart } from '../../../../chat/request.js'
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
const MAX_ID = 512

/** The value of a member that may be a long text, which is not decoded. */
export type Content = JsonValue | LongText | undefined

/** A member of an item. */
export function contentOf(item: JsonObject, key: string): Content {
  return longTextOf(item, key) ?? item[key]
}

/** Text only: what system and developer messages hold. Empty text is dropped. */
export function textParts(value: Content, path: string): TextPart[] {
  return partsOf(value, path, (item, at) => {
    oneOf(item['type'], `${at}.type`, ['input_text'])
    return textPart(item, 'text', at)
  })
}

/** What a user or a tool may send. Empty text is dropped. */
export function userParts(value: Content, path: string): UserPart[] {
  return partsOf<UserPart>(value, path, (item, at) => {
    const type = oneOf(item['type'], `${at}.type`, [
      'input_text',
      'input_image',
      'input_file',
      'input_audio',
    ])
    switch (type) {
      case 'input_text':
        return textPart(item, 'text', at)
      case 'input_image':
        return marked(imagePart(item, at), item, at)
      case 'input_file':
        return marked(filePart(item, at), item, at)
      case 'input_audio':
        return audioPart(item, at)
      default:
        return type satisfies never
    }
  })
}

/** What a model said: text and refusals, which are text to the next turn. */
export function assistantParts(value: Content, path: string): TextPart[] {
  return partsOf(value, path, (item, at) => {
    const type = oneOf(item['type'], `${at}.type`, ['output_text', 'refusal', 'input_text', 'text'])
    return textPart(item, type === 'refusal' ? 'refusal' : 'text', at)
  })
}

function partsOf<T extends UserPart>(
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

function textPart(item: JsonObject, key: string, path: string): TextPart {
  const long = longTextOf(item, key)
  if (long !== null) return marked(longTextPart(long), item, path)
  return marked({ type: 'text', text: string(item[key], `${path}.${key}`) }, item, path)
}

function marked<T extends TextPart | ImagePart | FilePart>(
  part: T,
  item: JsonObject,
  path: string,
): T {
  const cache = cacheMark(item, path)
  if (cache !== undefined) part.cache = cache
  return part
}

function imagePart(item: JsonObject, path: string): ImagePart {
  const { image_url: url, file_id: id, detail } = item
  if (!given(url) && !given(id)) refuse(path, 'must have image_url or file_id')
  const part: ImagePart = {
    type: 'image',
    source: given(url)
      ? mediaSource(string(url, `${path}.image_url`), `${path}.image_url`)
      : { kind: 'file-id', id: text(id, `${path}.file_id`, MAX_ID) },
  }
  if (given(detail)) {
    part.detail = oneOf(detail, `${path}.detail`, ['auto', 'low', 'high', 'original'])
  }
  return part
}

function filePart(item: JsonObject, path: string): FilePart {
  const part: FilePart = { type: 'file', source: fileSource(item, path) }
  if (given(item['filename'])) part.filename = text(item['filename'], `${path}.filename`, 1_024)
  return part
}

function fileSource(item: JsonObject, path: string): FilePart['source'] {
  const { file_id: id, file_url: url, file_data: data } = item
  if (given(id)) return { kind: 'file-id', id: text(id, `${path}.file_id`, MAX_ID) }
  if (given(url)) return mediaSource(string(url, `${path}.file_url`), `${path}.file_url`)
  if (!given(data)) refuse(path, 'must have file_data, file_url or file_id')
  return mediaSource(string(data, `${path}.file_data`), `${path}.file_data`)
}

function audioPart(item: JsonObject, path: string): UserPart {
  const at = `${path}.input_audio`
  const inner = object(item['input_audio'], at)
  const data = text(inner['data'], `${at}.data`, Number.POSITIVE_INFINITY)
  const format = oneOf(inner['format'], `${at}.format`, ['wav', 'mp3'])
  return { type: 'audio', format, data: standardBase64(data) }
}
