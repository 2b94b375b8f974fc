/**
 * The long strings of a body: inline data, which is plain ASCII as base64 is, and long texts. They are most of every
 * large body, and the parser need not see them: it gets a short mark in place of each. Then the value gets the data
 * itself, and a text that is decoded when it is first read.
 */
import { transcode } from 'node:buffer'
import { isObject, type JsonObject, type JsonValue } from '../../chat/json.js'
import { LongText, putLongText } from '../../chat/long-text.js'

/** The inside of a string in the body's bytes. */
export interface Range {
  readonly start: number
  readonly end: number
  /** Of a long text: its length in UTF-8, escapes decoded. Absent for inline data. */
  readonly textBytes?: number
}

/** Shorter strings are left to the parser. */
export const DATA_BYTES = 64 * 1024

/** Shorter texts cost less to parse than to put back. */
const LONG_TEXT_BYTES = 4 * 1024

const SPACE = 32
const QUOTE = 34
const BACKSLASH = 92
const LAST_ASCII = 127
/** Percent escapes: base64 in an address. */
const PERCENT = 37
const MEDIA_TYPE_BYTES = 256
/** What a mark begins with: half a character, which valid UTF-8 does not hold. Only an escape can say it. */
const MARK = '\uDC01'
const MARK_CODE = 0xdc01
const ESCAPED_MARK = /"\\u[dD][cC]01/
/** A larger text is decoded by way of UTF-16, which is seven times as fast. */
const TRANSCODED_BYTES = 64 * 1024

/** What a string is that a parser takes, if it is long; `savedBytes` is what its escapes take more than they say. */
export function longString(bytes: Buffer, range: Range, savedBytes: number): Range | null {
  const length = range.end - range.start
  if (length < LONG_TEXT_BYTES) return null
  if (savedBytes === 0 && isInlineData(bytes, range)) return range
  return { ...range, textBytes: length - savedBytes }
}

/** True for a string that a JSON parser takes as it is, and that is base64 without escapes. */
export function isInlineData(bytes: Buffer, range: Range): boolean {
  if (range.end - range.start < DATA_BYTES || !isAsWritten(bytes, range)) return false
  // A media type before the data may hold such characters.
  const data = bytes.subarray(range.start + MEDIA_TYPE_BYTES, range.end)
  return !data.includes(PERCENT)
}

/** True where JSON writes the bytes as they are: ASCII, no control character, quote or backslash. */
export function isAsWritten(bytes: Buffer, { start, end }: Range): boolean {
  const inside = bytes.subarray(start, end)
  return !inside.includes(BACKSLASH) && !inside.includes(QUOTE) && isPrintable(inside)
}

/** Four bytes at a time: a byte below 32 borrows from its highest bit. */
function isPrintable(bytes: Buffer): boolean {
  const head = (4 - (bytes.byteOffset % 4)) % 4
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + head, (bytes.length - head) >> 2)
  let found = 0
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? 0
    found |= ((word - 0x20202020) & ~word) | word
  }
  const isRest = (byte: number): boolean => byte >= SPACE && byte <= LAST_ASCII
  const ends = [bytes.subarray(0, head), bytes.subarray(head + words.length * 4)]
  return (found & 0x80808080) === 0 && ends.every((end) => end.every(isRest))
}

/** The text of the bytes, marks in place of the long strings; null if a string of the body looks like a mark. */
export function withoutData(
  bytes: Buffer,
  isPlain: boolean,
  data: readonly Range[],
): string | null {
  if (data.length === 0) return decoded(bytes, isPlain)
  const parts: string[] = []
  let from = 0
  for (const [at, { start, end }] of data.entries()) {
    parts.push(decoded(bytes.subarray(from, start), isPlain), MARK + String(at))
    from = end
  }
  parts.push(decoded(bytes.subarray(from), isPlain))
  const rest = parts.join('')
  return ESCAPED_MARK.test(rest) ? null : rest
}

function decoded(bytes: Buffer, isPlain: boolean): string {
  if (isPlain) return bytes.toString('latin1')
  if (bytes.length < TRANSCODED_BYTES) return bytes.toString('utf8')
  return transcode(bytes, 'utf8', 'ucs2').toString('ucs2')
}

/**
 * Puts the long strings where their marks are. Changes the value that it is given, which is no deeper than a body may
 * be. The value keeps the bytes while one of its texts has not been read.
 */
export function putData(
  value: JsonObject,
  bytes: Buffer,
  isPlain: boolean,
  data: readonly Range[],
): void {
  if (data.length > 0) new Filling(bytes, isPlain, data).fill(value)
}

/** What is left to do at a mark. */
class Filling {
  private readonly bytes: Buffer
  private readonly isPlain: boolean
  private readonly data: readonly Range[]

  constructor(bytes: Buffer, isPlain: boolean, data: readonly Range[]) {
    this.bytes = bytes
    this.isPlain = isPlain
    this.data = data
  }

  fill(value: JsonValue): void {
    if (Array.isArray(value)) {
      for (const [at, item] of value.entries()) {
        if (isMark(item)) value[at] = this.stringOf(item)
        else if (typeof item === 'object') this.fill(item)
      }
    } else if (isObject(value)) {
      for (const [key, item] of Object.entries(value)) {
        if (isMark(item)) this.put(value, key, item)
        else if (typeof item === 'object') this.fill(item)
      }
    }
  }

  private put(holder: JsonObject, key: string, mark: string): void {
    const range = this.rangeOf(mark)
    if (range?.textBytes !== undefined) {
      const { bytes, isPlain } = this
      putLongText(holder, key, new LongText(range.textBytes, () => textOf(bytes, isPlain, range)))
      return
    }
    // Assigned, a key `__proto__` would be the object's prototype.
    Object.defineProperty(holder, key, { ...PLAIN, value: this.stringOf(mark) })
  }

  private stringOf(mark: string): string {
    const range = this.rangeOf(mark)
    if (range === undefined) return mark
    if (range.textBytes !== undefined) return textOf(this.bytes, this.isPlain, range)
    return this.bytes.toString('latin1', range.start, range.end)
  }

  private rangeOf(mark: string): Range | undefined {
    return this.data[Number(mark.slice(1))]
  }
}

/** Parsed with its quotes; the scan has seen that a parser takes it. */
function textOf(bytes: Buffer, isPlain: boolean, { start, end }: Range): string {
  return String(JSON.parse(decoded(bytes.subarray(start - 1, end + 1), isPlain)))
}

const PLAIN = { configurable: true, enumerable: true, writable: true }

function isMark(value: JsonValue | undefined): value is string {
  return typeof value === 'string' && value.charCodeAt(0) === MARK_CODE
}
