/**
 * Parses a client's bytes as a JSON object. Depth, size and duplicate keys are checked before `JSON.parse`
 * spends time on the body: first by a quick scan, which most bodies pass, then by a full scan, which finds
 * the error.
 */
import { isAscii, isUtf8 } from 'node:buffer'
import { malformed } from '../../../errors.js'
import { isObject } from '../../../base/json.js'
import type { JsonObject, JsonValue } from '../../../base/json.js'
import { markToolNumbers, parseExact } from './exact-numbers.js'
import { quickScan, type ScanResult, type Member } from './quick-scan.js'
import { putData, withoutData } from './long-strings.js'
import { parseOrNull, FullScan, type ScanOptions } from './full-scan.js'
import { atOnce, type Steps } from '../../../base/steps.js'

/** A body that passed every check. */
export interface ParsedObject {
  readonly value: JsonObject
  /** The top-level members in the order of the bytes. Keys are unique. */
  readonly members: readonly Member[]
}

export interface ParseOptions {
  /** Nesting depth with the root (default 64, half of the limit of protobuf's JSON). */
  readonly maxDepth?: number
  /** Braces, brackets, colons and commas (default 200,000; 500,000 keys block the event loop for 245 ms). */
  readonly maxTokens?: number
  /**
   * Bytes without inline data, which is strings of at least 64 KiB of ASCII without escapes (default 8 MiB:
   * about two million tokens of text, 15 ms in the parser).
   */
  readonly maxTextBytes?: number
  /** The bytes are known to be ASCII (default: they are examined). */
  readonly isAscii?: boolean
}

/** The default limit for bytes without inline data. */
export const MAX_TEXT_BYTES = 8 * 1024 * 1024

/**
 * The object in the bytes. They must be UTF-8 without a byte order mark and without bytes after the object,
 * keys must be unique within an object (after unescaping), and numbers within the range of a double. A key
 * `__proto__` becomes an ordinary own property. Throws `GatewayError(malformed_request)` whose message names
 * the path.
 */
export function parseObject(bytes: Buffer, options: ParseOptions = {}): ParsedObject {
  return atOnce(parseSteps(bytes, options))
}

/** The same for large bodies, in steps. */
export function* parseSteps(bytes: Buffer, options: ParseOptions = {}): Steps<ParsedObject> {
  const isPlain = options.isAscii === true || checkEncoding(bytes)
  const { maxDepth = 64, maxTokens = 200_000, maxTextBytes = MAX_TEXT_BYTES } = options
  const limits = { isPlain, maxDepth, maxTokens, maxTextBytes, isProbing: false }
  yield
  // For a larger body, the amount of inline data decides, which the full scan counts.
  const seen = bytes.length > maxTextBytes ? null : yield* quickScan(bytes, limits)
  if (seen === null) yield
  const { members, data } = seen ?? (yield* fullScan(bytes, limits))
  yield
  const longStrings = { bytes, isPlain, data }
  const text = withoutData(longStrings)
  if (text === null) {
    throw malformed('The body is not valid Unicode: a string begins with the escape \\udc01')
  }
  const value = parseOrNull(text)
  if (isObject(value)) {
    yield* markToolNumbers(value, text)
    yield* putData(value, longStrings)
    return { value, members }
  }
  // The scans find the error that the parser found.
  yield
  if (seen !== null) yield* fullScan(bytes, limits)
  yield* fullScan(bytes, { ...limits, isProbing: true })
  throw malformed('The body is not valid JSON: one of its keys or values is malformed')
}

/** Whether the bytes are ASCII. Throws for a byte order mark and for invalid UTF-8. */
function checkEncoding(bytes: Buffer): boolean {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) {
    throw malformed('The body starts with a byte order mark: send UTF-8 without it')
  }
  const isPlain = isAscii(bytes)
  if (!isPlain && !isUtf8(bytes)) throw malformed('The body is not valid UTF-8')
  return isPlain
}

function fullScan(bytes: Buffer, options: ScanOptions): Steps<ScanResult> {
  return new FullScan(bytes, options).steps()
}

/**
 * The object in an upstream's text, with numbers marked as in `formats/wire/json/exact-numbers.ts`; null for
 * any other text. Never throws.
 */
export function parseReply(text: string): JsonObject | null {
  const value = parseOrNull(text, parseExact)
  return isObject(value) ? value : null
}

/** The same for an array, and for the objects of lines (NDJSON). */
export function parseArray(text: string): JsonValue[] | null {
  const value = parseOrNull(text, parseExact)
  if (Array.isArray(value)) return value as JsonValue[]
  if (value !== null) return null
  const objects: JsonObject[] = []
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue
    const object = parseReply(line)
    if (object === null) return null
    objects.push(object)
  }
  return objects.length === 0 ? null : objects
}
