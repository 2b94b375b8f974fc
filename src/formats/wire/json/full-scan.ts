/**
 * Scans the structure of a body completely: checks the limits, and finds the error of a malformed body. The
 * contents of strings and numbers are checked by `JSON.parse`.
 */
import { malformed, type GatewayError } from '../../../errors.js'
import type { Steps } from '../../../base/steps.js'
import { DATA_BYTES, isInlineData, type Range } from './long-strings.js'
import type { ScanResult, Member } from './quick-scan.js'

/** Braces, brackets, colons and commas, and bytes, that are scanned in one step. */
const STEP_TOKENS = 10_000
const STEP_BYTES = 8 * 1024 * 1024
const MAX_BLANKS = 65_536
const MAX_NUMBER_CHARS = 1_000
/** Limit for the scalars that are parsed one by one to find the malformed one. */
const MAX_PROBES = 20_000

/** What follows the last byte. It equals no byte. */
const END = -1
const QUOTE = 34
const COMMA = 44
const MINUS = 45
const COLON = 58
const OPEN_ARRAY = 91
const CLOSE_ARRAY = 93
const OPEN_OBJECT = 123
const CLOSE_OBJECT = 125
/** A number of this many characters without an exponent is below the largest double, 1.8e308. */
const DIGITS_THAT_FIT = 300
/** Limits and mode of a scan. */
export interface ScanOptions {
  /** The text is ASCII, so keys need no decoding. */
  readonly isPlain: boolean
  readonly maxDepth: number
  readonly maxTokens: number
  readonly maxTextBytes: number
  /** Parse each scalar alone, to find the one that `JSON.parse` refused. */
  readonly isProbing: boolean
}

/** Scans one body. `steps` throws `GatewayError(malformed_request)` with the path of the error. */
export class FullScan {
  private readonly bytes: Buffer
  private readonly options: ScanOptions
  private readonly levels: Level[] = []
  private readonly members: Member[] = []
  private readonly data: Range[] = []
  private dataBytes = 0
  /** The latest string, if it may be inline data. */
  private long: Range | null = null
  private readonly names: MemberNames
  private probes = 0
  private at = 0
  private tokens = 0
  private memberStart = 0
  private valueStart = 0

  constructor(bytes: Buffer, options: ScanOptions) {
    this.bytes = bytes
    this.options = options
    this.names = new MemberNames(options.isPlain)
  }

  /** In steps; the error of a malformed body is thrown by the step that finds it. */
  *steps(): Steps<ScanResult> {
    const first = this.next()
    if (first === END) throw malformed('The body is empty: send a JSON object')
    if (first !== OPEN_OBJECT) throw malformed('The body must be a JSON object')
    this.open(false)
    let tokensEnd = STEP_TOKENS
    let bytesEnd = STEP_BYTES
    for (let level = this.levels.at(-1); level !== undefined; level = this.levels.at(-1)) {
      if (level.isArray) this.element(level)
      else this.member(level)
      if (this.long !== null) yield* this.checkLong(this.long)
      if (this.tokens < tokensEnd && this.at < bytesEnd) continue
      yield
      tokensEnd = this.tokens + STEP_TOKENS
      bytesEnd = this.at + STEP_BYTES
    }
    if (this.next() !== END) {
      throw malformed(`The body continues after its JSON object, at byte ${this.at}`)
    }
    return { members: this.members, data: this.data }
  }

  private member(level: Level): void {
    let code = this.next()
    if (code === CLOSE_OBJECT) return this.close()
    if (level.count > 0) {
      if (code !== COMMA) throw this.syntaxError('a comma or a closing brace', 'after')
      this.token()
      code = this.next()
    }
    if (code !== QUOTE) throw this.syntaxError('a key in double quotes', 'after')
    const start = this.at
    this.string()
    level.key = this.names.decode(this.slice(start + 1, this.at - 1), () => this.path())
    level.count += 1
    this.refuseDuplicate(level)
    if (this.next() !== COLON) throw this.syntaxError('a colon', 'after')
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
      if (code !== COMMA) throw this.syntaxError('a comma or a closing bracket', 'after')
      this.token()
      code = this.next()
    }
    level.count += 1
    this.value(code)
  }

  private value(code: number): void {
    if (code === OPEN_OBJECT || code === OPEN_ARRAY) return this.open(code === OPEN_ARRAY)
    const start = this.at
    if (code === QUOTE) this.stringValue()
    else if (code === MINUS || (code >= 48 && code <= 57)) this.number()
    else this.literal()
    if (this.options.isProbing) this.probe(start)
    this.valueEnds()
  }

  private open(isArray: boolean): void {
    if (this.levels.length >= this.options.maxDepth) {
      const path = this.path()
      throw malformed(`too_deep: ${path} is nested more than ${this.options.maxDepth} levels deep`, path)
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

  /** Counts one structural character. */
  private token(): void {
    this.at += 1
    this.tokens += 1
    this.checkText()
    if (this.tokens <= this.options.maxTokens) return
    const path = this.path()
    throw malformed(
      `too_complex: The body has more than ${this.options.maxTokens} structural tokens, counted up to ${path}`,
      path,
    )
  }

  private checkText(): void {
    const { maxTextBytes } = this.options
    if (this.at - this.dataBytes <= maxTextBytes) return
    const path = this.path()
    throw malformed(
      `too_complex: The body has more than ${maxTextBytes} bytes beside inline data (strings of at least ` +
        `${DATA_BYTES} characters of base64), counted up to ${path}`,
      path,
    )
  }

  /** Skips white space; returns the next byte, `END` at the end. */
  private next(): number {
    const from = this.at
    for (;;) {
      const code = this.bytes[this.at] ?? END
      if (code !== 32 && code !== 10 && code !== 13 && code !== 9) return code
      this.at += 1
      if (this.at - from > MAX_BLANKS) {
        throw malformed(`too_complex: The body has more than ${MAX_BLANKS} blanks in a row`)
      }
    }
  }

  private stringValue(): void {
    const start = this.at + 1
    this.string()
    const end = this.at - 1
    if (end - start >= DATA_BYTES) this.long = { start, end }
  }

  /** Counts the string as inline data or as text. */
  private *checkLong(range: Range): Steps<void> {
    this.long = null
    if (!(yield* isInlineData(this.bytes, range))) return this.checkText()
    this.data.push(range)
    this.dataBytes += range.end - range.start
  }

  private string(): void {
    const { maxTextBytes } = this.options
    const end = stringEnd(this.bytes, this.at + 1, maxTextBytes)
    if (end !== -1) this.at = end + 1
    else if (this.bytes.length - this.at <= maxTextBytes) throw this.syntaxError('the end of a string')
    else {
      this.at = this.bytes.length
      this.checkText()
    }
  }

  private number(): void {
    const start = this.at
    let hasExponent = false
    let code = this.bytes[this.at] ?? END
    while (isNumeric(code)) {
      if (code === 69 || code === 101) hasExponent = true
      this.at += 1
      if (this.at - start > MAX_NUMBER_CHARS) throw this.longNumber()
      code = this.bytes[this.at] ?? END
    }
    if (!hasExponent && this.at - start <= DIGITS_THAT_FIT) return
    const number = Number(this.slice(start, this.at))
    if (number !== Infinity && number !== -Infinity) return
    const path = this.path()
    throw malformed(`${path} is a number too large to represent`, path)
  }

  private longNumber(): GatewayError {
    const path = this.path()
    return malformed(`${path} is a number of more than ${MAX_NUMBER_CHARS} characters`, path)
  }

  private literal(): void {
    const word = this.slice(this.at, this.at + 5)
    if (word.startsWith('true') || word.startsWith('null')) this.at += 4
    else if (word === 'false') this.at += 5
    else throw this.syntaxError('a value')
  }

  private probe(start: number): void {
    this.probes += 1
    if (this.probes > MAX_PROBES) return
    const scalar = this.slice(start, this.at)
    if (scalar === 'null' || parseOrNull(scalar) !== null) return
    const path = this.path()
    const what = scalar.startsWith('"')
      ? 'a string with an unescaped control character or a wrong escape'
      : 'not a number as JSON writes them'
    throw malformed(`The body is not valid JSON: ${path} is ${what}, at byte ${start}`, path)
  }

  private refuseDuplicate(level: Level): void {
    const { key, keys } = level
    if (level.index === null && keys.length >= 8) level.index = new Set(keys)
    if (level.index === null ? keys.includes(key) : level.index.has(key)) {
      const path = this.path()
      throw malformed(`${path} is given twice: keys must be unique within an object`, path)
    }
    if (level.index === null) keys.push(key)
    else level.index.add(key)
  }

  private syntaxError(expected: string, relation: 'in' | 'after' = 'in'): GatewayError {
    const path = this.path()
    const location = path === '' ? '' : ` ${relation} ${path}`
    const message = `The body is not valid JSON: expected ${expected}${location}, at byte ${this.at}`
    return malformed(message, path)
  }

  private path(): string {
    return pathOf(this.levels)
  }

  /** The bytes as Latin-1. */
  private slice(start: number, end: number): string {
    return this.bytes.toString('latin1', start, end)
  }
}

/** A digit or one of `+ - . E e`. */
function isNumeric(code: number): boolean {
  return (code >= 48 && code <= 57) || NUMBER_SIGNS.has(code)
}

/** Codes of `+ - . E e`. */
const NUMBER_SIGNS: ReadonlySet<number> = new Set([43, 45, 46, 69, 101])

/** Each new name costs the parser 0.3 µs or more. */
const MAX_NAMES = 16_384
const MAX_NAME_BYTES = 8_192

/** The names of one body. */
class MemberNames {
  private readonly isPlain: boolean
  /** Decoded names by the text between their quotes. */
  private readonly names = new Map<string, string>()

  /** `isPlain`: the body is ASCII. */
  constructor(isPlain: boolean) {
    this.isPlain = isPlain
  }

  /**
   * The name of a member; `raw` is the text between its quotes as Latin-1, `path` the position for errors.
   */
  decode(raw: string, path: () => string): string {
    const known = this.names.get(raw)
    if (known !== undefined) return known
    if (raw.length > MAX_NAME_BYTES) {
      throw malformed(`${path()} contains a name of more than ${MAX_NAME_BYTES} bytes`, path())
    }
    if (this.names.size === MAX_NAMES) {
      throw malformed(
        `too_complex: the body has more than ${MAX_NAMES} different names of members, counted up to ${path()}`,
        path(),
      )
    }
    const name = this.decoded(raw)
    this.names.set(raw, name)
    return name
  }

  private decoded(raw: string): string {
    if (!raw.includes('\\')) return this.isPlain ? raw : utf8(raw)
    const key = parseOrNull(`"${utf8(raw)}"`)
    return typeof key === 'string' ? key : raw
  }
}

/** The text of UTF-8 bytes that were read as Latin-1. */
export function utf8(latin1: string): string {
  return Buffer.from(latin1, 'latin1').toString('utf8')
}

/** An open object or array. */
interface Level {
  readonly isArray: boolean
  /** Number of values so far. */
  count: number
  /** The latest key of an object. */
  key: string
  keys: string[]
  /** All keys, from the ninth on. */
  index: Set<string> | null
}

/** Length of a path in errors. */
const PATH_CHARS = 200

/** The path of the latest value: `messages[2].content`. A long path is shortened. */
function pathOf(levels: readonly Level[]): string {
  let path = ''
  for (const level of levels) {
    if (level.count === 0) break
    if (level.isArray) path += `[${level.count - 1}]`
    else if (/^[A-Za-z_$][\w$-]*$/.test(level.key)) path += `${path && '.'}${level.key}`
    else path += `[${JSON.stringify(level.key)}]`
    if (path.length > PATH_CHARS) return `${path.slice(0, PATH_CHARS)}…`
  }
  return path
}

const BACKSLASH = 92
/** Most strings are shorter. Beyond this length, a search for the quote is faster than a loop over bytes. */
const SHORT = 16
/** Bytes that are read one by one after an escaped quote, because more escaped quotes often follow. */
const LOOP_BYTES = 256

/**
 * The offset of the quote that ends the string whose inside begins at `from`; -1 if there is none within
 * `limit` bytes of a string with escapes. Reads each byte at most twice.
 */
function stringEnd(bytes: Buffer, from: number, limit: number): number {
  const near = Math.min(bytes.length, from + SHORT)
  let at = from
  while (at < near && bytes[at] !== QUOTE && bytes[at] !== BACKSLASH) at += 1
  if (at < near && bytes[at] === QUOTE) return at
  for (;;) {
    const quote = bytes.indexOf(QUOTE, at)
    if (quote === -1) return -1
    // A string with an escape is not inline data, so its length is limited.
    if (quote - from > limit && bytes.subarray(at, quote).includes(BACKSLASH)) return -1
    let back = quote
    while (back > at && bytes[back - 1] === BACKSLASH) back -= 1
    if ((quote - back) % 2 === 0) return quote
    at = quote + 1
    if (at - from > limit) return -1
    for (const until = Math.min(bytes.length, at + LOOP_BYTES); at < until;) {
      if (bytes[at] === QUOTE) return at
      at += bytes[at] === BACKSLASH ? 2 : 1
    }
  }
}

/** The value; null if the text is not JSON. The parser's message is dropped, because it quotes the text. */
export function parseOrNull(text: string, parse: (text: string) => unknown = JSON.parse): unknown {
  try {
    return parse(text)
  } catch {
    return null
  }
}
