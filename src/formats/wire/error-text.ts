/**
 * Finds an error, and its words, in JSON of any provider or proxy.
 *
 * Sources: OpenAI, Anthropic, Google and AWS API references; FastAPI, "Handling Errors" (`detail`); Mistral
 * (a `message` with a `detail`, recorded); Cloudflare (`errors`); MiniMax (`base_resp`); OpenRouter, "Error
 * Handling" (`metadata.raw`); vLLM (`object: error`), read 2026-11-29.
 */
import { arrayOf, isObject, objectOf, stringOf, type JsonObject, type JsonValue } from '../../base/json.js'

/** The members with the words of an error, the most specific first. */
const TEXTS = [
  'message',
  'detail',
  'msg',
  'Message',
  'error_msg',
  'error_message',
  'status_msg',
  'errors',
  'error',
  'base_resp',
  'error_description',
  'title',
  'reason',
  'details',
  'description',
  'errorMessage',
  'innererror',
  'fault',
  'faultstring',
]
/** Errors in a list that are named, and levels that are searched. */
const MAX_ITEMS = 8
const MAX_DEPTH = 5
/** Part of a body that is not JSON which is shown. */
const MAX_PLAIN_CHARS = 4096
const CUT_TEXT = /"(?:message|msg|detail|Message|error_msg|status_msg|error)"\s*:\s*"((?:[^"\\]|\\.){1,4096})/

/** The words of an error; empty if it has none. */
export function errorText(value: JsonValue | undefined, depth = 0): string {
  if (typeof value === 'string') return value.trim()
  if (depth === MAX_DEPTH) return ''
  if (Array.isArray(value)) {
    const texts = value.slice(0, MAX_ITEMS).map((item) => errorText(item, depth + 1))
    return texts.filter((text) => text !== '').join('; ')
  }
  if (!isObject(value)) return ''
  for (const name of TEXTS) {
    const text = errorText(value[name], depth + 1)
    if (text !== '') return withPlace(value, text) + rawText(value, depth)
  }
  return fieldTexts(value['errors'], depth + 1)
}

/** The errors by field, as Rails and ASP.NET write them. */
function fieldTexts(errors: JsonValue | undefined, depth: number): string {
  const texts = Object.entries(objectOf(errors)).slice(0, MAX_ITEMS)
  const named = texts.map(([field, value]) => [field, errorText(value, depth)] as const)
  return named.flatMap(([field, text]) => (text === '' ? [] : [`${field}: ${text}`])).join('; ')
}

/** A fault of validation names the place in the request. */
function withPlace({ loc }: JsonObject, text: string): string {
  const place = arrayOf(loc).filter((part) => typeof part === 'string' || typeof part === 'number')
  return place.length === 0 ? text : `${place.slice(0, MAX_ITEMS).join('.')}: ${text}`
}

/** The words of the provider behind OpenRouter, which are JSON or text. */
function rawText({ metadata }: JsonObject, depth: number): string {
  const { raw } = objectOf(metadata)
  const text = typeof raw === 'string' ? bodyText(raw) : errorText(raw, depth + 1)
  return text === '' ? '' : ` (${text})`
}

/** The words of the body of an error: JSON, also if it is cut, or text that is not a page. */
export function bodyText(body: string): string {
  const text = body.trim()
  try {
    return errorText(JSON.parse(text) as JsonValue)
  } catch {
    const start = text.slice(0, MAX_PLAIN_CHARS)
    if (start.startsWith('<')) return ''
    if (!start.startsWith('{') && !start.startsWith('[')) return start
    const found = CUT_TEXT.exec(start)?.[1]
    return found === undefined ? '' : found.replace(/\\(["\\/])/g, '$1').replace(/\\[a-z]/g, ' ')
  }
}

const FAILED: ReadonlySet<unknown> = new Set(['error', 'failed', 'failure'])
const SUCCEEDED: ReadonlySet<unknown> = new Set([undefined, null, 0, '0', 200, '200', '', 'success', 'ok'])
const MESSAGES = ['message', 'msg', 'Message', 'error_msg', 'error_message', 'detail', 'errors']

/**
 * The error that an object is or has, in any form: `error`, `object: "error"`, `detail`, `errors`,
 * `code` with `msg`, `base_resp` with a code; null if it reports none. Members of a reply do not count, so
 * call it with an object that may be no reply.
 */
export function errorIn(frame: JsonObject): JsonObject | null {
  const { error, base_resp: base, type } = frame
  if (isObject(error)) return error
  if (typeof error === 'string' && error !== '')
    return { ...frame, message: stringOf(frame['message']) ?? error }
  if (Array.isArray(error) && error.length > 0) return { message: errorText(error) }
  if (error === true) return frame
  const failure = baseError(objectOf(base))
  if (failure !== null) return failure
  if (FAILED.has(frame['object']) || FAILED.has(type) || frame['success'] === false) return frame
  if (typeof type === 'string' && !/error|exception|fail/i.test(type)) return null
  if (FAILED.has(frame['status'])) return frame
  const hasWords = MESSAGES.some((name) => errorText(frame[name]) !== '')
  const hasCode = Object.hasOwn(frame, 'code') && SUCCEEDED.has(frame['code'])
  return hasWords && !hasCode ? frame : null
}

/** MiniMax's kinds of failures, as statuses. */
const BASE_STATUSES: Readonly<Record<string, number>> = {
  1001: 504,
  1002: 429,
  1004: 401,
  1008: 402,
  1026: 400,
  1027: 400,
  1039: 429,
  1041: 429,
  2013: 400,
  2049: 401,
}

/** The error of MiniMax, which is beside or instead of the reply; null for a success. */
export function baseError({ status_code: code, status_msg: message }: JsonObject): JsonObject | null {
  if (SUCCEEDED.has(code)) return null
  const status = typeof code === 'number' || typeof code === 'string' ? BASE_STATUSES[code] : undefined
  return { code: status ?? code ?? null, message: errorText(message) }
}
