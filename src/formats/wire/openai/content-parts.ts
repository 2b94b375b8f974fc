/**
 * Content parts that chat completions and Responses have in common: lists of parts, text and audio.
 * A long text stays encoded until it is read.
 */
import { isObject, type JsonObject, type JsonValue } from '../../../base/json.js'
import { LongText, longTextOf, longTextPart } from '../../chat/long-text.js'
import type { AssistantPart, AudioPart, FilePart, ImagePart, TextPart, UserPart } from '../../chat/request.js'
import { withCacheMark } from '../prompt-cache-markers.js'
import { array, object, oneOf, refuse, string, text } from '../json/check-fields.js'
import { decodeMediaUrl, standardBase64 } from '../inline-media.js'
import { SOUND_INPUT_FORMATS, soundFormatOf } from '../media/sound.js'

/** More than the 1,500 images and pages that any provider accepts in one request. */
const MAX_PARTS = 4_096

/** The value of a member that may be a long text. */
export type Content = JsonValue | LongText | undefined

/** A member of a message or item. */
export function contentOf(item: JsonObject, key: string): Content {
  return longTextOf(item, key) ?? item[key]
}

/**
 * The parts of a content: a string is one text part, an array is decoded item by item with `decodePart`.
 * Empty text parts are dropped. Throws `malformed_request` for any other value and for more than 4,096 parts.
 */
export function decodeParts<T extends AssistantPart | UserPart>(
  value: Content,
  path: string,
  decodePart: (item: JsonObject, path: string) => T | TextPart,
): (T | TextPart)[] {
  if (value instanceof LongText) return [longTextPart(value)]
  if (typeof value === 'string') return value === '' ? [] : [{ type: 'text', text: value }]
  if (!Array.isArray(value)) return refuse(path, 'must be a string or an array of parts')
  const out: (T | TextPart)[] = []
  array(value, path, MAX_PARTS).forEach((item, at) => {
    const itemPath = `${path}[${at}]`
    const part = decodePart(object(item, itemPath), itemPath)
    const isEmpty = part.type === 'text' && part.textBytes === undefined && part.text === ''
    if (!isEmpty) out.push(part)
  })
  return out
}

/** The types of parts in a format, and the decoders of those that differ between the formats. */
interface UserPartTypes {
  readonly text: string
  readonly image: readonly [type: string, decode: (item: JsonObject, path: string) => ImagePart]
  readonly file: readonly [type: string, decode: (item: JsonObject, path: string) => FilePart]
}

/** The parts of a user message or a tool result. Empty text is dropped. Throws as `decodeParts`. */
export function decodeUserParts(value: Content, path: string, types: UserPartTypes): UserPart[] {
  const [imageType, decodeImage] = types.image
  const [fileType, decodeFile] = types.file
  const known = [types.text, imageType, 'input_audio', fileType, ...Object.keys(MEDIA)]
  return decodeParts<UserPart>(value, path, (item, partPath) => {
    const type = oneOf(item['type'], `${partPath}.type`, known)
    if (type === types.text) return decodeTextPart(item, 'text', partPath)
    if (type === 'input_audio') return decodeAudioPart(item, partPath)
    const media = MEDIA[type]
    if (media !== undefined) return decodeMediaPart(item, partPath, media)
    const part = type === imageType ? decodeImage(item, partPath) : decodeFile(item, partPath)
    return withCacheMark(part, item, partPath)
  })
}

/** A text part; `key` is the member that holds the text. */
export function decodeTextPart(item: JsonObject, key: string, path: string): TextPart {
  const long = longTextOf(item, key)
  const part: TextPart =
    long === null ? { type: 'text', text: string(item[key], `${path}.${key}`) } : longTextPart(long)
  return withCacheMark(part, item, path)
}

/** The format of sound in lower case; clients also send its media type, or none beside a `data:` URL. */
function soundFormat(value: JsonValue | undefined, data: string): JsonValue | undefined {
  const stated = value ?? /^data:([^;,]+)/i.exec(data.slice(0, 128))?.[1]
  if (typeof stated !== 'string') return stated
  const format = stated.toLowerCase()
  return soundFormatOf(format) ?? format
}

/**
 * Parts for video and sound that OpenAI does not have, by type. Sources: OpenRouter, "Video Inputs";
 * DashScope and Moonshot, `video_url`; Volcengine Ark, `input_video`; vLLM, "Multimodal Inputs"
 * (`audio_url`). Read 2026-11-30.
 */
const MEDIA: Readonly<Partial<Record<string, 'audio' | 'video'>>> = {
  audio_url: 'audio',
  input_video: 'video',
  video_url: 'video',
}

/** A video or sound whose address is in the member `MEDIA_url`, as a text or an object with `url`. */
function decodeMediaPart(item: JsonObject, path: string, media: 'audio' | 'video'): FilePart | AudioPart {
  const at = `${path}.${media}_url`
  const value = item[`${media}_url`]
  const url = string(isObject(value) ? value['url'] : value, isObject(value) ? `${at}.url` : at)
  const source = decodeMediaUrl(url, at)
  if (source.kind === 'url') return { type: 'file', source: { ...source, media } }
  const format = source.kind === 'base64' ? soundFormatOf(source.mediaType) : undefined
  if (media === 'video' || format === undefined || source.kind !== 'base64') return { type: 'file', source }
  return { type: 'audio', format, data: source.data }
}

/** An `input_audio` part; sound by URL, as clients of Qwen send it, is a file. */
function decodeAudioPart(item: JsonObject, path: string): AudioPart | FilePart {
  const at = `${path}.input_audio`
  const audio = object(item['input_audio'], at)
  const data = text(audio['data'], `${at}.data`, Number.POSITIVE_INFINITY)
  if (/^https?:/i.test(data.slice(0, 6))) {
    return { type: 'file', source: { kind: 'url', url: text(data, `${at}.data`, 8_192), media: 'audio' } }
  }
  // Clients of Qwen send a data: URL, often without a media type.
  const format = oneOf(soundFormat(audio['format'], data), `${at}.format`, SOUND_INPUT_FORMATS)
  return { type: 'audio', format, data: standardBase64(data) }
}
