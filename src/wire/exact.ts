/**
 * JSON with integers that a double cannot hold and numbers beyond its range, to values and back as written.
 * Ids of 17 to 20 digits are common as arguments of tools, and `1e400` would be written again as `null`;
 * what a model calls must reach the tool. Knows no field. Between the two such a number is a string with a
 * mark that no text has: a Unicode noncharacter, which is reserved for use inside a program.
 */
import type { JsonValue } from '../chat/json.js'

const MARK = '\uFDD0'
/** Integers of up to 15 digits are exact. */
const LONG = 16
/** A string, to be stepped over, or a number. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/gs
const MARKED = /"\uFDD0(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"/g

/** What every number of few digits that is beyond a double's range has: an exponent of three digits. */
const LARGE_EXPONENT = /\d[eE]\+?\d{3}/

/** The value of a JSON text, such numbers marked. Throws a SyntaxError like `JSON.parse`. */
export function parseExact(text: string): JsonValue {
  if (!hasLongInteger(text) && !LARGE_EXPONENT.test(text)) return JSON.parse(text) as JsonValue
  return JSON.parse(text.replace(TOKEN, marked)) as JsonValue
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

/** The JSON text of a value, marked numbers as they were written. */
export function stringifyExact(value: JsonValue): string {
  const text = JSON.stringify(value)
  // In a text of one byte per character this looks no further than at the needle.
  return text.includes(`"${MARK}`) ? text.replace(MARKED, '$1') : text
}

function marked(token: string): string {
  // What begins with a zero is small or no number, and left to `JSON.parse` to refuse.
  if (/^(?:"|-?0)/.test(token)) return token
  const value = Number(token)
  const isKept = /^-?[1-9]\d{15,}$/.test(token) ? String(value) === token : Number.isFinite(value)
  return isKept ? token : `"${MARK}${token}"`
}
