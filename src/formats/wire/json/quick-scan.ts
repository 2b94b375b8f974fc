/**
 * Scans the bytes of a JSON text before it is parsed, and decides quickly whether it is within the limits. If
 * the quick scan cannot decide, the full scan does.
 */
import type { Steps } from '../steps.js'
import { longString, type Range } from './long-strings.js'

/* eslint max-lines-per-function: off -- one loop with all its state in variables: it sees every byte */

/** A top-level member and its byte offsets: `{"key": value}` from the key's quote to the end of the value. */
export interface Member {
  readonly key: string
  readonly memberStart: number
  readonly valueStart: number
  readonly valueEnd: number
}

/** A byte after the end; it equals none of those below. */
const END = 0
const TAB = 9
const LINE_FEED = 10
const CARRIAGE_RETURN = 13
const SPACE = 32
const QUOTE = 34
const PLUS = 43
const COMMA = 44
const NINE = 57
const COLON = 58
const UPPER_E = 69
const OPEN_ARRAY = 91
const BACKSLASH = 92
const CLOSE_ARRAY = 93
const LOWER_E = 101
const OPEN_OBJECT = 123
const CLOSE_OBJECT = 125
const LAST_ASCII = 127

/** A number of this many characters without an exponent is below the largest double, 1.8e308. */
const MAX_DIGITS = 300
/** Objects with more keys or deeper nesting need the full scan. */
const MAX_KEYS = 64
const MAX_DEPTH = 64
/** Bodies with more members, longer names or longer white space need the full scan. */
const MAX_MEMBERS = 10_000
const MAX_NAME_BYTES = 256
const MAX_BLANKS = 1_024

export interface ScanResult {
  readonly members: readonly Member[]
  /** The inline data and long texts (`formats/wire/json/long-strings.ts`), in the order of the bytes. */
  readonly data: readonly Range[]
}

/** The limits of a body. */
interface ScanLimits {
  readonly maxDepth: number
  readonly maxTokens: number
  /** Bytes without inline data. */
  readonly maxTextBytes: number
}

/** Bytes that are scanned in one step. */
const STEP_BYTES = 1024 * 1024

/** The hashes of the keys of all open objects in sequence, and where those of each object begin. */
interface OpenObjects {
  readonly hashes: Int32Array
  readonly begins: Int32Array
}

function newOpenObjects(): OpenObjects {
  return {
    hashes: new Int32Array(MAX_KEYS * (MAX_DEPTH + 1)),
    begins: new Int32Array(MAX_DEPTH + 1),
  }
}

/** For bodies that are scanned in one step. */
const OPEN_OBJECTS = newOpenObjects()

/**
 * The members, inline data and long texts of the object in the bytes. If the bytes are valid JSON, then keys
 * are unique, numbers are within the range of a double and the limits are kept. Null if that is not so, or if
 * only the full scan can decide: for keys with escapes, numbers with an exponent and invalid strings.
 */
export function* quickScan(
  bytes: Buffer,
  { maxDepth, maxTokens, maxTextBytes }: ScanLimits,
): Steps<ScanResult | null> {
  const { hashes, begins } = bytes.length > STEP_BYTES ? newOpenObjects() : OPEN_OBJECTS
  const members: Member[] = []
  const data: Range[] = []
  const strings = new StringScan(bytes)
  let dataBytes = 0
  let names = 0
  let depth = 0
  let tokens = 0
  /** The number of hashes, and the offset of those of the innermost object. */
  let hashCount = 0
  let begin = 0
  let keyStart = -1
  let keyEnd = 0
  let valueStart = 0
  let valueEnd = 0
  let at = 0
  let stepEnd = STEP_BYTES
  while (at < bytes.length && tokens <= maxTokens && at - dataBytes <= maxTextBytes) {
    if (at > stepEnd) {
      yield
      stepEnd = at + STEP_BYTES
    }
    const code = bytes[at] ?? END
    if (code === QUOTE) {
      const start = at + 1
      at = strings.end(start)
      while (at === PAUSED) {
        yield
        at = strings.resume()
      }
      if (at === -1) return null
      const end = at
      at = skipBlanks(bytes, at + 1)
      if (at === -1) return null
      if ((bytes[at] ?? END) !== COLON) {
        valueEnd = end + 1
        const long = longString(bytes, { start, end }, strings.savedBytes)
        if (long !== null) data.push(long)
        if (long !== null && long.textBytes === undefined) dataBytes += end - start
        continue
      }
      names += 1
      if (names > MAX_MEMBERS || end - start > MAX_NAME_BYTES) return null
      const hash = hashOf(bytes, start, end)
      if (hash === -1 || hashCount - begin === MAX_KEYS || isAmong(hashes, hash, begin, hashCount))
        return null
      hashes[hashCount] = hash
      hashCount += 1
      tokens += 1
      at = skipBlanks(bytes, at + 1)
      if (at === -1) return null
      if (depth !== 1) continue
      keyStart = start
      keyEnd = end
      valueStart = at
    } else if (code === COMMA || code === CLOSE_OBJECT || code === CLOSE_ARRAY) {
      if (depth === 1 && keyStart !== -1) {
        const key = bytes.toString('latin1', keyStart, keyEnd)
        members.push({ key, memberStart: keyStart - 1, valueStart, valueEnd })
        keyStart = -1
      }
      tokens += 1
      at += 1
      if (code === COMMA) continue
      if (depth === 0) return null
      hashCount = begin
      depth -= 1
      begin = begins[depth] ?? 0
      valueEnd = at
    } else if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      if (depth === maxDepth || depth === MAX_DEPTH) return null
      begins[depth] = begin
      begin = hashCount
      depth += 1
      tokens += 1
      at += 1
    } else if (code === SPACE || code === LINE_FEED || code === CARRIAGE_RETURN || code === TAB) {
      at += 1
    } else {
      at = wordEnd(bytes, at)
      if (at === -1) return null
      valueEnd = at
    }
  }
  const isWithin = tokens <= maxTokens && bytes.length - dataBytes <= maxTextBytes
  return isWithin ? { members, data } : null
}

function isAmong(hashes: Int32Array, hash: number, from: number, to: number): boolean {
  for (let at = from; at < to; at += 1) if (hashes[at] === hash) return true
  return false
}

/** The end of white space; -1 if there is too much of it. */
function skipBlanks(bytes: Uint8Array, from: number): number {
  let at = from
  let code = bytes[at] ?? END
  while (code === SPACE || code === LINE_FEED || code === CARRIAGE_RETURN || code === TAB) {
    at += 1
    if (at - from > MAX_BLANKS) return -1
    code = bytes[at] ?? END
  }
  return at
}

/** The hash of a key, not negative; -1 for a key with escapes or characters beyond ASCII. */
function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = end - start
  for (let at = start; at < end; at += 1) {
    const code = bytes[at] ?? END
    if (code === BACKSLASH || code > LAST_ASCII) return -1
    hash = (Math.imul(hash, 31) + code) & 0x3fffffff
  }
  return hash
}

/** The end of a number or of a word such as `null`; -1 if it is too long, or if a number has an exponent. */
function wordEnd(bytes: Uint8Array, from: number): number {
  let at = from
  let code = bytes[at] ?? END
  const isNumber = code <= NINE
  do {
    if (isNumber && (code === LOWER_E || code === UPPER_E)) return -1
    at += 1
    if (at - from > MAX_DIGITS) return -1
    code = bytes[at] ?? END
  } while ((code >= PLUS && code <= NINE && code !== COMMA) || isLetter(code))
  return at
}

function isLetter(code: number): boolean {
  const lower = code | 32
  return lower >= 97 && lower <= 122
}

const BACKSPACE_LETTER = 98
const FORM_FEED_LETTER = 102
const NEW_LINE_LETTER = 110
const RETURN_LETTER = 114
const TAB_LETTER = 116
const UNICODE_LETTER = 117
const SLASH = 47
const UNICODE_ESCAPE_BYTES = 6
/** `StringScan.end` has scanned as much as one step may. */
export const PAUSED = -2
/** Most strings are shorter. Reading four bytes at a time is faster only beyond this length. */
const SHORT = 24
const WORD_BYTES = 4

/**
 * The strings of one body.
 *
 * Finds the end of JSON strings in the bytes of a body and checks that they are valid, without decoding them.
 * Reads four bytes at a time, which takes less than a third of the time of `JSON.parse`.
 */
export class StringScan {
  /** The difference in bytes between the last string with its escapes and decoded in UTF-8. */
  savedBytes = 0
  private pausedAt = 0
  /** The end of the last escape of a high surrogate. */
  private surrogateEnd = -1
  private readonly bytes: Buffer
  /** The bytes from `head` on, four at a time; created for the first long string. */
  private words: Int32Array | null = null
  /** Bytes before the first word. */
  private readonly head: number

  constructor(bytes: Buffer) {
    this.bytes = bytes
    this.head = (WORD_BYTES - (bytes.byteOffset % WORD_BYTES)) % WORD_BYTES
  }

  /**
   * The offset of the quote that ends the string whose inside begins at `from`; -1 if there is none, or if
   * the string has a control character or an invalid escape; `PAUSED` after `STEP_BYTES` of a string with
   * escapes: `resume` continues in the next step.
   */
  end(from: number): number {
    this.savedBytes = 0
    this.surrogateEnd = -1
    return this.scan(from)
  }

  /** Continues after `PAUSED`; returns what `end` does. */
  resume(): number {
    return this.scan(this.pausedAt)
  }

  private scan(from: number): number {
    const { bytes } = this
    const shortUntil = Math.min(bytes.length, from + SHORT)
    const pauseFrom = from + STEP_BYTES
    let at = from
    for (;;) {
      while (at < shortUntil && !isSpecial(bytes[at] ?? 0)) at += 1
      if (at >= shortUntil) at = this.nextSpecial(at)
      const code = bytes[at] ?? END
      if (code === QUOTE) return at
      const length = code === BACKSLASH ? this.escape(at) : 0
      if (length === 0) return -1
      at += length
      if (at > pauseFrom) {
        this.pausedAt = at
        return PAUSED
      }
    }
  }

  /** The first offset from `from` on with a quote, backslash or control character; else that of the end. */
  private nextSpecial(from: number): number {
    const { bytes, head } = this
    let at = from
    while (at < head && !isSpecial(bytes[at] ?? 0)) at += 1
    if (at < head) return at
    this.words ??= wordsOf(bytes, head)
    const { words } = this
    let index = (at - head) >> 2
    // The bytes of the first word that are before `at` do not count.
    let found = specialBits(words[index] ?? 0) & (HIGHEST_BITS << (((at - head) & 3) * 8))
    while (found === 0 && index < words.length) {
      index += 1
      found = specialBits(words[index] ?? 0) & HIGHEST_BITS
    }
    if (index < words.length) {
      const lowest = 31 - Math.clz32(found & -found)
      return head + index * WORD_BYTES + (lowest >> 3)
    }
    at = Math.max(at, head + words.length * WORD_BYTES)
    while (at < bytes.length && !isSpecial(bytes[at] ?? 0)) at += 1
    return at
  }

  /** The length of the escape at `at`; 0 for an invalid escape. */
  private escape(at: number): number {
    switch (this.bytes[at + 1]) {
      case QUOTE:
      case BACKSLASH:
      case SLASH:
      case BACKSPACE_LETTER:
      case FORM_FEED_LETTER:
      case NEW_LINE_LETTER:
      case RETURN_LETTER:
      case TAB_LETTER:
        this.savedBytes += 1
        return 2
      case UNICODE_LETTER:
        return this.unicode(at)
      default:
        return 0
    }
  }

  /** `\u0041` becomes one byte, `\u0416` two, `\u8239` three, and a pair like `\ud83d\udea2` four. */
  private unicode(at: number): number {
    let code = 0
    const end = at + UNICODE_ESCAPE_BYTES
    for (let place = at + 2; place < end; place += 1) {
      const digit = hexOf(this.bytes[place] ?? 0)
      if (digit === -1) return 0
      code = code * 16 + digit
    }
    const endsPair = code >= 0xdc00 && code <= 0xdfff && at === this.surrogateEnd
    if (code >= 0xd800 && code <= 0xdbff) this.surrogateEnd = end
    if (code < 0x80 || endsPair) this.savedBytes += 5
    else if (code < 0x800) this.savedBytes += 4
    else this.savedBytes += 3
    return UNICODE_ESCAPE_BYTES
  }
}

/** Whether a string cannot have this byte, or ends or has an escape at it. */
function isSpecial(code: number): boolean {
  return code === QUOTE || code === BACKSLASH || code < SPACE
}

const HIGHEST_BITS = 0x80808080

/**
 * Sets the highest bit of the first special byte of a word, and of no byte before it: the subtraction sets it
 * for a byte below 32, and for a byte that is 0 after the exclusive or.
 */
function specialBits(word: number): number {
  return (
    ((word - 0x20202020) |
      ((word ^ 0x22222222) - 0x01010101) |
      ((word ^ 0x5c5c5c5c) - 0x01010101)) &
    ~word
  )
}

/** The lowest byte of a word is the first one, as on all processors that Node supports but one (s390x). */
const IS_LITTLE_ENDIAN = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1

/** The bytes from `head` on, four at a time; none where the order of bytes is another one. */
function wordsOf(bytes: Buffer, head: number): Int32Array {
  const length = IS_LITTLE_ENDIAN ? (bytes.length - head) >> 2 : 0
  return new Int32Array(bytes.buffer, bytes.byteOffset + head, Math.max(0, length))
}

/** The value of a hexadecimal digit; -1 for any other byte. */
function hexOf(code: number): number {
  if (code >= 48 && code <= 57) return code - 48
  const lower = code | 32
  return lower >= 97 && lower <= 102 ? lower - 87 : -1
}
