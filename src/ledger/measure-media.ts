/**
 * Measures inline files by what vendors bill: the pages of a PDF, the seconds of sound. A file that could
 * have more than its bytes show is not measured. Pure.
 */
import type { JsonValue } from '../base/json.js'

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
/** Bytes in which a WAV file has its format. */
const SOUND_HEAD_BYTES = 6_144
/** MP3 has at least 8 kbit/s. */
const MIN_MP3_BYTES_PER_SECOND = 1_000
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
  const bytes = Math.floor((data.length * 3) / 4)
  switch (contentsOf(data)) {
    case 'pdf': {
      const count = data.length > MAX_PDF_BASE64 ? null : pagesOf(Buffer.from(data, 'base64'))
      return count === null ? null : { unit: 'pages', count }
    }
    case 'sound': {
      const head = headOf(data, SOUND_HEAD_BYTES)
      const count = isMp3(data, head) ? mp3Seconds(bytes) : secondsOf(head, bytes)
      return count === null ? null : { unit: 'seconds', count }
    }
    case 'text':
      // Readers of MP3 pass what is before the first frame.
      return MP3.test(mediaType) ? { unit: 'seconds', count: mp3Seconds(bytes) } : null
    default:
      return null
  }
}

const MP3 = /^audio\/(?:mp3|mpeg)$/

function mp3Seconds(bytes: number): number {
  return Math.ceil(bytes / MIN_MP3_BYTES_PER_SECOND)
}

/** Whether the file begins with a frame of MP3 with a known rate, after a tag if it has one. */
function isMp3(data: string, head: Buffer): boolean {
  let frame = head
  if (head.toString('latin1', 0, 3) === 'ID3') {
    const size = 10 + [6, 7, 8, 9].reduce((sum, at) => sum * 128 + ((head[at] ?? 0) & 0x7f), 0)
    const from = Math.floor(size / 3)
    frame = Buffer.from(data.slice(from * 4, from * 4 + 16), 'base64').subarray(size - from * 3)
  }
  const [sync = 0, version = 0, rate = 0] = frame
  const hasLayer = (version & 0xe0) === 0xe0 && (version & 0x06) !== 0
  return sync === 0xff && hasLayer && rate >> 4 > 0 && rate >> 4 < 15
}

/** Formats of WAV whose samples have a fixed size: PCM, floating point, A-law, µ-law, extensible. */
const FIXED_SIZE: ReadonlySet<number> = new Set([1, 3, 6, 7, 0xfffe])

/** The seconds of a WAV file, from the format of its samples and the bytes of the file. */
function secondsOf(head: Buffer, fileBytes: number): number | null {
  if (head.toString('latin1', 0, 4) !== 'RIFF' || head.toString('latin1', 8, 12) !== 'WAVE') return null
  for (let at = 12; at + 24 <= head.length;) {
    const size = head.readUInt32LE(at + 4)
    if (head.toString('latin1', at, at + 4) === 'fmt ') {
      const [format, channels] = [head.readUInt16LE(at + 8), head.readUInt16LE(at + 10)]
      const [rate, bits] = [head.readUInt32LE(at + 12), head.readUInt16LE(at + 22)]
      const bytesPerSecond = (rate * channels * bits) / 8
      // A rate that no recording has would make hours look like seconds.
      const isPlain = FIXED_SIZE.has(format) && rate <= 384_000 && bits <= 64 && channels <= 8
      return isPlain && bytesPerSecond > 0 ? Math.ceil(fileBytes / bytesPerSecond) : null
    }
    at += 8 + size + (size % 2)
  }
  return null
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
