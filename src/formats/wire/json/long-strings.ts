/**
 * Keeps the long strings of a body out of the JSON parser: inline data (ASCII without escapes, such as
 * base64) and long texts. The parser gets a short mark in place of each. Afterwards, marks are replaced by
 * the data, or by a text that is decoded when it is first read.
 */
import { transcode } from 'node:buffer'
import { isObject, type JsonObject, type JsonValue } from '../../../base/json.js'
import { LongText, putLongText } from '../../chat/long-text.js'
import { atOnce, type Steps } from '../../../base/steps.js'

/** The inside of a string in the body's bytes. */
export interface Range {
  readonly start: number
  readonly end: number
  /** For a long text: its length in UTF-8 bytes, escapes decoded. Absent for inline data. */
  readonly textBytes?: number
}

/** The long strings of a body. */
interface LongStrings {
  /** The whole body. */
  readonly bytes: Buffer
  /** The body is ASCII. */
  readonly isPlain: boolean
  /** The strings in the order of the bytes. */
  readonly data: readonly Range[]
}

/** Minimum length of inline data; shorter strings are parsed. */
export const DATA_BYTES = 64 * 1024

/** Bytes that are examined or decoded in one step. */
const STEP_BYTES = 2 * 1024 * 1024

/** Minimum length of a long text; shorter texts cost less to parse than to replace. */
const LONG_TEXT_BYTES = 4 * 1024

const SPACE = 32
const QUOTE = 34
const BACKSLASH = 92
const LAST_ASCII = 127
/** Begins escapes of base64 in a URL. */
const PERCENT = 37
const MEDIA_TYPE_BYTES = 256
/** The first unit of a mark: an unpaired surrogate, which valid UTF-8 contains only as an escape. */
const MARK = '\uDC01'
const MARK_CODE = 0xdc01
const ESCAPED_MARK = /"\\u[dD][cC]01/
/** Larger texts are decoded through UTF-16, which is seven times as fast. */
const TRANSCODED_BYTES = 64 * 1024

/**
 * The range of a valid string as inline data or as a long text; null if it is short. `savedBytes`: the
 * difference in bytes between the escaped and the decoded string.
 */
export function longString(bytes: Buffer, range: Range, savedBytes: number): Range | null {
  const length = range.end - range.start
  if (length < LONG_TEXT_BYTES) return null
  if (savedBytes === 0 && atOnce(isInlineData(bytes, range))) return range
  return { ...range, textBytes: length - savedBytes }
}

/** Whether a string is long enough for inline data and has neither JSON escapes nor percent escapes. */
export function* isInlineData(bytes: Buffer, { start, end }: Range): Steps<boolean> {
  if (end - start < DATA_BYTES) return false
  // The media type of a data: URL may contain percent signs.
  let percentFrom = start + MEDIA_TYPE_BYTES
  for (let at = start; at < end; at += STEP_BYTES) {
    if (at > start) yield
    const partEnd = Math.min(end, at + STEP_BYTES)
    if (!isAsWritten(bytes, { start: at, end: partEnd })) return false
    if (bytes.subarray(percentFrom, partEnd).includes(PERCENT)) return false
    percentFrom = partEnd
  }
  return true
}

/** Whether the bytes need no JSON escapes: ASCII without control characters, quotes and backslashes. */
export function isAsWritten(bytes: Buffer, { start, end }: Range): boolean {
  const inside = bytes.subarray(start, end)
  return !inside.includes(BACKSLASH) && !inside.includes(QUOTE) && isPrintable(inside)
}

/** Checks four bytes at a time: the subtraction sets the highest bit of a byte below 32. */
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

/**
 * The text of the bytes with marks in place of the long strings; null if a string of the body looks like a
 * mark.
 */
export function withoutData({ bytes, isPlain, data }: LongStrings): string | null {
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

/** A mark in a value, and the string for it. */
interface Place {
  readonly holder: JsonObject | JsonValue[]
  readonly key: string | number
  readonly range: Range
}

/**
 * Replaces the marks in the value with the long strings, in place and in steps. The value references the
 * bytes until all its long texts have been read.
 */
export function* putData(value: JsonObject | JsonValue[], source: LongStrings): Steps<void> {
  if (source.data.length === 0) return
  const places: Place[] = []
  findMarks(value, source.data, places)
  let bytes = 0
  for (const place of places) {
    put(place, source)
    bytes += place.range.end - place.range.start
    if (bytes < STEP_BYTES) continue
    bytes = 0
    yield
  }
}

function findMarks(value: JsonValue, data: readonly Range[], places: Place[]): void {
  const visit = (holder: Place['holder'], key: Place['key'], item: JsonValue | undefined): void => {
    const range = isMark(item) ? data[Number(item.slice(1))] : undefined
    if (range !== undefined) places.push({ holder, key, range })
    else if (typeof item === 'object') findMarks(item, data, places)
  }
  if (Array.isArray(value)) for (const [at, item] of value.entries()) visit(value, at, item)
  else if (isObject(value)) for (const [key, item] of Object.entries(value)) visit(value, key, item)
}

function put({ holder, key, range }: Place, { bytes, isPlain }: LongStrings): void {
  const text = (): string =>
    range.textBytes === undefined
      ? bytes.toString('latin1', range.start, range.end)
      : textOf(bytes, isPlain, range)
  if (range.textBytes !== undefined && !Array.isArray(holder)) {
    putLongText(holder, String(key), new LongText(range.textBytes, text))
    return
  }
  // An assignment to the key `__proto__` would set the object's prototype.
  Object.defineProperty(holder, key, { ...PLAIN, value: text() })
}

/** The decoded string. The scan has checked that it is valid JSON. */
function textOf(bytes: Buffer, isPlain: boolean, { start, end }: Range): string {
  return String(JSON.parse(decoded(bytes.subarray(start - 1, end + 1), isPlain)))
}

const PLAIN = { configurable: true, enumerable: true, writable: true }

function isMark(value: JsonValue | undefined): value is string {
  return typeof value === 'string' && value.charCodeAt(0) === MARK_CODE
}
