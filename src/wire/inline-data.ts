/**
 * Inline data of a body: long strings of plain ASCII, as base64 is. They are most of every large body, and the
 * parser need not see them: it gets a short mark in place of each, and the value gets the string itself, which is
 * a piece of the body's text and no copy. Knows no field.
 */
import { isAscii, transcode } from 'node:buffer'
import { isObject, type JsonObject, type JsonValue } from '../chat/json.js'

/** The inside of a string in the body's bytes. */
export interface Range {
  readonly start: number
  readonly end: number
}

/** Shorter strings are left to the parser. */
export const DATA_BYTES = 64 * 1024

const BACKSLASH = 92
const SPACE = 32
/** What a mark begins with: half a character, which valid UTF-8 does not hold. Only an escape can say it. */
const MARK = '\uDC01'
const MARK_CODE = 0xdc01
const ESCAPED_MARK = /"\\u[dD][cC]01/
/** A larger text is decoded by way of UTF-16, which is seven times as fast. */
const TRANSCODED_BYTES = 64 * 1024

/** True for a string that a JSON parser takes as it is: ASCII, no control character, no escape. */
export function isInlineData(bytes: Buffer, { start, end }: Range): boolean {
  const inside = bytes.subarray(start, end)
  return inside.length >= DATA_BYTES && !inside.includes(BACKSLASH) && isPrintable(inside)
}

/** Four bytes at a time: a byte below 32 borrows from its highest bit. */
function isPrintable(bytes: Buffer): boolean {
  if (!isAscii(bytes)) return false
  const head = (4 - (bytes.byteOffset % 4)) % 4
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + head, (bytes.length - head) >> 2)
  let found = 0
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? 0
    found |= (word - 0x20202020) & ~word & 0x80808080
  }
  const isRest = (byte: number): boolean => byte >= SPACE
  const ends = [bytes.subarray(0, head), bytes.subarray(head + words.length * 4)]
  return found === 0 && ends.every((end) => end.every(isRest))
}

/** The text of the bytes, marks in place of the data; null where a string of the body looks like a mark. */
export function withoutData(
  bytes: Buffer,
  text: string,
  isPlain: boolean,
  data: readonly Range[],
): string | null {
  const decode = (start: number, end: number): string =>
    isPlain ? text.slice(start, end) : utf8(bytes.subarray(start, end))
  if (data.length === 0) return isPlain ? text : utf8(bytes)
  const parts: string[] = []
  let from = 0
  for (const [at, { start, end }] of data.entries()) {
    parts.push(decode(from, start), MARK + String(at))
    from = end
  }
  parts.push(decode(from, bytes.length))
  const rest = parts.join('')
  return ESCAPED_MARK.test(rest) ? null : rest
}

function utf8(bytes: Buffer): string {
  if (bytes.length < TRANSCODED_BYTES) return bytes.toString('utf8')
  return transcode(bytes, 'utf8', 'ucs2').toString('ucs2')
}

/** Puts the data where their marks are. Changes the value that it is given, which is no deeper than a body may be. */
export function putData(value: JsonObject, text: string, data: readonly Range[]): void {
  if (data.length > 0) put(value, (mark) => dataOf(mark, text, data))
}

function dataOf(mark: string, text: string, data: readonly Range[]): string {
  const range = data[Number(mark.slice(1))]
  return range === undefined ? mark : text.slice(range.start, range.end)
}

function put(value: JsonValue, dataOf: (mark: string) => string): void {
  if (Array.isArray(value)) {
    for (const [at, item] of value.entries()) {
      if (isMark(item)) value[at] = dataOf(item)
      else if (typeof item === 'object') put(item, dataOf)
    }
  } else if (isObject(value)) {
    for (const [key, item] of Object.entries(value)) {
      // Assigned, a key `__proto__` would be the object's prototype.
      if (isMark(item)) Object.defineProperty(value, key, { ...PLAIN, value: dataOf(item) })
      else if (typeof item === 'object') put(item, dataOf)
    }
  }
}

const PLAIN = { configurable: true, enumerable: true, writable: true }

function isMark(value: JsonValue | undefined): value is string {
  return typeof value === 'string' && value.charCodeAt(0) === MARK_CODE
}
