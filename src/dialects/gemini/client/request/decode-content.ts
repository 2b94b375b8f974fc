/**
 * Reads the parts of a content: words, media, thoughts, and blocks that only Google understands.
 * Knows no turns; which content may hold which part is decided here, by its role.
 */
import type { JsonObject, JsonValue } from '../../../../chat/json.js'
import { longTextOf } from '../../../../chat/long-text.js'
import type { MediaSource, OpaquePart, TextPart, UserPart } from '../../../../chat/request.js'
import { given, object, refuse, string, text } from '../../../../wire/json/check-fields.js'
import { standardBase64 } from '../../../../wire/media-source.js'
import { PROVIDER } from '../../shared/names.js'
import { message } from './proto-fields.js'

const MAX_URI = 8_192
const MAX_FILENAME = 1_024
const MEDIA_TYPE = /^[\w.+-]{1,64}\/[\w.+-]{1,128}(?:;.*)?$/

/** Audio by the names that other formats have for it. */
const AUDIO: ReadonlyMap<string, string> = new Map([
  ['audio/wav', 'wav'],
  ['audio/x-wav', 'wav'],
  ['audio/wave', 'wav'],
  ['audio/mp3', 'mp3'],
  ['audio/mpeg', 'mp3'],
])

/** What a part may hold; exactly one of them. */
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

/** What a part holds. `none` is a part with a thought signature alone. */
export type PartKind = (typeof KINDS)[number] | 'none'

/** A part under camelCase names, and what it holds. */
export interface Part {
  readonly item: JsonObject
  readonly kind: PartKind
  readonly path: string
  readonly signature: string | null
}

/** Reads what is common to all parts. A field that nobody here knows is left for Google to judge. */
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

/** The text of a part; a long one is not decoded before it is read. */
export function textPart({ item, path }: Part): TextPart {
  const long = longTextOf(item, 'text')
  if (long === null) return { type: 'text', text: string(item['text'], `${path}.text`) }
  return {
    type: 'text',
    textBytes: long.textBytes,
    get text() {
      return long.text
    },
  }
}

/** What a user or a tool showed; null for a part that only Google understands. */
export function mediaPart({ item, kind, path }: Part): UserPart | null {
  if (kind === 'inlineData') return inlineData(item['inlineData'], `${path}.inlineData`)
  if (kind === 'fileData') return fileData(item['fileData'], `${path}.fileData`)
  return null
}

/** A part of the model's that no other format has: code that ran, tools of Google's, pictures it made. */
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

/** Python's clients write the alphabet for addresses: rewritten only for an upstream that is to be given the bytes. */
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

/** Files in Google's own stores are nobody else's to read; anything else on the web is. */
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

/** Without parameters, in small letters. */
function mediaTypeOf(value: JsonValue | undefined, path: string): string {
  if (typeof value !== 'string' || !MEDIA_TYPE.test(value)) {
    refuse(path, 'must be a media type such as image/png')
  }
  const [type = ''] = value.split(';', 1)
  return type.toLowerCase()
}

/** The object of a call or of a result; absent is empty. */
export function argumentsOf(value: JsonValue | undefined, path: string): JsonObject {
  return given(value) ? object(value, path) : {}
}
