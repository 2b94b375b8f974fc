/**
 * Serialises values with inline data to bytes, identical to those of `stringifyExact`. Long strings without
 * escapes, such as base64, are copied once, while the serialiser would read each character and copy the text
 * again.
 */
import { transcode } from 'node:buffer'
import { isObject, type JsonObject, type JsonValue } from '../../chat/json.js'
import { stringifyExact } from './exact-numbers.js'
import { DATA_BYTES, isAsWritten } from './inline-data.js'
import type { Edit } from './splice.js'

const QUOTE = 34
/** Characters that inline data does not have. In other long texts one of them occurs soon. */
const NOT_INLINE_DATA = /[^!-~]|["\\]/
const CHECKED_CHARS = 256

/** A string that may be inline data; `isPlain` is false once it has proved to need escapes. */
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

/** The parts as bytes; null if strings that looked like inline data need escapes, which are then marked. */
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
    // Characters beyond ASCII need more bytes than are reserved; the check below detects them.
    bytes.write(part.text, start, part.text.length, 'utf8')
    part.isPlain = isAsWritten(bytes, { start, end })
    isRight &&= part.isPlain
    at = end + 1
  }
  return isRight ? bytes : null
}

/**
 * Encodes large texts through UTF-16, which is several times as fast. JSON texts have no unpaired surrogates.
 */
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

/** A value as JSON texts with long strings between them. */
class Parts {
  readonly list: (string | Long)[] = []
  /** The containers with a long string at any depth. */
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
  return text.length >= DATA_BYTES && !NOT_INLINE_DATA.test(text.slice(0, CHECKED_CHARS))
}
