/**
 * Serialises large values to bytes in steps, identical to those of `stringifyExact`. Long strings without
 * escapes, such as base64, are copied once, while the serialiser would read each character and copy the text
 * again. Other texts are serialised in fragments.
 */
import { transcode } from 'node:buffer'
import { isObject, type JsonObject, type JsonValue } from '../../../base/json.js'
import { atOnce, type Steps } from '../../../base/steps.js'
import { stringifyExact } from './exact-numbers.js'
import { DATA_BYTES, isAsWritten } from './long-strings.js'
import type { Edit } from './splice.js'

const QUOTE = 34
/** Characters that inline data does not have. In other long texts one of them occurs soon. */
const NOT_INLINE_DATA = /[^!-~]|["\\]/
const CHECKED_CHARS = 256
/** Characters that are serialised at once, and in one step. */
const FRAGMENT_CHARS = 64 * 1024
const STEP_CHARS = 256 * 1024
/** Characters that take about as long to serialise as one more call of the serialiser. */
const CHARS_PER_CALL = 128
/** Bytes that are copied in one step. */
const COPIED_BYTES = 2 * 1024 * 1024

/** A string that may be inline data; `isPlain` is false once it has proved to need escapes. */
interface Long {
  readonly text: string
  isPlain: boolean
}

/** The JSON of a value. */
export function writeJson(value: JsonValue): Buffer {
  return atOnce(jsonSteps(value))
}

/** The JSON of a value, in steps. */
export function* jsonSteps(value: JsonValue): Steps<Buffer> {
  const parts = new Parts()
  yield* parts.add(value)
  return (yield* joined(parts.list)) ?? (yield* joined(yield* withEscapes(parts.list))) ?? Buffer.of()
}

/** The edit that sets a member to a value that may be large. */
export function largeEdit(key: string, value: JsonValue): Edit {
  if (new Parts().isSmall(value)) return { key, json: stringifyExact(value) }
  return { key, json: writeJson(value), value }
}

/** The parts as bytes; null if strings that looked like inline data need escapes, which are then marked. */
function* joined(parts: readonly (Buffer | Long)[]): Steps<Buffer | null> {
  const size = parts.reduce((sum, part) => sum + (isLong(part) ? part.text.length + 2 : part.length), 0)
  const bytes = Buffer.allocUnsafe(size)
  let at = 0
  let stepEnd = COPIED_BYTES
  let isRight = true
  for (const part of parts) {
    if (isLong(part)) {
      yield* copyLong(part, bytes, at)
      isRight &&= part.isPlain
      at += part.text.length + 2
    } else at += part.copy(bytes, at)
    if (at < stepEnd) continue
    stepEnd = at + COPIED_BYTES
    yield
  }
  return isRight ? bytes : null
}

/** Copies the string with its quotes, and checks that it needs no escapes. */
function* copyLong(part: Long, bytes: Buffer, at: number): Steps<void> {
  const { text } = part
  bytes[at] = bytes[at + 1 + text.length] = QUOTE
  for (let from = 0; from < text.length && part.isPlain; from += COPIED_BYTES) {
    const chars = text.slice(from, from + COPIED_BYTES)
    const start = at + 1 + from
    const end = start + chars.length
    // Characters beyond ASCII need more bytes than are reserved.
    const isWritten = bytes.write(chars, start, chars.length, 'utf8') === chars.length
    part.isPlain = isWritten && isAsWritten(bytes, { start, end })
    yield
  }
}

/** The parts with the escaped bytes of strings that are marked. */
function* withEscapes(parts: readonly (Buffer | Long)[]): Steps<(Buffer | Long)[]> {
  const escaped: (Buffer | Long)[] = []
  for (const part of parts) {
    if (!isLong(part) || part.isPlain) {
      escaped.push(part)
      continue
    }
    const fragments = new Parts()
    yield* fragments.addText(part.text)
    escaped.push(...fragments.list)
  }
  return escaped
}

/**
 * Encodes large texts through UTF-16, which is several times as fast. JSON texts have no unpaired surrogates.
 */
function utf8(text: string): Buffer {
  if (text.length < DATA_BYTES) return Buffer.from(text)
  return transcode(Buffer.from(text, 'utf16le'), 'utf16le', 'utf8')
}

function isLong(part: Long | Buffer): part is Long {
  return !Buffer.isBuffer(part)
}

/** A value as JSON in fragments, with long strings between them. */
class Parts {
  readonly list: (Buffer | Long)[] = []
  /** The containers whose parts are written one by one, and the approximate sizes of their items. */
  private readonly large = new Map<JsonValue, readonly number[]>()
  private text = ''
  /** Characters that were read or written since the last step. */
  private done = 0

  /** Whether the value is written in one fragment. */
  isSmall(value: JsonValue): boolean {
    return this.measure(value) <= FRAGMENT_CHARS
  }

  /** Adds a value. */
  *add(value: JsonValue): Steps<void> {
    yield* this.measureMembers(value)
    if (this.done > STEP_CHARS) yield* this.pause()
    yield* this.write(value)
    this.flush()
  }

  /** Adds a string in fragments. */
  *addText(text: string): Steps<void> {
    yield* this.long(text)
    this.flush()
  }

  /** As `measure`, in steps: reading members for the first time may decode their texts. */
  private *measureMembers(value: JsonValue): Steps<void> {
    if (!isObject(value)) {
      this.measure(value)
      return
    }
    let sum = 0
    for (const member of Object.values(value)) {
      sum += Array.isArray(member) ? yield* this.measureItems(member) : this.measure(member)
    }
    if (sum > FRAGMENT_CHARS) this.large.set(value, [])
    this.done += sum
  }

  private *measureItems(items: JsonValue[]): Steps<number> {
    const sizes: number[] = []
    let sum = 2
    let read = 0
    for (const item of items) {
      const size = this.measure(item) + 1
      sizes.push(size)
      sum += size
      read += size
      if (read < STEP_CHARS) continue
      read = 0
      yield
    }
    if (sum > FRAGMENT_CHARS) this.large.set(items, sizes)
    return sum
  }

  /** The approximate size of the value. Notes containers that are larger than a fragment. */
  private measure(value: JsonValue | undefined): number {
    if (typeof value === 'string') {
      return mayBeData(value) ? Math.max(value.length, FRAGMENT_CHARS + 1) : value.length + 2
    }
    if (typeof value !== 'object' || value === null) return 8
    let sum = 2
    if (!Array.isArray(value)) {
      for (const key of Object.keys(value)) sum += key.length + 4 + this.measure(value[key])
      if (sum > FRAGMENT_CHARS) this.large.set(value, [])
      return sum
    }
    const sizes: number[] = []
    for (const item of value) {
      const size = this.measure(item) + 1
      sizes.push(size)
      sum += size
    }
    if (sum > FRAGMENT_CHARS) this.large.set(value, sizes)
    return sum
  }

  private *write(value: JsonValue): Steps<void> {
    const sizes = this.large.get(value)
    if (typeof value === 'string' && value.length > FRAGMENT_CHARS) {
      if (mayBeData(value)) {
        this.flush()
        this.list.push({ text: value, isPlain: true })
      } else yield* this.long(value)
    } else if (sizes === undefined) this.put(stringifyExact(value))
    else if (Array.isArray(value)) yield* this.items(value, sizes)
    else if (isObject(value)) yield* this.members(value)
    if (this.done > STEP_CHARS) yield* this.pause()
  }

  /** Writes consecutive small items together. */
  private *items(items: readonly JsonValue[], sizes: readonly number[]): Steps<void> {
    this.text += '['
    let at = 0
    while (at < items.length) {
      if (at > 0) this.text += ','
      let end = at
      let size = 0
      while (end < items.length && size + (sizes[end] ?? 0) <= FRAGMENT_CHARS) {
        size += sizes[end] ?? 0
        end += 1
      }
      if (end > at) this.put(stringifyExact(items.slice(at, end)).slice(1, -1))
      else {
        yield* this.write(items[at] ?? null)
        end += 1
      }
      at = end
      if (this.done > STEP_CHARS) yield* this.pause()
    }
    this.text += ']'
  }

  private *members(object: JsonObject): Steps<void> {
    let before = '{'
    for (const [key, value] of Object.entries(object)) {
      if (value === undefined) continue
      this.text += `${before}${JSON.stringify(key)}:`
      yield* this.write(value)
      before = ','
    }
    this.text += before === '{' ? '{}' : '}'
  }

  private *long(text: string): Steps<void> {
    this.text += '"'
    for (let at = 0; at < text.length;) {
      let end = at + FRAGMENT_CHARS
      // The halves of a pair of surrogates stay together.
      if (isHighSurrogate(text.charCodeAt(end - 1))) end -= 1
      this.put(JSON.stringify(text.slice(at, end)).slice(1, -1))
      at = end
      if (this.done > STEP_CHARS) yield* this.pause()
    }
    this.text += '"'
  }

  private put(json: string): void {
    this.text += json
    this.done += json.length + CHARS_PER_CALL
    if (this.text.length > FRAGMENT_CHARS) this.flush()
  }

  private *pause(): Steps<void> {
    this.done = 0
    yield
  }

  private flush(): void {
    if (this.text !== '') this.list.push(utf8(this.text))
    this.text = ''
  }
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff
}

function mayBeData(text: string): boolean {
  return text.length >= DATA_BYTES && !NOT_INLINE_DATA.test(text.slice(0, CHECKED_CHARS))
}

/**
 * Characters that `JSON.stringify` does not escape, and quotes and backslashes: no control characters, no
 * surrogates.
 */
const PLAIN = /^[ -\ud7ff\ue000-\uffff]*$/

export function quote(text: string): string {
  return isPlain(text) ? `"${text}"` : JSON.stringify(text)
}

/**
 * Whether the text needs no JSON escapes. `includes` finds quotes and backslashes far faster than an
 * expression.
 */
export function isPlain(text: string): boolean {
  return !text.includes('"') && !text.includes('\\') && PLAIN.test(text)
}
