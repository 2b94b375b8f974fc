/**
 * Measures inline files by what vendors bill: the pages of a PDF, the seconds of sound. A file that could
 * have more than its bytes show is not measured. Pure.
 */
import type { JsonValue } from '../base/json.js'
import {
  longestMp3,
  soundLength,
  type SoundFile,
  type SoundLength,
} from '../formats/wire/media/sound-length.js'

/** An inline file; `data` is base64. */
export interface InlineFile {
  readonly mediaType: string
  readonly data: string
}

/** The size of a file. */
interface Extent {
  readonly unit: 'pages' | 'seconds'
  readonly count: number
}

/** What a file is by its bytes; `document`: an archive, as those of office programs; `unknown`: anything. */
type Contents = 'picture' | 'pdf' | 'sound' | 'video' | 'text' | 'document' | 'unknown'

/** Bytes in which readers of PDF search for its beginning. */
const HEAD_BYTES = 1_024
/** A larger PDF is not read, so that reading takes a few milliseconds. */
const MAX_PDF_BASE64 = 4 * 1024 * 1024

/* eslint-disable no-control-regex -- the first bytes of files */
/** The first bytes of files; of a container, its type is at byte 8. */
const BEGINNINGS: readonly (readonly [RegExp, Contents])[] = [
  [/^%PDF-/, 'pdf'],
  [/^(?:\xff\xfe|\xfe\xff)/, 'text'],
  [/^(?:\x89PNG\r\n\x1a\n|\xff\xd8\xff|GIF8[79]a|RIFF[^]{4}WEBP|BM[^]{4}\0{4})/, 'picture'],
  [/^[^]{4}ftyp(?:hei[csx]|heim|mif1|avif)/, 'picture'],
  [/^[^]{4}ftypM4[AB]/, 'sound'],
  [/^(?:RIFF[^]{4}WAVE|ID3|OggS|fLaC|FORM[^]{4}AIF[FC]|#!AMR|MThd|caff|\xff[\xe0-\xff])/, 'sound'],
  [/^(?:[^]{4}(?:ftyp|moov|mdat|wide|free|skip)|\x1a\x45\xdf\xa3|RIFF[^]{4}AVI |FLV\x01)/, 'video'],
  [/^(?:\0\0\x01[\xb3\xba]|\x30\x26\xb2\x75|G[^]{187}G)/, 'video'],
  [/^(?:PK\x03\x04|\xd0\xcf\x11\xe0)/, 'document'],
]
/* eslint-enable no-control-regex */

/** Pictures that may have several frames, which may be counted like those of a video. */
function isAnimated(head: Buffer): boolean {
  const text = head.toString('latin1')
  const hasFlag = text.startsWith('VP8X', 12) && ((head[20] ?? 0) & 2) !== 0
  return hasFlag || text.includes('NETSCAPE2.0') || text.includes('acTL')
}

/** What a file is; what a client declares does not count. */
export function contentsOf(data: string): Contents {
  const bytes = headOf(data, HEAD_BYTES)
  const head = bytes.toString('latin1')
  const found = BEGINNINGS.find(([pattern]) => pattern.test(head))?.[1]
  // Two kinds of readers find two files in it.
  if (found !== 'pdf' && head.includes('%PDF-')) return 'unknown'
  if (found === 'picture') return isAnimated(bytes) ? 'unknown' : 'picture'
  if (found !== undefined) return found
  return CONTROL.test(head) ? 'unknown' : 'text'
}

function headOf(data: string, bytes: number): Buffer {
  return Buffer.from(data.slice(0, Math.ceil(bytes / 3) * 4), 'base64')
}

/** Characters that no text has. */
// eslint-disable-next-line no-control-regex -- these are searched for
const CONTROL = /[\0-\x08\x0e-\x1a\x1c-\x1f]/

/** Contents that may have more tokens than bytes. */
const COMPRESSED: ReadonlySet<Contents> = new Set(['pdf', 'sound', 'video'])
const DATA_URL = /^data:[^,]{0,200};base64,/i
/** No shorter text is a file. */
const MIN_FILE_CHARS = 64
/** Enough bytes to tell most text from a file. */
const FIRST_BYTES = 12

/** Documents, sound and videos among the texts of a value. */
export function* filesIn(value: JsonValue): Generator<string> {
  const waiting = [value]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (typeof next === 'string') {
      const data = next.slice(DATA_URL.exec(next.slice(0, 240))?.[0].length ?? 0)
      if (data.length >= MIN_FILE_CHARS && mayBeFile(data) && COMPRESSED.has(contentsOf(data))) yield data
    } else if (typeof next === 'object' && next !== null) {
      for (const inner of Object.values(next)) if (inner !== undefined) waiting.push(inner)
    }
  }
}

function mayBeFile(data: string): boolean {
  const first = headOf(data, FIRST_BYTES).toString('latin1')
  return BEGINNINGS.some(([pattern, contents]) => COMPRESSED.has(contents) && pattern.test(first))
}

/** The pages or seconds of a file; null if they are not known. */
export function extentOf(mediaType: string, data: string): Extent | null {
  switch (contentsOf(data)) {
    case 'pdf': {
      const count = data.length > MAX_PDF_BASE64 ? null : pagesOf(Buffer.from(data, 'base64'))
      return count === null ? null : { unit: 'pages', count }
    }
    case 'sound':
      return secondsOf(soundLength(soundFile(data)))
    case 'text':
      // Readers of MP3 pass what is before the first frame.
      return MP3.test(mediaType) ? secondsOf(longestMp3(bytesOf(data))) : null
    default:
      return null
  }
}

const MP3 = /^audio\/(?:mp3|mpeg)$/

function bytesOf(data: string): number {
  return Math.floor((data.length * 3) / 4)
}

function soundFile(data: string): SoundFile {
  return {
    size: bytesOf(data),
    read: (from, length) => {
      const skipped = from % 3
      const first = ((from - skipped) / 3) * 4
      const text = data.slice(first, first + Math.ceil((skipped + length) / 3) * 4)
      return Buffer.from(text, 'base64').subarray(skipped, skipped + length)
    },
  }
}

/** Whole seconds, as vendors bill. */
function secondsOf({ most }: SoundLength): Extent | null {
  return most === null ? null : { unit: 'seconds', count: Math.ceil(most) }
}

/**
 * The pages of a PDF: the references in the lists of its page tree. Null if a list may stand where it is not
 * seen (compressed objects, encryption), or if one object is referred to twice: a few bytes then have any
 * number of pages.
 */
function pagesOf(file: Buffer): number | null {
  const text = file
    .toString('latin1')
    .replace(/#([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  if (!text.startsWith('%PDF-') || /\/(?:ObjStm|Encrypt|XRef)\b/.test(text)) return null
  const seen = new Set<string>()
  const lists = text.split('/Kids').slice(1)
  for (const rest of lists) {
    const [, list] = /^\s*\[((?:\s*\d{1,10}\s+\d{1,5}\s+R)*)\s*\]/.exec(rest) ?? []
    if (list === undefined) return null
    for (const [, id = ''] of list.matchAll(/(\d{1,10})\s+\d{1,5}\s+R/g)) {
      const name = String(Number(id))
      if (seen.has(name)) return null
      seen.add(name)
    }
  }
  return seen.size === 0 ? null : seen.size
}
