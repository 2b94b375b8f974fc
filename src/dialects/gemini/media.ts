/**
 * Images, files and audio as inline bytes.
 * Refuses to fetch: a URL or a foreign file id is an error that says what to send instead.
 */
import type { AudioPart, FilePart, ImagePart, MediaSource, UserPart } from '../../chat/request.js'
import { GatewayError } from '../../errors.js'
import type { Part } from './wire.js'

const AUDIO_TYPES: Readonly<Record<string, string>> = { wav: 'audio/wav', mp3: 'audio/mp3' }

/** What Gemini reads inline; office formats and archives are refused upstream. */
const FILE_TYPE = /^(?:application\/pdf|(?:text|image|audio|video)\/.+)$/

/**
 * One part of a user or tool message; null for an empty text, which the API refuses.
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

function encodeImage(part: ImagePart, path: string): Part {
  const source = inline(part.source, 'image', path)
  return blob(source.mediaType === 'image/jpg' ? 'image/jpeg' : source.mediaType, source.data)
}

function encodeFile(part: FilePart, path: string): Part {
  const source = inline(part.source, 'file', path)
  if (FILE_TYPE.test(source.mediaType)) return blob(source.mediaType, source.data)
  throw refusal(
    `${path}: this upstream reads PDF, text, image, audio and video files, not ` +
      `${source.mediaType.slice(0, 80)}. Convert the file to PDF or text.`,
    path,
  )
}

function encodeAudio(part: AudioPart, path: string): Part {
  const mimeType = Object.hasOwn(AUDIO_TYPES, part.format) ? AUDIO_TYPES[part.format] : undefined
  if (mimeType !== undefined) return blob(mimeType, part.data)
  throw refusal(`${path}: this upstream takes audio as wav or mp3.`, path)
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
          'data: URL, or choose an OpenAI or Anthropic model, which fetch it themselves.'
      : `${path}: a file id of another provider means nothing to this upstream. Send the ${what} ` +
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
