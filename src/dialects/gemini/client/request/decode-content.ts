/**
 * Decodes the parts of a content: text, media, thoughts, and blocks that only Gemini upstreams support.
 */
import type { JsonObject, JsonValue } from '../../../../chat/json.js'
import { longTextOf, longTextPart } from '../../../../chat/long-text.js'
import type { MediaSource, OpaquePart, TextPart, UserPart } from '../../../../chat/request.js'
import { given, object, refuse, string, text } from '../../../../wire/json/check-fields.js'
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

/** Members of a part, of which it has exactly one. */
const KINDS = [
  'text',
  'inlineData',
  'fileData',
  'functionCall',
  'functionResponse',
  'executableCode',
  'codeExecutionResult',
  'toolCall',
  'toolResponse',
] as const

/** The kind of a part. `none` is a part that has only a thought signature. */
export type PartKind = (typeof KINDS)[number] | 'none'

/** A part with camelCase names, and its kind. */
export interface Part {
  readonly item: JsonObject
  readonly kind: PartKind
  readonly path: string
  readonly signature: string | null
}

/** Reads the common members of a part. Unknown members are not checked. */
export function partOf(value: JsonValue, path: string): Part {
  const item = message(value, path)
  const kinds = KINDS.filter((kind) => given(item[kind]))
  const [kind = 'none', other] = kinds
  if (other !== undefined) refuse(path, `must not have both ${kind} and ${other}`)
  if (kind === 'text') string(item['text'], `${path}.text`)
  const { thoughtSignature } = item
  const signature = given(thoughtSignature)
    ? string(thoughtSignature, `${path}.thoughtSignature`)
    : null
  return { item, kind, path, signature }
}

/** The text of a part; a long text is decoded on first access. */
export function textPart({ item, path }: Part): TextPart {
  const long = longTextOf(item, 'text')
  return long === null
    ? { type: 'text', text: string(item['text'], `${path}.text`) }
    : longTextPart(long)
}

/** The media of a user's or tool's part; null for a part that only Gemini upstreams support. */
export function mediaPart({ item, kind, path }: Part): UserPart | null {
  if (kind === 'inlineData') return inlineData(item['inlineData'], `${path}.inlineData`)
  if (kind === 'fileData') return fileData(item['fileData'], `${path}.fileData`)
  return null
}

/**
 * A part of a model content without equivalent in other formats: executed code, Google's tools, generated
 * images.
 */
export function opaquePart({ item }: Part): OpaquePart {
  return { type: 'opaque', provider: PROVIDER, block: item }
}

function inlineData(value: JsonValue | undefined, path: string): UserPart {
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

function fileData(value: JsonValue | undefined, path: string): UserPart {
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

/** The object of a call or result; empty if absent. */
export function argumentsOf(value: JsonValue | undefined, path: string): JsonObject {
  return given(value) ? object(value, path) : {}
}
