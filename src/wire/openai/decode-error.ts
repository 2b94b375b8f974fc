/**
 * Errors of OpenAI's APIs, as upstreams report them: bodies of failed answers, and errors inside a 200.
 * Chat completions and Responses share the form. Decides on no status: the rows are in `errors.ts`.
 *
 * Source: OpenAI API reference, "Error codes", and recorded error bodies, read 2026-11-20.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { isObject, type JsonObject, stringOf } from '../../chat/json.js'
import type { ErrorKind, WireError } from '../../errors.js'
import { retryAfterSeconds } from '../retry-after.js'
import { isMissingEndpoint, MISSING_ENDPOINT } from '../missing-endpoint.js'
import { scrub } from '../redact-upstream-text.js'

/** Codes and types that say "no money left": another try is pointless. */
const QUOTA = new Set(['insufficient_quota', 'billing_hard_limit_reached', 'billing_error'])
/** The one code for too long a conversation; what a message says of lengths proves nothing. */
const CONTEXT = 'context_length_exceeded'
const MODEL = new Set(['model_not_found', 'DeploymentNotFound', 'unknown_model'])

/** What an upstream's failed answer means. A body that is not JSON never lends its text. */
export function decodeError(status: number, headers: IncomingHttpHeaders, body: string): WireError {
  const payload = parse(body)
  const error =
    payload === null
      ? withoutBody(status)
      : describe(payload, status, `The upstream answered ${status} without a message.`)
  const wait = retryAfterSeconds(headers)
  if (wait !== undefined) error.retryAfterSeconds = wait
  if (headers['x-should-retry'] === 'false') error.retryable = false
  return error
}

/** What an error inside a 200 means: `payload` is the value of its `error` member. */
export function decodeErrorPayload(payload: unknown): WireError {
  const fallback = 'The upstream reported a failure without a message.'
  if (isObject(payload)) return describe(payload, null, fallback)
  const message = typeof payload === 'string' && payload !== '' ? scrub(payload) : fallback
  return { kind: 'upstream_failed', message }
}

/** The `error` object of a JSON body; null where the body is no JSON object. */
function parse(body: string): JsonObject | null {
  let value: unknown
  try {
    value = JSON.parse(body)
  } catch {
    return null
  }
  // Google's compatible endpoint wraps the object in an array.
  if (Array.isArray(value)) value = value[0]
  if (!isObject(value)) return null
  const error = value['error']
  if (isObject(error)) return error
  return typeof error === 'string' ? { ...value, message: error } : value
}

function withoutBody(status: number): WireError {
  if (isMissingEndpoint(status, '')) return { ...MISSING_ENDPOINT }
  const kind = kindOf(status, undefined, '', '')
  const message = `The upstream answered ${status} without a readable error.`
  return { kind, message, upstreamCode: String(status) }
}

function describe(payload: JsonObject, status: number | null, fallback: string): WireError {
  const code = wordOf(payload['code'])
  const type = wordOf(payload['type'])
  const param = stringOf(payload['param'])
  const inner = Number(code)
  const known = status ?? (Number.isInteger(inner) && inner >= 400 && inner < 600 ? inner : null)
  const text = textOf(payload)
  const isAboutRequest = MODEL.has(code) || MODEL.has(type) || (param ?? '') !== ''
  if (status !== null && !isAboutRequest && isMissingEndpoint(status, text))
    return { ...MISSING_ENDPOINT }
  const kind = known === null ? kindOfWords(code, type) : kindOf(known, param, code, type)
  const message =
    kind === 'upstream_denied'
      ? 'The upstream refused the gateway’s own credentials.'
      : text === ''
        ? fallback
        : scrub(text)
  const error: WireError = { kind, message }
  if (param !== undefined && param !== '') error.param = scrub(param).slice(0, 256)
  const quota = QUOTA.has(code) || QUOTA.has(type) || known === 402
  if (kind === 'upstream_busy' && quota) error.retryable = false
  const word = code !== '' ? code : type !== '' ? type : known === null ? '' : String(known)
  if (word !== '') error.upstreamCode = scrub(word).slice(0, 128)
  return error
}

function textOf(payload: JsonObject): string {
  const { message, detail, error_msg: word } = payload
  return stringOf(message) ?? stringOf(detail) ?? stringOf(word) ?? ''
}

/** Kinds by status; only the code and the parameter tell variants apart, never the text. */
function kindOf(status: number, param: string | undefined, code: string, type: string): ErrorKind {
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
      return param === undefined || param === '' || param === 'model'
        ? 'unknown_model'
        : 'upstream_rejected'
    case 408:
    case 504:
      return 'upstream_timeout'
    case 413:
      return 'body_too_large'
    default:
      return status >= 400 && status < 500 && status !== 499
        ? 'upstream_rejected'
        : 'upstream_failed'
  }
}

/** Kinds by word, for an error inside a stream that names no status. */
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
    // Responses has a code for each thing that may be wrong with a picture, and for each policy.
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
