/**
 * Decodes Google's errors: HTTP errors and errors inside a stream.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { arrayOf, isObject, objectOf, stringOf, type JsonObject, type JsonValue } from '../../../base/json.js'
import type { ErrorKind, WireError } from '../../../errors.js'
import { isMissingEndpoint, missingEndpoint, redactUpstreamText } from '../../wire/upstream-errors.js'
import { bodyText, errorIn, errorText, isPage } from '../../wire/error-text.js'
import { retryAfterSeconds, wholeSeconds } from '../../wire/retry-after.js'
import { PROVIDER } from '../constants.js'

/**
 * The message of a context overflow, whose status and reason are those of any invalid request. The whole
 * message must match, so that an error that quotes the prompt does not.
 */
const TOO_LONG =
  /^The input token count(?: \(\d+\))? exceeds the maximum number of tokens allowed(?: \(\d+\))?\.?$/

/** HTTP status by the name of google.rpc.Code, for errors inside a stream without `code`. */
export const STATUS_CODES: Readonly<Record<string, number>> = {
  INVALID_ARGUMENT: 400,
  FAILED_PRECONDITION: 400,
  OUT_OF_RANGE: 400,
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  NOT_FOUND: 404,
  ALREADY_EXISTS: 409,
  ABORTED: 409,
  RESOURCE_EXHAUSTED: 429,
  CANCELLED: 499,
  INTERNAL: 500,
  UNKNOWN: 500,
  DATA_LOSS: 500,
  UNIMPLEMENTED: 501,
  UNAVAILABLE: 503,
  DEADLINE_EXCEEDED: 504,
}

const KINDS: Readonly<Record<number, ErrorKind>> = {
  401: 'upstream_denied',
  402: 'upstream_busy',
  403: 'upstream_denied',
  404: 'unknown_model',
  408: 'upstream_timeout',
  413: 'body_too_large',
  429: 'upstream_busy',
  499: 'upstream_failed',
  503: 'upstream_busy',
  504: 'upstream_timeout',
}

/** Decodes an HTTP error. `body` is JSON, in an array for streams without SSE, or any other text. */
export function decodeError(status: number, headers: IncomingHttpHeaders, body: string): WireError {
  const payload = payloadOf(body)
  const words = stringOf(payload.message) ?? ''
  if (isMissingEndpoint(status, isPage(body) ? '' : words)) return missingEndpoint(words)
  return wireError(status, payload, headers)
}

/** Decodes an `error` object inside a 200 reply. */
export function decodeStreamError(error: JsonValue): WireError {
  const payload = isObject(error) ? withWords(error, error) : { message: errorText(error) }
  const code = typeof payload.code === 'number' ? payload.code : undefined
  const named = STATUS_CODES[stringOf(payload.status) ?? '']
  return wireError(code !== undefined && code >= 400 && code < 600 ? code : (named ?? 500), payload, {})
}

function wireError(status: number, payload: JsonObject, headers: IncomingHttpHeaders): WireError {
  const details = arrayOf(payload.details).filter(isObject)
  const reason = details.map((detail) => stringOf(detail.reason)).find((text) => text !== undefined)
  const rejected = kindOf(status, reason)
  const tooLong = rejected === 'upstream_rejected' && TOO_LONG.test(stringOf(payload.message) ?? '')
  const kind = tooLong ? 'context_too_long' : rejected
  const error: WireError = { kind, message: messageOf(kind, status, payload) }
  const own = stringOf(payload.message) ?? ''
  if (kind === 'upstream_denied' && own !== '') error.upstreamMessage = redactUpstreamText(own)
  const code = reason ?? stringOf(payload.status)
  if (code !== undefined) error.upstreamCode = redactUpstreamText(code).slice(0, 100)
  const name = stringOf(payload.status)
  if (name !== undefined && Object.hasOwn(STATUS_CODES, name) && kind !== 'upstream_denied') {
    error.native = { dialect: PROVIDER, type: name }
  }
  if (status === 402 || isDailyQuota(details)) {
    // Google sends a delay of seconds even for a daily quota.
    error.retryable = false
    error.code = 'insufficient_quota'
    return error
  }
  const seconds = retrySeconds(details, headers)
  if (seconds !== undefined) error.retryAfterSeconds = seconds
  return error
}

function kindOf(status: number, reason: string | undefined): ErrorKind {
  // An invalid key is a 400 here; the key is the gateway's, not the client's.
  if (status === 400 && reason?.startsWith('API_KEY_') === true) return 'upstream_denied'
  const kind = KINDS[status]
  if (kind !== undefined) return kind
  return status >= 400 && status < 500 ? 'upstream_rejected' : 'upstream_failed'
}

function messageOf(kind: ErrorKind, status: number, payload: JsonObject): string {
  if (kind === 'upstream_denied') return "The upstream did not accept the gateway's credentials."
  const message = redactUpstreamText(stringOf(payload.message) ?? '').trim()
  return message === '' ? `The upstream answered ${status} and gave no reason.` : message
}

/** The error in a body, with its words. */
export function payloadOf(body: string): JsonObject {
  let value: unknown
  try {
    value = JSON.parse(body.trim())
  } catch {
    return { message: bodyText(body) }
  }
  const holder = Array.isArray(value) ? arrayOf(value).find(isObject) : value
  if (typeof value === 'string') return { message: errorText(value) }
  const error = errorIn(objectOf(holder)) ?? {}
  return withWords(error, isObject(holder) ? holder : {})
}

/** The error with its words, which other servers put in other members. */
function withWords(error: JsonObject, holder: JsonObject): JsonObject {
  return { ...error, message: errorText(error) || errorText(holder) }
}

function isDailyQuota(details: JsonObject[]): boolean {
  return details.some((detail) => {
    return arrayOf(detail.violations).some((violation) => {
      return (stringOf(objectOf(violation).quotaId) ?? '').includes('PerDay')
    })
  })
}

/** RetryInfo ("34.4s" → 35), else the headers. */
function retrySeconds(details: JsonObject[], headers: IncomingHttpHeaders): number | undefined {
  for (const detail of details) {
    const seconds = /^(\d+(?:\.\d+)?)s$/.exec(stringOf(detail.retryDelay) ?? '')?.[1]
    if (seconds !== undefined) return wholeSeconds(Number(seconds))
  }
  return retryAfterSeconds(headers)
}
