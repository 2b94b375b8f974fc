/**
 * A client's bytes to a JSON object, checked in one pass before `JSON.parse` may spend time on them.
 * Knows no field of any dialect; depth, size and duplicate keys are all it judges. Most bodies pass at a
 * glance; the rest are looked at closer, to see whether they pass, and to say what is wrong.
 */
import { isAscii, isUtf8 } from 'node:buffer'
import { isObject } from '../chat/json.js'
import type { JsonObject, JsonValue } from '../chat/json.js'
import { GatewayError } from '../errors.js'
import { parseExact } from './exact.js'
import { glance, type Member } from './glance.js'

/** A body that passed every check. */
export interface ParsedObject {
  readonly value: JsonObject
  /** In the order of the bytes; no key comes twice. */
  readonly members: readonly Member[]
}

/** The limits of a body. */
export interface JsonCaps {
  /** Containers within containers, the root counted; 64, half of what protobuf's JSON allows. */
  readonly maxDepth?: number
  /** Braces, brackets, colons and commas; 200,000, since 500,000 keys block the loop for 245 ms. */
  readonly maxTokens?: number
}

interface Level {
  readonly isArray: boolean
  /** Values begun at this level. */
  count: number
  key: string
  keys: string[]
  /** The same keys, from the ninth on. */
  index: Set<string> | null
}

const QUOTE = 34
const COMMA = 44
const MINUS = 45
const COLON = 58
const OPEN_ARRAY = 91
const BACKSLASH = 92
const CLOSE_ARRAY = 93
const OPEN_OBJECT = 123
const CLOSE_OBJECT = 125
/** A number of so many characters without an exponent is below the largest double, 1.8e308. */
const DIGITS_THAT_FIT = 300
/** How much of a path an error shows. */
const PATH_CHARS = 200

/**
 * The object in the bytes: strict UTF-8 without a byte order mark, no key twice in one object (after
 * unescaping), no number beyond a double, nothing after the object. A key `__proto__` is an own
 * property like any other. Throws `GatewayError(malformed_request)` whose message names the path.
 */
export function parseObject(bytes: Buffer, caps: JsonCaps = {}): ParsedObject {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) {
    throw malformed('the body starts with a byte order mark; send plain UTF-8')
  }
  const isPlain = isAscii(bytes)
  if (!isPlain && !isUtf8(bytes)) throw malformed('the body is not valid UTF-8')
  // Latin1 keeps offsets equal to bytes, and `indexOf` on it runs at the speed of memory.
  const text = bytes.toString('latin1')
  const { maxDepth = 64, maxTokens = 200_000 } = caps
  const seen = glance(bytes, text, maxDepth, maxTokens)
  const members = seen ?? new Scan(text, { isPlain, maxDepth, maxTokens, isProbing: false }).run()
  const value = parseOrNull(isPlain ? text : bytes.toString('utf8'))
  if (isObject(value)) return { value, members }
  if (seen !== null) new Scan(text, { isPlain, maxDepth, maxTokens, isProbing: false }).run()
  new Scan(text, { isPlain, maxDepth, maxTokens, isProbing: true }).run()
  throw malformed('the body is not valid JSON: one of its keys is malformed')
}

/**
 * The object in an upstream's text, integers that no double holds marked (`wire/exact.ts`); null for
 * anything else. Never throws.
 */
export function parseReply(text: string): JsonObject | null {
  const value = parseOrNull(text, parseExact)
  return isObject(value) ? value : null
}

/** The array in an upstream's text; null for anything else. Never throws. */
export function parseArray(text: string): JsonValue[] | null {
  const value = parseOrNull(text)
  return Array.isArray(value) ? (value as JsonValue[]) : null
}

interface ScanOptions {
  /** The text is ASCII, so keys need no decoding. */
  readonly isPlain: boolean
  readonly maxDepth: number
  readonly maxTokens: number
  /** Parse each scalar by itself, to find the one that `JSON.parse` refused. */
  readonly isProbing: boolean
}

/** Walks the structure; what is inside strings, numbers and literals is left to `JSON.parse`. */
class Scan {
  private readonly text: string
  private readonly options: ScanOptions
  private readonly levels: Level[] = []
  private readonly members: Member[] = []
  private at = 0
  private tokens = 0
  private memberStart = 0
  private valueStart = 0

  constructor(text: string, options: ScanOptions) {
    this.text = text
    this.options = options
  }

  run(): Member[] {
    const first = this.next()
    if (Number.isNaN(first)) throw malformed('the body is empty; send a JSON object')
    if (first !== OPEN_OBJECT) throw malformed('the body must be a JSON object')
    this.open(false)
    for (let level = this.levels.at(-1); level !== undefined; level = this.levels.at(-1)) {
      if (level.isArray) this.element(level)
      else this.member(level)
    }
    if (!Number.isNaN(this.next())) {
      throw malformed(`the body goes on after its JSON object, at byte ${this.at}`)
    }
    return this.members
  }

  private member(level: Level): void {
    let code = this.next()
    if (code === CLOSE_OBJECT) return this.close()
    if (level.count > 0) {
      if (code !== COMMA) throw this.broken('a comma or a closing brace')
      this.token()
      code = this.next()
    }
    if (code !== QUOTE) throw this.broken('a key in double quotes')
    const start = this.at
    this.string()
    level.key = this.keyAt(start + 1, this.at - 1)
    level.count += 1
    this.refuseTwice(level)
    if (this.next() !== COLON) throw this.broken('a colon')
    this.token()
    const first = this.next()
    if (this.levels.length === 1) {
      this.memberStart = start
      this.valueStart = this.at
    }
    this.value(first)
  }

  private element(level: Level): void {
    let code = this.next()
    if (code === CLOSE_ARRAY) return this.close()
    if (level.count > 0) {
      if (code !== COMMA) throw this.broken('a comma or a closing bracket')
      this.token()
      code = this.next()
    }
    level.count += 1
    this.value(code)
  }

  private value(code: number): void {
    if (code === OPEN_OBJECT || code === OPEN_ARRAY) return this.open(code === OPEN_ARRAY)
    const start = this.at
    if (code === QUOTE) this.string()
    else if (code === MINUS || (code >= 48 && code <= 57)) this.number()
    else this.literal()
    if (this.options.isProbing) this.probe(start)
    this.valueEnds()
  }

  private open(isArray: boolean): void {
    if (this.levels.length >= this.options.maxDepth) {
      const path = this.path()
      throw malformed(
        `too_deep: ${path} is nested more than ${this.options.maxDepth} levels deep`,
        path,
      )
    }
    this.token()
    this.levels.push({ isArray, count: 0, key: '', keys: [], index: null })
  }

  private close(): void {
    this.token()
    this.levels.pop()
    this.valueEnds()
  }

  private valueEnds(): void {
    const level = this.levels[0]
    if (this.levels.length !== 1 || level === undefined) return
    const { memberStart, valueStart } = this
    this.members.push({ key: level.key, memberStart, valueStart, valueEnd: this.at })
  }

  /** Takes one structural character. */
  private token(): void {
    this.at += 1
    this.tokens += 1
    if (this.tokens <= this.options.maxTokens) return
    const path = this.path()
    throw malformed(
      `too_complex: the body has more than ${this.options.maxTokens} structural tokens, counted up to ${path}`,
      path,
    )
  }

  /** Skips white space; answers the character that follows, NaN at the end. */
  private next(): number {
    for (;;) {
      const code = this.text.charCodeAt(this.at)
      if (code !== 32 && code !== 10 && code !== 13 && code !== 9) return code
      this.at += 1
    }
  }

  private string(): void {
    const { text } = this
    let from = this.at + 1
    for (;;) {
      const quote = text.indexOf('"', from)
      if (quote === -1) throw this.broken('the end of a string')
      let back = quote
      while (back > from && text.charCodeAt(back - 1) === BACKSLASH) back -= 1
      from = quote + 1
      if ((quote - back) % 2 === 1) continue
      this.at = from
      return
    }
  }

  private number(): void {
    const start = this.at
    let hasExponent = false
    let code = this.text.charCodeAt(this.at)
    while (isNumeric(code)) {
      if (code === 69 || code === 101) hasExponent = true
      this.at += 1
      code = this.text.charCodeAt(this.at)
    }
    if (!hasExponent && this.at - start <= DIGITS_THAT_FIT) return
    const number = Number(this.text.slice(start, this.at))
    if (number !== Infinity && number !== -Infinity) return
    const path = this.path()
    throw malformed(`${path} is a number too large to represent`, path)
  }

  private literal(): void {
    const { text, at } = this
    if (text.startsWith('true', at) || text.startsWith('null', at)) this.at += 4
    else if (text.startsWith('false', at)) this.at += 5
    else throw this.broken('a value')
  }

  private probe(start: number): void {
    const scalar = this.text.slice(start, this.at)
    if (scalar === 'null' || parseOrNull(scalar) !== null) return
    const path = this.path()
    const what = scalar.startsWith('"')
      ? 'a string with an unescaped control character or a wrong escape'
      : 'not a number as JSON writes them'
    throw malformed(`the body is not valid JSON: ${path} is ${what}, at byte ${start}`, path)
  }

  private keyAt(start: number, end: number): string {
    const raw = this.text.slice(start, end)
    if (!raw.includes('\\')) return this.options.isPlain ? raw : utf8(raw)
    const key = parseOrNull(`"${utf8(raw)}"`)
    return typeof key === 'string' ? key : raw
  }

  private refuseTwice(level: Level): void {
    const { key, keys } = level
    if (level.index === null && keys.length >= 8) level.index = new Set(keys)
    if (level.index === null ? keys.includes(key) : level.index.has(key)) {
      const path = this.path()
      throw malformed(`${path} is given twice; a key may come once in an object`, path)
    }
    if (level.index === null) keys.push(key)
    else level.index.add(key)
  }

  private broken(expected: string): GatewayError {
    const path = this.path()
    const where = path === '' ? '' : ` in ${path}`
    const message = `the body is not valid JSON: expected ${expected}${where}, at byte ${this.at}`
    return path === '' ? malformed(message) : malformed(message, path)
  }

  /** Where the scan is: `messages[2].content`. */
  private path(): string {
    let path = ''
    for (const level of this.levels) {
      if (level.count === 0) break
      if (level.isArray) path += `[${level.count - 1}]`
      else if (/^[A-Za-z_$][\w$-]*$/.test(level.key)) path += `${path && '.'}${level.key}`
      else path += `[${JSON.stringify(level.key)}]`
      if (path.length > PATH_CHARS) return `${path.slice(0, PATH_CHARS)}…`
    }
    return path
  }
}

/** A digit or one of `+ - . E e`. */
function isNumeric(code: number): boolean {
  return (
    (code >= 48 && code <= 57) ||
    code === 46 ||
    code === 45 ||
    code === 43 ||
    code === 101 ||
    code === 69
  )
}

/** Null where the text is not JSON. The parser's own words quote the text, so they go nowhere. */
function parseOrNull(text: string, parse: (text: string) => unknown = JSON.parse): unknown {
  try {
    return parse(text)
  } catch {
    return null
  }
}

function utf8(latin1: string): string {
  return Buffer.from(latin1, 'latin1').toString('utf8')
}

function malformed(message: string, param = ''): GatewayError {
  return new GatewayError('malformed_request', message, param === '' ? {} : { param })
}
