/**
 * JSON written as bytes, for texts of many small parts: no string of sixty pieces is made and flattened
 * (docs/decisions/0037). Knows no line and no row; whoever writes sees to it that there is room.
 */
import { quote } from './quote.js'

const [ZERO, QUOTE, BACKSLASH, BLANK, LAST_ASCII] = [0x30, 0x22, 0x5c, 0x20, 0x7e]
/** Below it digits are put one by one. */
export const MAX_BY_DIGIT = 1e9

/** Writes a whole number from 0 to below `MAX_BY_DIGIT`; answers where it ends. */
export function putDigits(bytes: Buffer, at: number, value: number): number {
  let end = at + 1
  for (let least = 10; value >= least; least *= 10) end += 1
  putLast(bytes, at, end, value)
  return end
}

/** Writes a number, as `String` does; answers where it ends. What is none is 0. At most 25 bytes. */
export function putNumber(bytes: Buffer, at: number, value: number): number {
  if (value >= 0 && value <= Number.MAX_SAFE_INTEGER && Math.floor(value) === value) {
    if (value < MAX_BY_DIGIT) return putDigits(bytes, at, value)
    const high = Math.floor(value / MAX_BY_DIGIT)
    const from = putDigits(bytes, at, high)
    const end = from + 9
    putLast(bytes, from, end, value - high * MAX_BY_DIGIT)
    return end
  }
  return at + bytes.write(String(Number.isFinite(value) ? value : 0), at)
}

/**
 * Writes a text as `quote` does; answers where it ends. At most six bytes for each character, and two. For names:
 * up to some sixty characters, looking at each costs less than a call of `Buffer.write` and two searches.
 */
export function putQuoted(bytes: Buffer, at: number, text: string): number {
  bytes[at] = QUOTE
  let end = at + 1
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i)
    if (code < BLANK || code > LAST_ASCII || code === QUOTE || code === BACKSLASH) {
      return at + bytes.write(quote(text), at)
    }
    bytes[end] = code
    end += 1
  }
  bytes[end] = QUOTE
  return end + 1
}

/** Writes ASCII as it is; answers where it ends. */
export function putAscii(bytes: Buffer, at: number, text: string): number {
  for (let i = 0; i < text.length; i += 1) bytes[at + i] = text.charCodeAt(i)
  return at + text.length
}

/** Writes the last digits of a whole number below `MAX_BY_DIGIT` into a place, with zeros before them. */
function putLast(bytes: Buffer, from: number, end: number, value: number): void {
  let rest = value | 0
  for (let place = end - 1; place >= from; place -= 1) {
    const tens = (rest / 10) | 0
    bytes[place] = ZERO + rest - tens * 10
    rest = tens
  }
}
