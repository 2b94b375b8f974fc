/** Segment files of the spool: lines with checksums. */
import { readFileSync } from 'node:fs'
import { crc32 } from 'node:zlib'

/** One segment file. `lines` reads it. */
export interface Segment {
  readonly path: string
  /** The lines whose checksum is right, in order; empty if the file does not exist any more. */
  lines(): string[]
  /** The number of truncated or damaged lines that the last call of `lines` found. */
  readonly damaged: number
}

/** A segment file on disk. */
export class SegmentFile implements Segment {
  readonly path: string
  damaged = 0

  constructor(path: string) {
    this.path = path
  }

  lines(): string[] {
    this.damaged = 0
    const good: string[] = []
    for (const line of textOf(this.path).split('\n')) {
      if (line === '') continue
      const text = line.slice(SUM_BYTES + 1)
      if (line.slice(0, SUM_BYTES + 1) === `${checksum(text)} `) good.push(text)
      else this.damaged += 1
    }
    return good
  }
}

/** Empty if the file does not exist any more: another process has read and removed it. */
function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (isMissing(error)) return ''
    throw error
  }
}

/** Whether the error means that a file does not exist. */
export function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}

function checksum(text: string): string {
  return crc32(text).toString(16).padStart(SUM_BYTES, '0')
}

const SUM_BYTES = 8
const [BLANK, BREAK] = [0x20, 0x0a]
const DIGITS = Buffer.from('0123456789abcdef')
/** Reused by each call of `checksummedLines`. */
let scratch = Buffer.allocUnsafeSlow(64 * 1024)

/** One line for each text, with its checksum at the beginning. The buffer is valid until the next call. */
export function checksummedLines(texts: readonly string[]): Buffer {
  let maxBytes = 0
  for (const text of texts) maxBytes += SUM_BYTES + 2 + 3 * text.length
  if (maxBytes > scratch.length) scratch = Buffer.allocUnsafeSlow(2 * maxBytes)
  let offset = 0
  for (const text of texts) {
    const from = offset + SUM_BYTES + 1
    const end = from + scratch.write(text, from)
    let sum = crc32(scratch.subarray(from, end))
    for (let digit = from - 2; digit >= offset; digit -= 1) {
      scratch[digit] = DIGITS[sum & 0xf] ?? 0
      sum >>>= 4
    }
    scratch[from - 1] = BLANK
    scratch[end] = BREAK
    offset = end + 1
  }
  return scratch.subarray(0, offset)
}
