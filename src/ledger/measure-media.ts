/**
 * Measures inline files by what vendors bill: the pages of a PDF, the seconds of sound. A file that could
 * have more than its bytes show is not measured. Pure.
 */

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

/** MP3 has at least 8 kbit/s. */
const MIN_MP3_BYTES_PER_SECOND = 1_000
/** A larger PDF is not read, so that reading takes a few milliseconds. */
const MAX_PDF_BASE64 = 4 * 1024 * 1024

/** The pages or seconds of a file; null if they are not known. */
export function extentOf(mediaType: string, data: string): Extent | null {
  if (/\/(?:x-)?pdf$/.test(mediaType)) {
    const count = data.length > MAX_PDF_BASE64 ? null : pagesOf(Buffer.from(data, 'base64'))
    return count === null ? null : { unit: 'pages', count }
  }
  if (/^audio\/(?:mp3|mpeg)$/.test(mediaType)) {
    return { unit: 'seconds', count: Math.ceil(data.length / MIN_MP3_BYTES_PER_SECOND) }
  }
  if (!/^audio\/(?:x-)?wave?$/.test(mediaType)) return null
  const count = secondsOf(Buffer.from(data.slice(0, 8_192), 'base64'), (data.length * 3) / 4)
  return count === null ? null : { unit: 'seconds', count }
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
