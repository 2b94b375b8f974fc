/**
 * Decodes the images and documents of a request. The text of a document becomes an inline file, which each
 * upstream encoder expresses in its own format.
 *
 * Source: Claude API reference, "Messages", and the types of its SDK 1.12, read 2026-11-22.
 */
import type { JsonObject } from '../../../../chat/json.js'
import type { FilePart, ImagePart, MediaSource } from '../../../../chat/request.js'
import {
  boolean,
  given,
  object,
  oneOf,
  refuse,
  string,
  text,
} from '../../../../wire/json/check-fields.js'
import { decodeMediaUrl } from '../../../../wire/decode-data-url.js'
import { standardBase64 } from '../../../../wire/standard-base64.js'
import { PROVIDER } from '../../shared/constants.js'
import type { NativeFields } from './native-fields.js'

const IMAGE_TYPES = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'] as const
const MAX_FILE_ID = 512

/** Decodes an image block. */
export function decodeImage(item: JsonObject, path: string): ImagePart {
  const at = `${path}.source`
  const source = object(item.source, at)
  const type = oneOf(source.type, `${at}.type`, ['base64', 'url', 'file'])
  if (type !== 'base64') return { type: 'image', source: reference(source, type, at) }
  const mediaType = oneOf(source.media_type, `${at}.media_type`, IMAGE_TYPES)
  return { type: 'image', source: { kind: 'base64', mediaType, data: base64(source, at) } }
}

/** Decodes a document block, except one whose source is content blocks. */
export function decodeDocument(item: JsonObject, path: string, native: NativeFields): FilePart {
  const at = `${path}.source`
  const source = object(item.source, at)
  const part: FilePart = { type: 'file', source: documentSource(source, at) }
  if (given(item.title)) part.filename = string(item.title, `${path}.title`).slice(0, 1_024)
  recordNativeMembers(item, path, native)
  return part
}

/** Records the members of a document that only Anthropic upstreams accept. */
export function recordNativeMembers(item: JsonObject, path: string, native: NativeFields): void {
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

function documentSource(source: JsonObject, path: string): MediaSource {
  const type = oneOf(source.type, `${path}.type`, ['base64', 'text', 'url', 'file'])
  switch (type) {
    case 'base64': {
      const mediaType = oneOf(source.media_type, `${path}.media_type`, ['application/pdf'])
      return { kind: 'base64', mediaType, data: base64(source, path) }
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
