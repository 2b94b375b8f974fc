/**
 * Finds an error, and its words, in JSON of any provider or proxy.
 *
 * Sources: OpenAI, Anthropic, Google and AWS API references; FastAPI, "Handling Errors" (`detail`); Mistral
 * (a `message` with a `detail`, recorded); Cloudflare (`errors`); MiniMax (`base_resp`); OpenRouter, "Error
 * Handling" (`metadata.raw`); vLLM (`object: error`), read 2026-11-29.
 */
import { arrayOf, isObject, objectOf, type JsonObject, type JsonValue } from '../../base/json.js'

/** The members with the words of an error, the most specific first; without case, `_` and `-`. */
const TEXTS = [
  'message',
  'detail',
  'msg',
  'errormsg',
  'errormessage',
  'errmsg',
  'statusmsg',
  'retmsg',
  'usermessage',
  'errordescription',
  'errors',
  'error',
  'err',
  'baseresp',
  'exception',
  'failure',
  'fault',
  'faultstring',
  'innererror',
  'cause',
  'description',
  'reason',
  'details',
  'title',
  'statusmessage',
  'statustext',
  'explanation',
  'warning',
  'info',
  'hint',
]
/** Members that proxies wrap an error in. */
const WRAPPERS = ['header', 'status', 'response', 'data', 'result', 'output', 'body', 'payload']
/** Errors in a list that are named, members that are compared, and levels that are searched. */
const MAX_ITEMS = 8
const MAX_MEMBERS = 64
const MAX_DEPTH = 6
/** Part of a body that is not JSON which is shown. */
const MAX_PLAIN_CHARS = 4096
/** A log level in brackets is no array. */
const JSON_START = /^(?:\{|\[(?!\w))/
const CUT_TEXT = /"(?:message|msg|detail|Message|error_msg|status_msg|error)"\s*:\s*"((?:[^"\\]|\\.){1,4096})/

/** The words of an error; empty if it has none. */
export function errorText(value: JsonValue | undefined, depth = 0): string {
  if (typeof value === 'string') return depth === 0 ? value.trim() : bodyText(value, depth)
  if (depth === MAX_DEPTH) return ''
  if (Array.isArray(value)) {
    const texts = value.slice(0, MAX_ITEMS).map((item) => errorText(item, depth + 1))
    return texts.filter((text) => text !== '').join('; ')
  }
  if (!isObject(value)) return ''
  const members = membersOf(value)
  for (const name of TEXTS) {
    const text = errorText(members.get(name), depth + 1)
    if (text === '') continue
    const more = moreWords(value, { text, depth })
    return withPlace(value, text) + (more === '' ? '' : ` (${more})`)
  }
  const fields = fieldTexts(members.get('errors'), depth + 1)
  if (fields !== '') return fields
  const inner = WRAPPERS.map((name) => members.get(name)).filter((each) => typeof each === 'object')
  const found = inner.map((each) => errorText(each, depth + 1)).find((text) => text !== '')
  return found ?? moreWords(value, { text: '', depth })
}

/** The members of an object by their plain names. */
function membersOf(value: JsonObject): Map<string, JsonValue | undefined> {
  const members = Object.entries(value).slice(0, MAX_MEMBERS)
  // The first of two members with like names counts.
  return new Map(members.reverse().map(([name, each]) => [plainName(name), each]))
}

function plainName(name: string): string {
  return name.replace(/[_-]/g, '').toLowerCase()
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

/**
 * What an error contains beside its message: the words of the provider behind OpenRouter, which are JSON or
 * text, Azure's inner error, and the fields that Google names.
 */
function moreWords(
  { metadata, innererror, details }: JsonObject,
  { text, depth }: { readonly text: string; readonly depth: number },
): string {
  const faults = arrayOf(details).flatMap((detail) => arrayOf(objectOf(detail)['fieldViolations']))
  const fields = faults.slice(0, MAX_ITEMS).map((fault) => {
    const { field, description } = objectOf(fault)
    const words = errorText(description, depth + 1)
    return typeof field === 'string' && words !== '' ? `${field}: ${words}` : words
  })
  const words = [objectOf(metadata)['raw'], objectOf(innererror)['message']]
  const all = [...words.map((each) => errorText(each, depth + 1)), ...fields]
  const more = all.filter((each) => each !== '' && !text.includes(each))
  return more.join('; ')
}

/**
 * The words of the body of an error: JSON, also if it is cut or in an event, text, or a page or XML.
 */
export function bodyText(body: string, depth = 0): string {
  const text = body.trim()
  // A text of an error that is a number is no JSON.
  const json = depth === 0 || /^[{["]/.test(text) ? parsed(text) : undefined
  if (json !== undefined) return errorText(json, depth + 1)
  const start = text.slice(0, MAX_PLAIN_CHARS)
  if (isMarkup(start)) return markupText(start)
  if (depth === 0 && /^(?:event|data):/.test(start)) {
    const data = /^data: ?(.*)$/m.exec(text)?.[1]
    if (data !== undefined) return bodyText(data, depth + 1)
  }
  if (!JSON_START.test(start)) return depth === 0 ? start : text
  const found = CUT_TEXT.exec(start)?.[1]
  if (found === undefined) return depth === 0 ? '' : text
  return found.replace(/\\(["\\/])/g, '$1').replace(/\\[a-z]/g, ' ')
}

/**
 * The words of a body or an event with status 200 that is no reply: the errors in its JSON or in its lines of
 * JSON, or the title of a page. Empty for all else, which may be output of a model.
 */
export function strayWords(body: string): string {
  const text = body.trim()
  if (isMarkup(text) || CUT_ERROR.test(text)) return bodyText(text)
  const value = parsed(text) ?? linesOf(text)
  const items = Array.isArray(value) ? value.flat(MAX_DEPTH) : [value]
  const texts = items.slice(0, MAX_ITEMS).map((item) => {
    const error = isObject(item) ? (errorIn(item) ?? item['warning'] ?? null) : null
    return error === null ? '' : errorText(error, 1)
  })
  return texts.filter((each) => each !== '').join('; ')
}

/** JSON that begins as an error; what follows may be missing. */
const CUT_ERROR = /^\[?\s*\{\s*"(?:error|errors|detail)"/

/** The values of lines of JSON, or of events. */
function linesOf(text: string): readonly JsonValue[] {
  const values = text.split('\n', MAX_ITEMS).map((line) => parsed(line.replace(/^data:/, '')))
  return values.filter((value) => value !== undefined)
}

function parsed(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue
  } catch {
    return undefined
  }
}

/** Whether the body of an error is a page, which servers without the endpoint send. */
export function isPage(body: string): boolean {
  const start = body.slice(0, MAX_PLAIN_CHARS).trimStart()
  return isMarkup(start) && !XML_WORDS.test(start)
}

function isMarkup(text: string): boolean {
  return /^<[a-z!?]/i.test(text)
}

const XML_WORDS = /<(?:\w{1,16}:)?(?:message|faultstring)\b[^>]{0,256}>([^<]{1,2048})/i
const HEADINGS = [/<title\b[^>]{0,256}>([^<]{1,512})/i, /<h[1-3]\b[^>]{0,256}>([^<]{1,512})/i]
const UNSHOWN = /<(script|style|svg|head)\b[\s\S]*?(?:<\/\1\s*>|$)/gi
/** Text of a page without a heading that is shown. */
const MAX_PAGE_CHARS = 300

/** The message in XML, or the title of a page, its heading or its first text. */
function markupText(text: string): string {
  const found = [XML_WORDS, ...HEADINGS].map((words) => plainText(words.exec(text)?.[1] ?? ''))
  const shown = found.find((each) => each !== '')
  if (shown !== undefined) return shown
  return plainText(text.replace(UNSHOWN, ' ').replace(/<[^<>]*>?/g, ' ')).slice(0, MAX_PAGE_CHARS)
}

const ENTITIES: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
}

function plainText(text: string): string {
  const whole = text.replace(
    /&(?:#(\d{1,5})|([a-z]{2,4}));/g,
    (entity, code: string | undefined, name: string) =>
      code === undefined ? (ENTITIES[name] ?? entity) : String.fromCharCode(Number(code)),
  )
  return whole.replace(/\s+/g, ' ').trim()
}

/** Members with a status or a code, which is that of a failure if it is neither zero nor one of success. */
const CODES = ['error_code', 'errno', 'errcode', 'ret_code', 'retcode']
const STATUSES = ['status', 'statusCode', 'status_code']

function hasFailed(code: JsonValue | undefined): boolean {
  return (typeof code === 'number' || typeof code === 'string') && !SUCCEEDED.has(code)
}

const FAILED: ReadonlySet<unknown> = new Set(['error', 'failed', 'failure'])
const SUCCEEDED: ReadonlySet<unknown> = new Set([undefined, null, 0, '0', 200, '200', '', 'success', 'ok'])
/** The members whose words make an object an error, unless it has another type. */
const MESSAGES: ReadonlySet<string> = new Set([
  'message',
  'msg',
  'errormsg',
  'errormessage',
  'errordescription',
  'detail',
  'errors',
  'err',
  'exception',
  'failure',
  'fault',
  'faultstring',
])

/**
 * The error that an object is or has, in any form: `error`, `object: "error"`, `detail`, `errors`,
 * `code` with `msg`, `base_resp` with a code; null if it reports none. Members of a reply do not count, so
 * call it with an object that may be no reply.
 */
export function errorIn(frame: JsonObject): JsonObject | null {
  const { error, base_resp: base, type } = frame
  if (isObject(error)) return error
  // Routers report an error of the provider in the choice.
  const inChoice = objectOf(arrayOf(frame['choices'])[0])['error']
  if (isObject(inChoice)) return inChoice
  if (typeof error === 'string' && error !== '') return { ...frame, message: errorText(frame) }
  if (Array.isArray(error) && error.length > 0) return { message: errorText(error) }
  if (error === true) return frame
  const failure = baseError(objectOf(base))
  if (failure !== null) return failure
  if (FAILED.has(frame['object']) || FAILED.has(type) || frame['success'] === false) return frame
  if (STATUSES.some((name) => Number(frame[name]) >= 400)) return frame
  if (typeof type === 'string' && !/error|exception|fail/i.test(type)) return null
  if ([frame['status'], frame['event'], frame['level']].some((word) => FAILED.has(word))) return frame
  if (CODES.some((name) => hasFailed(frame[name]))) return frame
  const inner = WRAPPERS.map((name) => frame[name]).filter(isObject)
  const failed = inner.map(errorIn).find((each) => each !== null)
  if (failed !== undefined) return failed
  const hasWords = Object.entries(frame)
    .slice(0, MAX_MEMBERS)
    .some(([name, value]) => MESSAGES.has(plainName(name)) && errorText({ [name]: value ?? null }) !== '')
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
