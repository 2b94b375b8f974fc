/**
 * Reads the JSON of an upstream while it arrives, in chunks of any size: counts what parsing it would cost,
 * and keeps an outline, a small JSON text without long strings and deep parts. The outline has the usage, the
 * finish reason, the error and the kinds of content of a reply that is too costly to be parsed.
 *
 * Linear, and independent of the boundaries of chunks. Checks the structure only: `JSON.parse` of the text or
 * of the outline finds the other errors.
 */
import { DATA_BYTES, type Range } from './long-strings.js'

/** Nesting depth with the root, as for requests. */
const MAX_DEPTH = 64
/** Braces, brackets, colons and commas, as for requests. */
const MAX_TOKENS = 200_000
/** Names of members that differ, as for requests. */
const MAX_NAMES = 16_384
/** Bytes beside inline data: half a million tokens of text, several times the longest reply of any model. */
const MAX_TEXT_BYTES = 2 * 1024 * 1024
/** Bytes with inline data, as for one event of a stream: encoding an image of that size takes 40 ms. */
const MAX_BYTES = 16 * 1024 * 1024

/** Deeper parts are not in the outline. */
const OUTLINE_DEPTH = 6
/** Strings, names and numbers that are longer are not in the outline. */
const OUTLINE_CHARS = 1_024
const OUTLINE_ITEMS = 64
/** Characters of each member of the root, and of each of the first parts of such a member. */
const MEMBER_CHARS = 16 * 1024
const ROOT_MEMBERS = 256
const MEMBER_PARTS = 64
/** In a longer outline, each member of the root has `SHORT_MEMBER_CHARS`, and its parts have none. */
const LONG_OUTLINE = 256 * 1024
const SHORT_MEMBER_CHARS = 1_024

/** The members whose strings are text of the model, in any format. */
const TEXT_MEMBERS: ReadonlySet<string> = new Set([
  'content',
  'text',
  'arguments',
  'reasoning_content',
  'reasoning',
  'refusal',
  'input',
  'thinking',
  'partial_json',
  'delta',
])

const TAB = 9
const LINE_FEED = 10
const CARRIAGE_RETURN = 13
const SPACE = 32
const QUOTE = 34
const COMMA = 44
const COLON = 58
const OPEN_ARRAY = 91
const CLOSE_ARRAY = 93
const OPEN_OBJECT = 123
const CLOSE_OBJECT = 125

/** The kinds of an open container. */
const OBJECT = 1
const ARRAY = 2

/** The scan of one reply, or of one event of a stream. */
export class ReplyScan {
  /** The limit that the text exceeds, such as `more than 64 levels`; null if it may be parsed. */
  excess: string | null = null
  /** Inline data (`formats/wire/json/long-strings.ts`), by the offsets of the characters. */
  readonly data: Range[] = []
  /** Characters of text of the model that are not in the outline. */
  omittedText = 0
  /** All chunks were ASCII. */
  isAscii = true
  private tokens = 0
  private depth = 0
  private isEnded = false
  private isBroken = false
  /** Characters before the current chunk, and those of them that are inline data. */
  private before = 0
  private dataChars = 0
  private readonly names = new Set<string>()
  /** The kinds of the open containers, by their depth. */
  private readonly kinds = new Uint8Array(MAX_DEPTH + 2)
  private expectsKey = false
  private key = ''

  private out = ''
  private outLimit = MEMBER_CHARS
  private members = 0
  private memberParts = 0
  /** The number of members or items in the outline, by the depth of their container. */
  private readonly kept = new Uint32Array(OUTLINE_DEPTH + 2)
  /** The depth of the container that is being left out; infinite if there is none. */
  private omittedDepth = Infinity
  /** The brackets of that container are in the outline. */
  private isOmittedEmpty = false

  private isInString = false
  private isEscaped = false
  private isKey = false
  private isInWord = false
  /** The string or word is in the outline unless it is long. */
  private isKept = false
  private fragment = ''
  private length = 0
  private stringStart = 0
  private hasEscape = false
  private hasOther = false
  /** The offset in the chunk of the next backslash. */
  private slash = -1
  private readonly maxTextBytes: number
  private readonly maxBytes: number

  constructor({ maxTextBytes = MAX_TEXT_BYTES, maxBytes = MAX_BYTES } = {}) {
    this.maxTextBytes = maxTextBytes
    this.maxBytes = maxBytes
  }

  /** Reads the next chunk. `isAscii`: it has no other characters. */
  add(text: string, isAscii: boolean): void {
    this.slash = -1
    this.isAscii &&= isAscii
    let at = 0
    while (at < text.length) {
      if (this.isInString) at = this.string(text, at, isAscii)
      else if (this.isInWord) at = this.word(text, at)
      else {
        this.token(text.charCodeAt(at), at)
        at += 1
      }
    }
    this.before += text.length
    // The open string may be inline data.
    const openChars = this.isInString && !this.hasEscape && !this.hasOther ? this.length : 0
    if (this.before - this.dataChars - openChars > this.maxTextBytes) {
      this.excess ??= `more than ${this.maxTextBytes} bytes beside inline data`
    }
    if (this.before > this.maxBytes) this.excess ??= `more than ${this.maxBytes} bytes`
  }

  /** Reads the end of a line between two chunks. Lines count as tokens. */
  addLine(): void {
    this.count()
    this.add('\n', true)
  }

  /** Whether the text so far is one complete value. */
  get isComplete(): boolean {
    return this.isEnded && !this.isBroken && !this.isInString && !this.isInWord
  }

  /** The outline as JSON text. Valid if the text is. */
  get outline(): string {
    return this.out
  }

  private token(code: number, at: number): void {
    switch (code) {
      case QUOTE:
        this.beginString(at)
        return
      case OPEN_OBJECT:
        return this.open(OBJECT)
      case OPEN_ARRAY:
        return this.open(ARRAY)
      case CLOSE_OBJECT:
        return this.close(OBJECT)
      case CLOSE_ARRAY:
        return this.close(ARRAY)
      case COMMA:
        this.count()
        this.expectsKey = this.kinds[Math.min(this.depth, MAX_DEPTH + 1)] === OBJECT
        if (this.depth <= 2) this.beginMember()
        return
      case COLON:
        this.count()
        this.expectsKey = false
        return
      case SPACE:
      case LINE_FEED:
      case CARRIAGE_RETURN:
      case TAB:
        return
      default:
        this.isInWord = true
        this.isKept = this.begin()
        this.fragment = String.fromCharCode(code)
        this.length = 1
    }
  }

  private count(): void {
    this.tokens += 1
    if (this.tokens > MAX_TOKENS) this.excess ??= `more than ${MAX_TOKENS} structural tokens`
  }

  private beginMember(): void {
    const isLong = this.out.length > LONG_OUTLINE
    if (this.depth === 1) {
      this.members += 1
      this.memberParts = 0
      const more = isLong ? SHORT_MEMBER_CHARS : MEMBER_CHARS
      this.outLimit = this.members > ROOT_MEMBERS ? 0 : this.out.length + more
    } else {
      this.memberParts += 1
      if (this.memberParts > MEMBER_PARTS || isLong) return
      this.outLimit = this.members > ROOT_MEMBERS ? 0 : this.out.length + MEMBER_CHARS
    }
  }

  /** A value begins; returns whether it is in the outline, which then has its comma and its name. */
  private begin(): boolean {
    const { depth } = this
    if (depth === 0) {
      this.isBroken ||= this.isEnded
      this.isEnded = true
      return !this.isBroken
    }
    if (depth >= this.omittedDepth || this.out.length > this.outLimit) return false
    const kept = this.kept[depth] ?? 0
    const isArray = this.kinds[depth] === ARRAY
    if (isArray ? kept === OUTLINE_ITEMS : this.key.length > OUTLINE_CHARS) return false
    this.kept[depth] = kept + 1
    if (kept > 0) this.out += ','
    if (!isArray) this.out += `"${this.key}":`
    return true
  }

  private open(kind: number): void {
    this.count()
    const isKept = this.begin()
    if (this.depth === 0) this.isEnded = false
    this.depth += 1
    const { depth } = this
    if (depth > MAX_DEPTH) this.excess ??= `more than ${MAX_DEPTH} levels`
    else this.kinds[depth] = kind
    this.expectsKey = kind === OBJECT && depth <= MAX_DEPTH
    if (isKept) this.out += kind === OBJECT ? '{' : '['
    if (depth <= OUTLINE_DEPTH) this.kept[depth] = 0
    if (this.omittedDepth !== Infinity || (isKept && depth <= OUTLINE_DEPTH)) return
    this.omittedDepth = depth
    this.isOmittedEmpty = isKept
  }

  private close(kind: number): void {
    this.count()
    const { depth } = this
    if (depth === 0 || (depth <= MAX_DEPTH && this.kinds[depth] !== kind)) {
      this.isBroken = true
      return
    }
    const isOmitted = depth === this.omittedDepth
    if (isOmitted ? this.isOmittedEmpty : depth < this.omittedDepth) this.out += kind === OBJECT ? '}' : ']'
    if (isOmitted) this.omittedDepth = Infinity
    this.depth -= 1
    this.expectsKey = false
    if (this.depth === 0) this.isEnded = true
  }

  private beginString(at: number): void {
    this.isInString = true
    this.isKey = this.expectsKey
    this.isKept = !this.isKey && this.begin()
    this.fragment = ''
    this.length = 0
    this.hasEscape = false
    this.hasOther = false
    this.stringStart = this.before + at + 1
  }

  /** Reads the inside of a string; returns the offset after it, or that of the end of the chunk. */
  private string(text: string, from: number, isAscii: boolean): number {
    let at = from
    if (this.isEscaped) {
      this.isEscaped = false
      at += 1
    }
    let quote = text.indexOf('"', at)
    if (quote === -1) quote = text.length
    for (;;) {
      if (this.slash < at) {
        const found = text.indexOf('\\', at)
        this.slash = found === -1 ? Infinity : found
      }
      if (this.slash > quote) break
      this.hasEscape = true
      at = this.slash + 2
      if (at > text.length) {
        this.isEscaped = true
        at = text.length
      }
      if (quote < at) {
        quote = text.indexOf('"', at)
        if (quote === -1) quote = text.length
      }
      if (at === text.length) break
    }
    const chars = quote - from
    this.length += chars
    if (!isAscii) this.hasOther = true
    if (this.length <= OUTLINE_CHARS && (this.isKept || this.isKey)) {
      this.fragment += text.slice(from, quote)
    }
    if (quote === text.length) return quote
    this.isInString = false
    if (this.isKey) this.endKey()
    else this.endString()
    return quote + 1
  }

  private endKey(): void {
    // A name that is too long for the outline is marked by its length.
    this.key = this.length <= OUTLINE_CHARS ? this.fragment : ' '.repeat(OUTLINE_CHARS + 1)
    if (this.excess !== null) return
    this.names.add(this.length <= OUTLINE_CHARS ? this.fragment : String(this.before + this.length))
    if (this.names.size > MAX_NAMES) this.excess = `more than ${MAX_NAMES} different names`
  }

  private endString(): void {
    const { length } = this
    const isShort = length <= OUTLINE_CHARS
    if (this.isKept) this.out += isShort ? `"${this.fragment}"` : '""'
    if (!(this.isKept && isShort) && TEXT_MEMBERS.has(this.key)) this.omittedText += length
    if (length < DATA_BYTES || this.hasEscape || this.hasOther) return
    this.data.push({ start: this.stringStart, end: this.stringStart + length })
    this.dataChars += length
  }

  /** Reads a number, `true`, `false` or `null`. */
  private word(text: string, from: number): number {
    let at = from
    while (at < text.length && isInWord(text.charCodeAt(at))) at += 1
    this.length += at - from
    if (this.isKept && this.length <= OUTLINE_CHARS) this.fragment += text.slice(from, at)
    if (at === text.length) return at
    this.endWord()
    return at
  }

  private endWord(): void {
    this.isInWord = false
    if (this.isKept) this.out += this.length <= OUTLINE_CHARS ? this.fragment : '0'
  }
}

function isInWord(code: number): boolean {
  if (code === COMMA || code === QUOTE || code === COLON || code <= SPACE) return false
  const isBracket = (code & 0xdf) === OPEN_ARRAY || (code & 0xdf) === CLOSE_ARRAY
  return !isBracket
}

/** Whether a text has more closing brackets than the levels that are allowed; else it is not too deep. */
export function mayBeDeep(text: string): boolean {
  let count = 0
  for (const bracket of ['}', ']']) {
    let at = text.indexOf(bracket)
    while (at !== -1) {
      count += 1
      if (count > MAX_DEPTH) return true
      at = text.indexOf(bracket, at + 1)
    }
  }
  return false
}
