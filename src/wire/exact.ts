/**
 * JSON whose integers a double cannot hold, to values and back, digit for digit.
 * Ids of 17 to 20 digits are common as arguments of tools; what a model calls must reach the tool.
 * Knows no field. Between the two such an integer is a string with a mark that no text has: a Unicode
 * noncharacter, which is reserved for use inside a program.
 */
import type { JsonValue } from '../chat/json.js'

const MARK = '\uFDD0'
/** Integers of up to 15 digits are exact. */
const LONG = /\d{16}/
/** A string, to be stepped over, or a number. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/gs

/** The value of a JSON text, large integers marked. Throws a SyntaxError like `JSON.parse`. */
export function parseExact(text: string): JsonValue {
  if (!LONG.test(text)) return JSON.parse(text) as JsonValue
  return JSON.parse(text.replace(TOKEN, marked)) as JsonValue
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
