/**
 * Scans the bytes of a JSON text before it is parsed, and decides quickly whether it is within the limits. If
 * the quick scan cannot decide, the full scan does.
 */
import type { Steps } from '../../../base/steps.js'
import { longString, type Range } from './long-strings.js'
import { PAUSED, STEP_BYTES, StringScan } from './string-scan.js'

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
