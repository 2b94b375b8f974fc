/**
 * Vectors in replies of embedding models, which may have millions of digits. They are kept as JSON text and
 * parsed only if the client requests another form.
 */
import { isObject, type JsonObject } from '../../base/json.js'
import type { Vector } from '../chat/request.js'
import { ReplyScan } from './json/reply-scan.js'
import type { Steps } from '../../base/steps.js'

/** The beginning of a JSON array of numbers, and a whole one. */
const BEGINNING = /\[(?=\s*-?\d)/g
const NUMBERS = /^\[\s*-?\d[-+\d.eE,\s]*\]$/
/** A longer array is not a vector: the longest have 16,384 numbers of 25 digits. */
const MAX_CHARS = 1024 * 1024
/** Characters that are read in one step. */
const STEP_CHARS = 1024 * 1024

/** A reply in which each vector is replaced by its index in `arrays`. */
export interface Outline {
  readonly body: JsonObject
  /** The JSON text of each array of numbers. */
  readonly arrays: readonly string[]
}

/**
 * Replaces the arrays of numbers in a JSON object; null if the text is not a JSON object, or if the rest of
 * it exceeds a limit of `ReplyScan`. Linear.
 */
export function* outlineOf(text: string): Steps<Outline | null> {
  const arrays: string[] = []
  let outline = ''
  let from = 0
  let end = -1
  let stepEnd = STEP_CHARS
  BEGINNING.lastIndex = 0
  while (BEGINNING.test(text)) {
    const start = BEGINNING.lastIndex - 1
    if (end < start) end = text.indexOf(']', start)
    if (end === -1) break
    const found = end - start < MAX_CHARS ? text.slice(start, end + 1) : ''
    if (NUMBERS.test(found)) {
      outline += text.slice(from, start) + String(arrays.length)
      arrays.push(found)
      from = end + 1
      BEGINNING.lastIndex = from
    }
    if (BEGINNING.lastIndex < stepEnd) continue
    const { lastIndex } = BEGINNING
    stepEnd = lastIndex + STEP_CHARS
    yield
    BEGINNING.lastIndex = lastIndex
  }
  outline += text.slice(from)
  yield
  const scan = new ReplyScan({ maxTextBytes: Infinity, maxBytes: Infinity })
  for (let at = 0; at < outline.length; at += STEP_CHARS) {
    scan.add(outline.slice(at, at + STEP_CHARS), false)
    yield
  }
  if (scan.excess !== null) return null
  try {
    const body: unknown = JSON.parse(outline)
    return isObject(body) ? { body, arrays } : null
  } catch {
    return null
  }
}

/**
 * The vector of a member of the outline: base64, an index in `arrays` or an empty array; null for any other
 * value.
 */
export function vectorAt(value: unknown, { arrays }: Pick<Outline, 'arrays'>): Vector | null {
  if (typeof value === 'string') return { form: 'base64', text: value }
  if (Array.isArray(value) && value.length === 0) return { form: 'json', text: '[]' }
  const text = typeof value === 'number' ? arrays[value] : undefined
  return text === undefined ? null : { form: 'json', text }
}

/** The JSON text of the vector in a form; null if the vector is malformed. */
export function vectorText(vector: Vector, form: Vector['form']): string | null {
  if (vector.form === form) return form === 'json' ? vector.text : JSON.stringify(vector.text)
  if (form === 'base64') {
    const numbers = numbersIn(vector.text)
    if (numbers === null) return null
    const bytes = Buffer.alloc(numbers.length * 4)
    numbers.forEach((value, at) => bytes.writeFloatLE(value, at * 4))
    return JSON.stringify(bytes.toString('base64'))
  }
  const bytes = Buffer.from(vector.text, 'base64')
  if (bytes.length % 4 !== 0) return null
  const numbers = Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readFloatLE(at * 4))
  return numbers.every(Number.isFinite) ? JSON.stringify(numbers) : null
}

function numbersIn(text: string): number[] | null {
  try {
    return JSON.parse(text) as number[]
  } catch {
    return null
  }
}
