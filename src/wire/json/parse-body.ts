/**
 * A client's bytes to a JSON object, checked in one pass before `JSON.parse` may spend time on them.
 * Knows no field of any dialect; depth, size and duplicate keys are all it judges. Most bodies pass at a
 * glance; the rest are looked at closer, to see whether they pass, and to say what is wrong.
 */
import { isAscii, isUtf8 } from 'node:buffer'
import { isObject } from '../../chat/json.js'
import type { JsonObject, JsonValue } from '../../chat/json.js'
import { parseExact } from './exact-numbers.js'
import { quickScan, type ScanResult, type Member } from './scan/quick-scan.js'
import { putData, withoutData } from './inline-data.js'
import { malformed } from './malformed.js'
import { parseOrNull, FullScan, type ScanOptions } from './scan/full-scan.js'

/** A body that passed every check. */
export interface ParsedObject {
  readonly value: JsonObject
  /** In the order of the bytes; no key comes twice. */
  readonly members: readonly Member[]
}

/** The limits of a body. */
export interface JsonLimits {
  /** Containers within containers, the root counted; 64, half of what protobuf's JSON allows. */
  readonly maxDepth?: number
  /** Braces, brackets, colons and commas; 200,000, since 500,000 keys block the loop for 245 ms. */
  readonly maxTokens?: number
  /**
   * Bytes beside inline data (strings of 64 KiB and more that are plain ASCII, as base64 is); 8 MiB, about two
   * million tokens of text, which the parser takes 15 ms for.
   */
  readonly maxTextBytes?: number
}

/** What is known of the text of a body. */
export interface BodyText {
  /** The text is ASCII. */
  readonly isPlain: boolean
}

/** The text of the bytes. Throws `GatewayError(malformed_request)` for a byte order mark and for invalid UTF-8. */
export function checkEncoding(bytes: Buffer): BodyText {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) {
    throw malformed('the body starts with a byte order mark; send plain UTF-8')
  }
  const isPlain = isAscii(bytes)
  if (!isPlain && !isUtf8(bytes)) throw malformed('the body is not valid UTF-8')
  return { isPlain }
}

/** A body that may be parsed. */
export interface ExaminedBody {
  readonly bytes: Buffer
  readonly isPlain: boolean
  readonly scanned: ScanResult
  /** It had a glance only. */
  readonly isQuickScan: boolean
  readonly options: ScanOptions
}

/** Bytes beside inline data that a body may have by default. */
export const MAX_TEXT_BYTES = 8 * 1024 * 1024

/**
 * The object in the bytes: strict UTF-8 without a byte order mark, no key twice in one object (after
 * unescaping), no number beyond a double, nothing after the object. A key `__proto__` is an own
 * property like any other. Throws `GatewayError(malformed_request)` whose message names the path.
 */
export function parseObject(bytes: Buffer, caps: JsonLimits = {}): ParsedObject {
  const examined = examine(bytes, checkEncoding(bytes), caps)
  return parseExamined(examined) ?? refuseInvalid(examined)
}

/** First of the three parts of `parseObject`, for a large body that is read in several turns of the event loop. */
export function examine(bytes: Buffer, { isPlain }: BodyText, caps: JsonLimits = {}): ExaminedBody {
  const { maxDepth = 64, maxTokens = 200_000, maxTextBytes = MAX_TEXT_BYTES } = caps
  const options = { isPlain, maxDepth, maxTokens, maxTextBytes, isProbing: false }
  // A larger body has to be looked at closer: how much of it is inline data decides.
  const seen = bytes.length > maxTextBytes ? null : quickScan(bytes, options)
  if (seen !== null) return { bytes, isPlain, scanned: seen, isQuickScan: true, options }
  return { bytes, isPlain, scanned: fullScan(bytes, options), isQuickScan: false, options }
}

/** The second part; null if the body is not valid JSON. Throws as `parseObject`. */
export function parseExamined({
  bytes,
  isPlain,
  scanned: seen,
}: ExaminedBody): ParsedObject | null {
  const { members, data } = seen
  const plain = withoutData(bytes, isPlain, data)
  if (plain === null) {
    throw malformed('the body is not valid Unicode: a string begins with the escape \\udc01')
  }
  const value = parseOrNull(plain)
  if (!isObject(value)) return null
  putData(value, bytes, isPlain, data)
  return { value, members }
}

/** The third part: throws what is wrong with a body that is not valid JSON. */
export function refuseInvalid({ bytes, isQuickScan: isGlance, options }: ExaminedBody): never {
  if (isGlance) fullScan(bytes, options)
  fullScan(bytes, { ...options, isProbing: true })
  throw malformed('the body is not valid JSON: one of its keys or values is malformed')
}

function fullScan(bytes: Buffer, options: ScanOptions): ScanResult {
  // Latin1 keeps offsets equal to bytes, and `indexOf` on it runs at the speed of memory.
  return new FullScan(bytes, bytes.toString('latin1'), options).run()
}

/**
 * The object in an upstream's text, integers that no double holds marked (`wire/json/exact-numbers.ts`); null for
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
