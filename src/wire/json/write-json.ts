/**
 * JSON of large values as bytes: long strings that JSON takes as they are, as base64 is, are copied once, where
 * the serialiser would look at each of their characters and its text would be copied again.
 * Writes what `stringifyExact` writes, byte for byte.
 */
import { transcode } from 'node:buffer'
import { isObject, type JsonObject, type JsonValue } from '../../chat/json.js'
import { stringifyExact } from './exact-numbers.js'
import { DATA_BYTES, isAsWritten } from './inline-data.js'
import type { Edit } from './splice.js'

const QUOTE = 34
/** In what is no inline data one of these comes soon, and the serialiser may have it at once. */
const NO_DATA = /[^!-~]|["\\]/
const LOOKED_AT = 256

/** A string that may be inline data; `isPlain` is false once it has proved to be none. */
interface Long {
  readonly text: string
  isPlain: boolean
}

/** The JSON of a value that may hold inline data. */
export function writeJson(value: JsonValue): Buffer {
  const parts = new Parts(value).list
  return written(parts) ?? written(parts) ?? utf8(stringifyExact(value))
}

/** The edit that sets a member whose value may hold inline data. */
export function largeEdit(key: string, value: JsonValue): Edit {
  const [text, ...more] = new Parts(value).list
  if (typeof text === 'string' && more.length === 0) return { key, json: text }
  return { key, json: writeJson(value), value }
}

/** The parts as bytes; null where strings that were taken for inline data are none, and are marked so now. */
function written(parts: readonly (string | Long)[]): Buffer | null {
  const texts = parts.map((part) => (isLong(part) ? part : utf8(textOf(part))))
  const size = texts.reduce(
    (sum, part) => sum + (isLong(part) ? part.text.length + 2 : part.length),
    0,
  )
  const bytes = Buffer.allocUnsafe(size)
  let at = 0
  let isRight = true
  for (const part of texts) {
    if (!isLong(part)) {
      at += part.copy(bytes, at)
      continue
    }
    const [start, end] = [at + 1, at + 1 + part.text.length]
    bytes[at] = bytes[end] = QUOTE
    // Characters beyond ASCII take more bytes than there is room for; the check finds the first of them.
    bytes.write(part.text, start, part.text.length, 'utf8')
    part.isPlain = isAsWritten(bytes, { start, end })
    isRight &&= part.isPlain
    at = end + 1
  }
  return isRight ? bytes : null
}

/** By way of UTF-16, which is several times as fast for large texts. JSON texts hold no half characters. */
function utf8(text: string): Buffer {
  if (text.length < DATA_BYTES) return Buffer.from(text)
  return transcode(Buffer.from(text, 'utf16le'), 'utf16le', 'utf8')
}

function textOf(part: string | Long): string {
  return typeof part === 'string' ? part : JSON.stringify(part.text)
}

function isLong(part: string | Long | Buffer): part is Long {
  return typeof part !== 'string' && !Buffer.isBuffer(part) && part.isPlain
}

/** A value as JSON texts and, between them, long strings. */
class Parts {
  readonly list: (string | Long)[] = []
  /** The containers that have a long string somewhere inside. */
  private readonly large = new Set<JsonValue>()
  private text = ''

  constructor(value: JsonValue) {
    this.find(value)
    this.write(value)
    this.flush()
  }

  private find(value: JsonValue | undefined): boolean {
    if (typeof value === 'string') return mayBeData(value)
    if (typeof value !== 'object' || value === null) return false
    let found = false
    for (const item of Array.isArray(value) ? value : Object.values(value)) {
      if (this.find(item)) found = true
    }
    if (found) this.large.add(value)
    return found
  }

  private write(value: JsonValue): void {
    if (typeof value === 'string' && mayBeData(value)) {
      this.flush()
      this.list.push({ text: value, isPlain: true })
    } else if (!this.large.has(value)) this.text += stringifyExact(value)
    else if (Array.isArray(value)) this.items(value)
    else if (isObject(value)) this.members(value)
  }

  private items(items: readonly JsonValue[]): void {
    this.text += '['
    for (const [at, item] of items.entries()) {
      if (at > 0) this.text += ','
      this.write(item)
    }
    this.text += ']'
  }

  private members(object: JsonObject): void {
    let before = '{'
    for (const [key, value] of Object.entries(object)) {
      if (value === undefined) continue
      this.text += `${before}${JSON.stringify(key)}:`
      this.write(value)
      before = ','
    }
    this.text += '}'
  }

  private flush(): void {
    if (this.text !== '') this.list.push(this.text)
    this.text = ''
  }
}

function mayBeData(text: string): boolean {
  return text.length >= DATA_BYTES && !NO_DATA.test(text.slice(0, LOOKED_AT))
}
