/**
 * Parses and serialises JSON without changing numbers that a double cannot hold: arguments of tools often
 * have ids of 17 to 20 digits, and `1e400` would become `null`. In between, such a number is a string that
 * begins with a mark, a Unicode noncharacter, which is reserved for use inside a program.
 */
import type { JsonObject, JsonValue } from '../../../base/json.js'
import { atOnce, type Steps } from '../../../base/steps.js'

const MARK = '\uFDD0'
/** Integers of up to 15 digits are exact. */
const LONG = 16
/** Characters that are searched for numbers in one step. */
const STEP_CHARS = 1024 * 1024
const QUOTE = 34
const MINUS = 45
const BACKSLASH = 92
const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const MARKED = /"\uFDD0(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"/g

/** A number of few digits beyond the range of a double has an exponent of three digits. */
const LARGE_EXPONENT = /\d[eE]\+?\d{3}/

/** The value of a JSON text, with such numbers as marked strings. Throws a SyntaxError like `JSON.parse`. */
export function parseExact(text: string): JsonValue {
  // The search for numbers below requires valid JSON.
  const value = JSON.parse(text) as JsonValue
  if (!hasLongInteger(text) && !LARGE_EXPONENT.test(text)) return value
  const marked = atOnce(withMarks(text))
  return marked === text ? value : (JSON.parse(marked) as JsonValue)
}

/** The same in steps of a few milliseconds for a text of some megabytes. */
export function* parseExactSteps(text: string): Steps<JsonValue> {
  const value = JSON.parse(text) as JsonValue
  yield
  if (!hasLongInteger(text) && !LARGE_EXPONENT.test(text)) return value
  yield
  const marked = yield* withMarks(text)
  yield
  return marked === text ? value : (JSON.parse(marked) as JsonValue)
}

/**
 * Puts marks into the members of a request that hold inputs and schemas of tools, in steps. `text` is the
 * JSON text of `value`. Other members keep their numbers, because the rules for fields expect numbers.
 */
export function* markToolNumbers(value: JsonObject, text: string): Steps<void> {
  if (!hasLongInteger(text)) return
  yield
  const marked = yield* withMarks(text)
  if (marked === text) return
  yield
  const exact = JSON.parse(marked) as JsonObject
  for (const key of TOOL_MEMBERS) {
    const member = exact[key]
    if (member !== undefined && member !== null) value[key] = member
  }
}

const TOOL_MEMBERS = ['messages', 'contents', 'input', 'tools']

/** Reads every 16th character: a long integer contains one of them. */
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
function* withMarks(text: string): Steps<string> {
  let out = ''
  let from = 0
  let at = 0
  let stepEnd = STEP_CHARS
  while (at < text.length) {
    if (at > stepEnd) {
      yield
      stepEnd = at + STEP_CHARS
    }
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

/** The offset after the string that begins at `at`. */
function afterString(text: string, at: number): number {
  for (let end = text.indexOf('"', at + 1); ; end = text.indexOf('"', end + 1)) {
    let slashes = 0
    while (text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes += 1
    if (slashes % 2 === 0) return end + 1
  }
}

/** The JSON text of a value, with marked strings as the numbers that they stand for. */
export function stringifyExact(value: JsonValue | object): string {
  const text = JSON.stringify(value)
  // V8 rejects the search at once in a text of one byte per character.
  return text.includes(`"${MARK}`) ? text.replace(MARKED, '$1') : text
}

/** Whether a double preserves the number in a JSON text. A number with a leading zero is small. */
export function isKept(token: string): boolean {
  if (token.startsWith('0') || token.startsWith('-0')) return true
  const value = Number(token)
  return /^-?[1-9]\d{15,}$/.test(token) ? String(value) === token : Number.isFinite(value)
}
