/** Decodes images, audio and files of a content: `inlineData` and `fileData`. */
import type { JsonObject, JsonValue } from '../../../../chat/json.js'
import type { MediaSource, UserPart } from '../../../../chat/request.js'
import { given, refuse, string, text } from '../../../../wire/json/check-fields.js'
import { standardBase64 } from '../../../../wire/standard-base64.js'
import { PROVIDER } from '../../shared/constants.js'
import { message } from './proto-fields.js'

const MAX_URI = 8_192
const MAX_FILENAME = 1_024
const MEDIA_TYPE = /^[\w.+-]{1,64}\/[\w.+-]{1,128}(?:;.*)?$/

/** Media types of audio, and the format names of other dialects. */
const AUDIO: ReadonlyMap<string, string> = new Map([
  ['audio/wav', 'wav'],
  ['audio/x-wav', 'wav'],
  ['audio/wave', 'wav'],
  ['audio/mp3', 'mp3'],
  ['audio/mpeg', 'mp3'],
])

/** Data in the request: an image, audio or a file. */
export function decodeInlineData(value: JsonValue | undefined, path: string): UserPart {
  const blob = message(value, path)
  const mediaType = mediaTypeOf(blob['mimeType'], `${path}.mimeType`)
  const data = string(blob['data'], `${path}.data`)
  if (data === '') refuse(`${path}.data`, 'must hold base64 data')
  const format = AUDIO.get(mediaType)
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
export function decodeFileData(value: JsonValue | undefined, path: string): UserPart {
  const file = message(value, path)
  const uri = text(file['fileUri'], `${path}.fileUri`, MAX_URI)
  const { mimeType } = file
  const mediaType = given(mimeType) ? mediaTypeOf(mimeType, `${path}.mimeType`) : ''
  const source = sourceOf(uri)
  return mediaType.startsWith('image/')
    ? { type: 'image', source }
    : { type: 'file', source, ...filename(file, path) }
}

/** The source of a URI: files in Google's Files API are readable only by Google, other web URLs by all. */
function sourceOf(uri: string): MediaSource {
  const isOwn = /^https:\/\/generativelanguage\.googleapis\.com\//i.test(uri)
  if (!isOwn && /^https?:\/\//i.test(uri)) return { kind: 'url', url: uri }
  return { kind: 'file-id', id: uri, origin: PROVIDER }
}

function filename(holder: JsonObject, path: string): { filename?: string } {
  const name = holder['displayName']
  return given(name) && name !== ''
    ? { filename: text(name, `${path}.displayName`, MAX_FILENAME) }
    : {}
}

/** The media type in lower case, without parameters. */
function mediaTypeOf(value: JsonValue | undefined, path: string): string {
  if (typeof value !== 'string' || !MEDIA_TYPE.test(value)) {
    refuse(path, 'must be a media type such as image/png')
  }
  const [type = ''] = value.split(';', 1)
  return type.toLowerCase()
}
