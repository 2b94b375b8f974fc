/**
 * Encodes images, documents, audio and video as content blocks. Media must be inline or in S3: Bedrock
 * fetches no web addresses.
 */
import type { GatewayError } from '../../errors.js'
import type { JsonObject } from '../../base/json.js'
import type { AudioPart, FilePart, ImagePart, MediaSource } from '../chat/request.js'
import { sniffBase64, typeOfName } from '../wire/inline-media.js'
import { refused } from '../wire/json/check-fields.js'

/** The kinds of blocks and their formats, by media type. */
const FORMATS: Readonly<Record<string, readonly [kind: string, format: string]>> = {
  'image/png': ['image', 'png'],
  'image/jpeg': ['image', 'jpeg'],
  'image/jpg': ['image', 'jpeg'],
  'image/gif': ['image', 'gif'],
  'image/webp': ['image', 'webp'],
  'application/pdf': ['document', 'pdf'],
  'text/csv': ['document', 'csv'],
  'application/msword': ['document', 'doc'],
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document': ['document', 'docx'],
  'application/vnd.ms-excel': ['document', 'xls'],
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': ['document', 'xlsx'],
  'text/html': ['document', 'html'],
  'text/markdown': ['document', 'md'],
  'text/x-markdown': ['document', 'md'],
  'text/plain': ['document', 'txt'],
  'video/mp4': ['video', 'mp4'],
  'video/quicktime': ['video', 'mov'],
  'video/x-matroska': ['video', 'mkv'],
  'video/webm': ['video', 'webm'],
  'video/x-flv': ['video', 'flv'],
  'video/mpeg': ['video', 'mpeg'],
  'video/mpg': ['video', 'mpg'],
  'video/x-ms-wmv': ['video', 'wmv'],
  'video/wmv': ['video', 'wmv'],
  'video/3gpp': ['video', 'three_gp'],
  'audio/wav': ['audio', 'wav'],
  'audio/x-wav': ['audio', 'wav'],
  'audio/mpeg': ['audio', 'mp3'],
  'audio/mp3': ['audio', 'mp3'],
  'audio/aac': ['audio', 'aac'],
  'audio/flac': ['audio', 'flac'],
  'audio/ogg': ['audio', 'ogg'],
  'audio/opus': ['audio', 'opus'],
  'audio/webm': ['audio', 'webm'],
  'audio/mp4': ['audio', 'm4a'],
  'audio/m4a': ['audio', 'm4a'],
}

/** OpenAI's names of audio formats that differ. */
const AUDIO: Readonly<Record<string, string>> = { pcm16: 'pcm', 'x-wav': 'wav', mpeg: 'mp3' }

/** Letters, digits, single spaces and these characters. */
const NOT_IN_NAMES = /[^A-Za-z0-9()[\]-]+/g
const MAX_NAME = 60

/** The names of the documents of one request, which must be different. */
export class DocumentNames {
  private readonly used = new Set<string>()

  /** A valid name for a document that the client calls `filename`. */
  add(filename: string | undefined, format: string): string {
    const whole = filename ?? ''
    const isNamed = whole.toLowerCase().endsWith(`.${format}`)
    const stem = isNamed ? whole.slice(0, -format.length - 1) : whole
    const plain = stem.replace(NOT_IN_NAMES, ' ').trim().slice(0, MAX_NAME).trim()
    const base = plain === '' ? 'document' : plain
    let name = base
    for (let count = 2; this.used.has(name); count += 1) name = `${base} (${count})`
    this.used.add(name)
    return name
  }
}

/** The content block; `path` names the part in errors. Throws `GatewayError(untranslatable)`. */
export function mediaBlock(
  part: ImagePart | FilePart | AudioPart,
  path: string,
  names: DocumentNames,
): JsonObject {
  if (part.type === 'audio') {
    const format = AUDIO[part.format] ?? part.format
    return { audio: { format, source: { bytes: part.data } } }
  }
  const { mediaType, source } = located(part.source, path)
  const [kind, format] = formatOf(mediaType, path)
  if (part.type === 'image' && kind !== 'image') throw wrongType(path, mediaType)
  if (kind !== 'document') return { [kind]: { format, source } }
  const name = names.add(part.type === 'file' ? part.filename : undefined, format)
  return { document: { format, name, source } }
}

/** True for an address that Bedrock reads itself. */
export function readsUrl(url: string): boolean {
  return /^s3:\/\//i.test(url)
}

interface Located {
  readonly mediaType: string
  readonly source: JsonObject
}

function located(source: MediaSource, path: string): Located {
  switch (source.kind) {
    case 'base64': {
      // The API rejects data whose type differs from the declared one.
      const mediaType = sniffBase64(source.data) ?? source.mediaType.toLowerCase()
      return { mediaType, source: { bytes: source.data } }
    }
    case 'url': {
      const { url } = source
      if (!readsUrl(url)) throw refusedMedia(path, 'a URL', 'Send the bytes as a base64 data URL.')
      const extension = url.slice(url.lastIndexOf('.') + 1).toLowerCase()
      return { mediaType: typeOfName(url) ?? extension, source: { s3Location: { uri: url } } }
    }
    case 'file-id':
      throw refusedMedia(path, 'a file id of another provider', 'Send the bytes as a base64 data URL.')
    default:
      return source satisfies never
  }
}

function formatOf(mediaType: string, path: string): readonly [kind: string, format: string] {
  const known = Object.hasOwn(FORMATS, mediaType) ? FORMATS[mediaType] : undefined
  if (known !== undefined) return known
  if (mediaType.startsWith('text/')) return ['document', 'txt']
  throw wrongType(path, mediaType)
}

function wrongType(path: string, mediaType: string): GatewayError {
  return refusedMedia(
    path,
    `media of type ${JSON.stringify(mediaType.slice(0, 100))} here`,
    'Use PNG, JPEG, GIF or WebP for images, and PDF, CSV, Word, Excel, HTML, Markdown or text for files.',
  )
}

function refusedMedia(path: string, description: string, advice: string): GatewayError {
  return refused(path, `Bedrock does not accept ${description}. ${advice}`)
}
