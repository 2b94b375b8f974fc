/**
 * Decodes errors of OpenAI's APIs: bodies with an error status, and errors inside a reply with status 200.
 * Chat completions and Responses share the form.
 *
 * Source: OpenAI API reference, "Error codes", and recorded error bodies, read 2026-11-20.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { isObject, type JsonObject, stringOf } from '../../../base/json.js'
import type { ErrorKind, WireError } from '../../../errors.js'
import { retryAfterSeconds } from '../retry-after.js'
import { bodyText, errorIn, errorText, isPage } from '../error-text.js'
import { isMissingEndpoint, missingEndpoint, redactUpstreamText } from '../upstream-errors.js'

/** Codes and types of an exhausted quota, which a retry does not help. */
const QUOTA = new Set(['insufficient_quota', 'billing_hard_limit_reached', 'billing_error'])
/** The only proof of a conversation that is too long. Messages about lengths also have other causes. */
const CONTEXT = 'context_length_exceeded'
const MODEL = new Set(['model_not_found', 'DeploymentNotFound', 'unknown_model'])

/** A code that clients may compare; some vendors repeat the status there. */
const CODE = /^[A-Za-z][\w.-]{0,63}$/

/** The words of an error that distinguish its variants; empty if the upstream sent none. */
interface ErrorWords {
  readonly code: string
  readonly type: string
  readonly param: string | undefined
}

const NO_WORDS: ErrorWords = { code: '', type: '', param: undefined }

/** The error of a reply with an error status, whose body is JSON, text or a page. */
export function decodeError(status: number, headers: IncomingHttpHeaders, body: string): WireError {
  const payload = parse(body)
  const text = payload === null ? bodyText(body) : ''
  const error =
    payload === null && (text === '' || (status === 404 && isPage(body)))
      ? withoutBody(status, text)
      : describe(payload ?? { message: text }, status, `The upstream answered ${status} without a message.`)
  const wait = retryAfterSeconds(headers)
  if (wait !== undefined) error.retryAfterSeconds = wait
  if (headers['x-should-retry'] === 'false') error.retryable = false
  return error
}

/** An error inside a reply with status 200; `payload` is the error in it, or its text. */
export function decodeErrorPayload(payload: unknown): WireError {
  const fallback = 'The upstream reported a failure without a message.'
  if (isObject(payload)) return describe(payload, null, fallback)
  const text = typeof payload === 'string' ? payload : Array.isArray(payload) ? errorText(payload) : ''
  return { kind: 'upstream_failed', message: text === '' ? fallback : redactUpstreamText(text) }
}

/** The `error` object of a JSON body; null if the body is not a JSON object. */
function parse(body: string): JsonObject | null {
  let value: unknown
  try {
    value = JSON.parse(body.trim())
  } catch {
    return null
  }
  // Google's OpenAI-compatible endpoint wraps the object in an array.
  if (Array.isArray(value)) value = value[0]
  if (!isObject(value)) return null
  const error = errorIn(value) ?? value
  return errorText(error) === '' ? { ...error, message: errorText(value) } : error
}

function withoutBody(status: number, page: string): WireError {
  if (isMissingEndpoint(status, '')) return missingEndpoint(page)
  const kind = kindOf(status, NO_WORDS)
  const message = `The upstream answered ${status} without a readable error.`
  return { kind, message, upstreamCode: String(status) }
}

function describe(payload: JsonObject, status: number | null, fallback: string): WireError {
  const code = wordOf(payload['code'])
  const type = wordOf(payload['type'])
  const param = stringOf(payload['param'])
  const known = status ?? errorStatusOf(code) ?? errorStatusOf(payload['status'])
  const text = errorText(payload)
  const isAboutRequest = MODEL.has(code) || MODEL.has(type) || (param ?? '') !== ''
  if (status !== null && !isAboutRequest && isMissingEndpoint(status, text)) return missingEndpoint(text)
  const kind = known === null ? kindOfWords(code, type) : kindOf(known, { code, type, param })
  const message =
    kind === 'upstream_denied'
      ? "The upstream refused the gateway's own credentials."
      : text === ''
        ? fallback
        : redactUpstreamText(text)
  const error: WireError = { kind, message }
  if (kind === 'upstream_denied' && text !== '') error.upstreamMessage = redactUpstreamText(text)
  if (param !== undefined && param !== '') error.param = redactUpstreamText(param).slice(0, 256)
  const quota = QUOTA.has(code) || QUOTA.has(type) || known === 402
  if (kind === 'upstream_busy' && quota) error.retryable = false
  const own = kind === 'upstream_denied' || !CODE.test(code) ? undefined : redactUpstreamText(code)
  if (own !== undefined || quota) error.code = own ?? 'insufficient_quota'
  const word = code !== '' ? code : type !== '' ? type : known === null ? '' : String(known)
  if (word !== '') error.upstreamCode = redactUpstreamText(word).slice(0, 128)
  return error
}

/** A status that the error names itself: in `code` (OpenRouter) or in `status` (Azure). */
function errorStatusOf(value: unknown): number | null {
  const status = Number(value)
  return Number.isInteger(status) && status >= 400 && status < 600 ? status : null
}

/**
 * The kind of an error with a status. The code and the parameter distinguish variants; the message is not
 * used.
 */
function kindOf(status: number, { code, type, param }: ErrorWords): ErrorKind {
  if (MODEL.has(code) || MODEL.has(type)) return 'unknown_model'
  if (QUOTA.has(code) || QUOTA.has(type)) return 'upstream_busy'
  if (code === CONTEXT) return 'context_too_long'
  switch (status) {
    case 401:
    case 403:
    case 407:
      return 'upstream_denied'
    case 402:
    case 429:
    case 503:
    case 529:
      return 'upstream_busy'
    case 404:
      return param === undefined || param === '' || param === 'model' ? 'unknown_model' : 'upstream_rejected'
    case 408:
    case 504:
      return 'upstream_timeout'
    case 413:
      return 'body_too_large'
    default:
      return status >= 400 && status < 500 && status !== 499 ? 'upstream_rejected' : 'upstream_failed'
  }
}

/** The kind by code or type, for an error inside a stream without a status. */
function kindOfWords(code: string, type: string): ErrorKind {
  if (MODEL.has(code) || MODEL.has(type)) return 'unknown_model'
  if (code === CONTEXT) return 'context_too_long'
  for (const word of [code, type]) {
    if (QUOTA.has(word) || /^rate_limit|overloaded|too_many_requests/.test(word)) {
      return 'upstream_busy'
    }
    if (/^(?:authentication|permission)|^invalid_api_key$|unauthorized/.test(word)) {
      return 'upstream_denied'
    }
    // Responses has many codes for faults of images and for policies.
    if (/(?:^|_)image(?:_|$)|_policy$/.test(word)) return 'upstream_rejected'
    if (/timeout|deadline/.test(word)) return 'upstream_timeout'
    if (/^invalid_|^unsupported_/.test(word)) return 'upstream_rejected'
  }
  return 'upstream_failed'
}

function wordOf(value: unknown): string {
  if (typeof value === 'number') return String(value)
  return typeof value === 'string' ? value : ''
}
