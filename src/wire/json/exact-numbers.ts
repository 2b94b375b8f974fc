/**
 * JSON with integers that a double cannot hold and numbers beyond its range, to values and back as written.
 * Ids of 17 to 20 digits are common as arguments of tools, and `1e400` would be written again as `null`;
 * what a model calls must reach the tool. Knows no field. Between the two such a number is a string with a
 * mark that no text has: a Unicode noncharacter, which is reserved for use inside a program.
 */
import type { JsonValue } from '../../chat/json.js'

const MARK = '\uFDD0'
/** Integers of up to 15 digits are exact. */
const LONG = 16
const QUOTE = 34
const MINUS = 45
const BACKSLASH = 92
const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const MARKED = /"\uFDD0(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"/g

/** What every number of few digits that is beyond a double's range has: an exponent of three digits. */
const LARGE_EXPONENT = /\d[eE]\+?\d{3}/

/** The value of a JSON text, such numbers marked. Throws a SyntaxError like `JSON.parse`. */
export function parseExact(text: string): JsonValue {
  // First, so that only a valid text is searched for numbers: its strings have ends.
  const value = JSON.parse(text) as JsonValue
  if (!hasLongInteger(text) && !LARGE_EXPONENT.test(text)) return value
  return JSON.parse(withMarks(text)) as JsonValue
}

/** Looks at every 16th character: a long integer has one of those. */
function hasLongInteger(text: string): boolean {
  for (let at = LONG - 1; at < text.length; at += LONG) {
    if (!isDigit(text, at)) continue
    let start = at
    let end = at + 1
    while (isDigit(text, start - 1)) start -= 1
    while (isDigit(text, end)) end += 1
    if (end - start >= LONG) return true
  }
  return false
}

function isDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at)
  return code >= 48 && code <= 57
}

/** The valid JSON text with a marked string in place of each number that a double would change. */
function withMarks(text: string): string {
  let out = ''
  let from = 0
  let at = 0
  while (at < text.length) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = afterString(text, at)
    else if (code === MINUS || isDigit(text, at)) {
      NUMBER.lastIndex = at
      NUMBER.test(text)
      const end = NUMBER.lastIndex
      const token = text.slice(at, end)
      if (!isKept(token)) {
        out += `${text.slice(from, at)}"${MARK}${token}"`
        from = end
      }
      at = end
    } else at += 1
  }
  return from === 0 ? text : out + text.slice(from)
}

/** Where the string that begins at `at` has ended. Each character is looked at once. */
function afterString(text: string, at: number): number {
  let next = at + 1
  for (;;) {
    const code = text.charCodeAt(next)
    if (code === QUOTE) return next + 1
    next += code === BACKSLASH ? 2 : 1
  }
}

/** The JSON text of a value, marked numbers as they were written. */
export function stringifyExact(value: JsonValue): string {
  const text = JSON.stringify(value)
  // In a text of one byte per character this looks no further than at the needle.
  return text.includes(`"${MARK}`) ? text.replace(MARKED, '$1') : text
}

/** Whether a double holds the number as it is written. What begins with a zero is small. */
function isKept(token: string): boolean {
  if (token.startsWith('0') || token.startsWith('-0')) return true
  const value = Number(token)
  return /^-?[1-9]\d{15,}$/.test(token) ? String(value) === token : Number.isFinite(value)
}
