/**
 * Encodes images and documents as content blocks. Media must be inline or at an https URL; the gateway
 * fetches nothing.
 */
import type { JsonObject } from '../../../../chat/json.js'
import type { AudioPart, FilePart, ImagePart } from '../../../../chat/request.js'
import { GatewayError } from '../../../../errors.js'
import { sniffBase64 } from '../../../../wire/sniff-media-type.js'
import { cacheControl, isBlank } from '../../shared/constants.js'

const IMAGES: ReadonlySet<string> = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])

/** The content block of an image, file or audio part; `path` names it in errors. */
export function mediaBlock(part: ImagePart | FilePart | AudioPart, path: string): JsonObject {
  switch (part.type) {
    case 'image':
      return { ...imageBlock(part.source, path), ...cacheControl(part.cache) }
    case 'file':
      return { ...fileBlock(part, path), ...cacheControl(part.cache) }
    case 'audio':
      throw refused(
        path,
        'audio input',
        'Send a transcript as text, or use a model that accepts audio.',
      )
    default:
      return part satisfies never
  }
}

function imageBlock(source: ImagePart['source'], path: string): JsonObject {
  switch (source.kind) {
    case 'base64': {
      // The API rejects data whose type differs from the declared one.
      const media_type = sniffBase64(source.data) ?? source.mediaType.toLowerCase()
      if (!IMAGES.has(media_type)) {
        throw refused(path, `an image of type ${quoted(media_type)}`, 'Use JPEG, PNG, GIF or WebP.')
      }
      return { type: 'image', source: { type: 'base64', media_type, data: source.data } }
    }
    case 'url':
      return { type: 'image', source: { type: 'url', url: https(source.url, path) } }
    case 'file-id':
      throw foreignFile(path)
    default:
      return source satisfies never
  }
}

function fileBlock(part: FilePart, path: string): JsonObject {
  const { source } = part
  const title =
    part.filename === undefined || isBlank(part.filename) ? {} : { title: part.filename }
  switch (source.kind) {
    case 'base64': {
      const media_type = sniffBase64(source.data) ?? source.mediaType.toLowerCase()
      if (IMAGES.has(media_type)) return imageBlock(source, path)
      return { type: 'document', source: documentSource(media_type, source.data, path), ...title }
    }
    case 'url':
      return {
        type: 'document',
        source: { type: 'url', url: https(source.url, path) },
        ...title,
      }
    case 'file-id':
      throw foreignFile(path)
    default:
      return source satisfies never
  }
}

function documentSource(mediaType: string, data: string, path: string): JsonObject {
  if (mediaType === 'application/pdf') return { type: 'base64', media_type: mediaType, data }
  if (!mediaType.startsWith('text/')) {
    throw refused(path, `a file of type ${quoted(mediaType)}`, 'Use a PDF or a text file.')
  }
  const text = Buffer.from(data, 'base64').toString('utf8')
  if (isBlank(text)) throw refused(path, 'an empty file', 'Leave the part out.')
  return { type: 'text', media_type: 'text/plain', data: text }
}

/** True for a URL that the API fetches itself. */
export function readsUrl(url: string): boolean {
  return /^https:\/\//i.test(url)
}

function https(url: string, path: string): string {
  if (readsUrl(url)) return url
  throw refused(path, 'a URL that is not https', 'Send the bytes as a base64 data URL.')
}

function foreignFile(path: string): GatewayError {
  return refused(path, 'a file id of another provider', 'Send the bytes as a base64 data URL.')
}

function quoted(mediaType: string): string {
  return JSON.stringify(mediaType.slice(0, 100))
}

function refused(path: string, description: string, advice: string): GatewayError {
  const message = `${path}: Anthropic models do not accept ${description}. ${advice}`
  return new GatewayError('untranslatable', message, { param: path })
}
