/** Decodes images and files of messages; `wire/decode-data-url.ts` decodes their `data:` and web URLs. */
import type { JsonObject } from '../../../../chat/json.js'
import type { MediaSource, UserPart } from '../../../../chat/request.js'
import { given, object, oneOf, refuse, string, text } from '../../../../wire/json/check-fields.js'
import { decodeMediaUrl } from '../../../../wire/decode-data-url.js'

/** An `image_url` part. */
export function decodeImage(item: JsonObject, path: string): Extract<UserPart, { type: 'image' }> {
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

/** A `file` part. */
export function decodeFile(item: JsonObject, path: string): Extract<UserPart, { type: 'file' }> {
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
