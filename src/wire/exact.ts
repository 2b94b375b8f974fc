/**
 * JSON whose integers a double cannot hold, to values and back, digit for digit.
 * Ids of 17 to 20 digits are common as arguments of tools; what a model calls must reach the tool.
 * Knows no field. Between the two such an integer is a string with a mark that no text has: a Unicode
 * noncharacter, which is reserved for use inside a program.
 */
import type { JsonValue } from '../chat/json.js'

const MARK = '\uFDD0'
/** Integers of up to 15 digits are exact. */
const LONG = 16
/** A string, to be stepped over, or a number. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/gs

/** The value of a JSON text, large integers marked. Throws a SyntaxError like `JSON.parse`. */
export function parseExact(text: string): JsonValue {
  if (!hasLongInteger(text)) return JSON.parse(text) as JsonValue
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

/** The JSON text of a value, large integers as they were written. */
export function stringifyExact(value: JsonValue): string {
  const text = JSON.stringify(value)
  // In a text of one byte per character this looks no further than at the needle.
  return text.includes(`"${MARK}`) ? text.replace(/"\uFDD0(-?\d+)"/g, '$1') : text
}

function marked(token: string): string {
  if (!/^-?[1-9]\d{15,}$/.test(token) || String(Number(token)) === token) return token
  return `"${MARK}${token}"`
}
