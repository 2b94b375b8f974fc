/**
 * Encodes images, files and audio as inline bytes, or by URL if Gemini reads it. The gateway fetches nothing:
 * any other URL, or a file id of another provider, is an error.
 */
import type {
  AudioPart,
  FilePart,
  ImagePart,
  MediaSource,
  UserPart,
} from '../../../../chat/request.js'
import { GatewayError } from '../../../../errors.js'
import { sniffBase64 } from '../../../../wire/sniff-media-type.js'
import type { Part } from '../../shared/constants.js'

const AUDIO_TYPES: Readonly<Record<string, string>> = { wav: 'audio/wav', mp3: 'audio/mp3' }

/** Types that Gemini accepts inline; it rejects office formats and archives. */
const FILE_TYPE = /^(?:application\/pdf|(?:text|image|audio|video)\/.+)$/

/**
 * One part of a user or tool message; null for an empty text, which the API rejects.
 * Throws `GatewayError(untranslatable)` naming the part's message (`path`).
 */
export function encodeUserPart(part: UserPart, path: string): Part | null {
  switch (part.type) {
    case 'text':
      return part.text === '' ? null : { text: part.text }
    case 'image':
      return encodeImage(part, path)
    case 'file':
      return encodeFile(part, path)
    case 'audio':
      return encodeAudio(part, path)
    default:
      part satisfies never
      return null
  }
}

/**
 * True for a URL that the API reads itself: uploads to its Files API, and YouTube videos.
 */
export function readsUrl(url: string): boolean {
  return /^https:\/\/(?:generativelanguage\.googleapis\.com\/v\w+\/files\/|(?:www\.)?youtube\.com\/watch\?|youtu\.be\/)/.test(
    url,
  )
}

function encodeImage({ source }: ImagePart, path: string): Part {
  if (source.kind === 'url' && readsUrl(source.url)) return { fileData: { fileUri: source.url } }
  const { mediaType, data } = inline(source, 'image', path)
  const type = sniffBase64(data) ?? mediaType
  return blob(type === 'image/jpg' ? 'image/jpeg' : type, data)
}

function encodeFile({ source }: FilePart, path: string): Part {
  if (source.kind === 'url' && readsUrl(source.url)) return { fileData: { fileUri: source.url } }
  const { mediaType, data } = inline(source, 'file', path)
  const type = sniffBase64(data) ?? mediaType
  if (FILE_TYPE.test(type)) return blob(type, data)
  throw refusal(
    `${path}: this upstream reads PDF, text, image, audio and video files, not ` +
      `${type.slice(0, 80)}. Convert the file to PDF or text.`,
    path,
  )
}

function encodeAudio(part: AudioPart, path: string): Part {
  const mimeType = Object.hasOwn(AUDIO_TYPES, part.format) ? AUDIO_TYPES[part.format] : undefined
  if (mimeType !== undefined) return blob(mimeType, part.data)
  throw refusal(`${path}: this upstream accepts audio as wav or mp3. Convert it.`, path)
}

function inline(
  source: MediaSource,
  what: string,
  path: string,
): Extract<MediaSource, { kind: 'base64' }> {
  if (source.kind === 'base64') return source
  throw refusal(
    source.kind === 'url'
      ? `${path}: the gateway does not fetch URLs for this upstream. Send the ${what} as a base64 ` +
          'data: URL, or use an OpenAI or Anthropic model, which fetch it themselves.'
      : `${path}: this upstream does not accept file ids of another provider. Send the ${what} ` +
          'inline as base64.',
    path,
  )
}

function blob(mimeType: string, data: string): Part {
  return { inlineData: { mimeType, data } }
}

function refusal(message: string, path: string): GatewayError {
  return new GatewayError('untranslatable', message, { param: path })
}
