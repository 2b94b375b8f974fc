/**
 * Decodes Anthropic's errors: HTTP errors, `error` events in a stream and `error` bodies.
 * The kind depends on the status and `type`; of messages only that for a context overflow is matched.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { isObject, objectOf, stringOf, type JsonObject, parsedJson } from '../../../base/json.js'
import type { ErrorKind, WireError } from '../../../errors.js'
import { bodyText, errorIn, errorText, isPage } from '../../wire/error-text.js'
import { retryAfterSeconds } from '../../wire/retry-after.js'
import { isMissingEndpoint, missingEndpoint, redactUpstreamText } from '../../wire/upstream-errors.js'
import { PROVIDER } from '../constants.js'

const BY_TYPE: Readonly<Record<string, ErrorKind>> = {
  invalid_request_error: 'upstream_rejected',
  conflict_error: 'upstream_rejected',
  authentication_error: 'upstream_denied',
  permission_error: 'upstream_denied',
  billing_error: 'upstream_busy',
  not_found_error: 'unknown_model',
  request_too_large: 'body_too_large',
  rate_limit_error: 'upstream_busy',
  overloaded_error: 'upstream_busy',
  timeout_error: 'upstream_timeout',
  api_error: 'upstream_failed',
}

const BY_STATUS: Readonly<Record<number, ErrorKind>> = {
  400: 'upstream_rejected',
  401: 'upstream_denied',
  402: 'upstream_busy',
  403: 'upstream_denied',
  404: 'unknown_model',
  408: 'upstream_timeout',
  409: 'upstream_rejected',
  413: 'body_too_large',
  422: 'upstream_rejected',
  429: 'upstream_busy',
  503: 'upstream_busy',
  504: 'upstream_timeout',
  529: 'upstream_busy',
}

/** Messages for errors whose own message is missing or must not reach the client. */
const GENERIC: Readonly<Partial<Record<ErrorKind, string>>> = {
  upstream_rejected: 'The upstream rejected the request and gave no reason.',
  upstream_denied: "The upstream did not accept the gateway's credentials.",
  unknown_model: 'The upstream does not have this model.',
  body_too_large: 'The request is too large for the upstream.',
  upstream_busy: 'The upstream is limiting requests or overloaded.',
  upstream_timeout: 'The upstream took too long.',
}

/**
 * The message of a context overflow, which has no error code of its own. The whole message must match: other
 * errors also contain "too long", such as those about names and ids.
 */
const TOO_LONG =
  /^(?:prompt is too long(?:: \d+ tokens > \d+ maximum)?|input length and `max_tokens` exceed context limit: \d+ \+ \d+ > \d+, .{1,100})$/

/** The names in `error.details.error_code`, by which the SDK chooses the class of an exception. */
const ERROR_CODE = /^[a-z][a-z0-9_]{0,63}$/

const SPENDING_LIMIT = "The gateway's account at the upstream has reached its spending limit."

/** Decodes an HTTP error. `body` is JSON or any other text, such as HTML. */
export function decodeError(status: number, headers: IncomingHttpHeaders, body: string): WireError {
  const error = errorOf(objectOf(parsedJson(body.trim())), bodyText(body))
  const words = stringOf(error.message) ?? ''
  if (isMissingEndpoint(status, isPage(body) ? '' : words)) return missingEndpoint(words)
  const wire = describe(BY_STATUS[status] ?? 'upstream_failed', error, status === 402)
  wire.upstreamCode ??= String(status)
  if (wire.retryable === false) return wire
  if (headers['x-should-retry'] === 'false') wire.retryable = false
  const seconds = retryAfterSeconds(headers)
  if (seconds !== undefined) wire.retryAfterSeconds = seconds
  return wire
}

/** Decodes an error inside a 200 reply: the `error` event of a stream, or a whole body of type `error`. */
export function decodeErrorPayload(payload: JsonObject): WireError {
  const error = errorOf(payload, errorText(payload))
  const type = stringOf(error.type) ?? ''
  const kind = Object.hasOwn(BY_TYPE, type) ? BY_TYPE[type] : undefined
  return describe(kind ?? 'upstream_failed', error, type === 'billing_error')
}

/** The `error` of a body or an event with its words, which other servers put in other members. */
function errorOf(payload: JsonObject, words: string): JsonObject {
  const error = isObject(payload.error) ? payload.error : (errorIn(payload) ?? {})
  const message = errorText(error) || words
  return message === '' ? error : { ...error, message }
}

function describe(kind: ErrorKind, error: JsonObject, billing: boolean): WireError {
  const code = stringOf(objectOf(error.details).error_code) ?? stringOf(error.type)
  const spent = billing || (code?.endsWith('_spend_limit_reached') ?? false)
  const wire: WireError = { kind, message: spent ? SPENDING_LIMIT : messageOf(kind, error) }
  if (kind === 'upstream_rejected' && TOO_LONG.test(stringOf(error.message) ?? '')) {
    wire.kind = 'context_too_long'
  }
  if (spent) {
    wire.kind = 'upstream_busy'
    wire.retryable = false
    wire.code = 'insufficient_quota'
  }
  const own = stringOf(error.message) ?? ''
  if ((spent || kind === 'upstream_denied') && own !== '') wire.upstreamMessage = redactUpstreamText(own)
  const type = stringOf(error.type)
  if (type !== undefined && !spent && kind !== 'upstream_denied' && Object.hasOwn(BY_TYPE, type)) {
    const errorCode = stringOf(objectOf(error.details).error_code) ?? ''
    wire.native = ERROR_CODE.test(errorCode)
      ? { dialect: PROVIDER, type, details: { error_code: errorCode } }
      : { dialect: PROVIDER, type }
  }
  if (code !== undefined && code !== '') wire.upstreamCode = redactUpstreamText(code).slice(0, 100)
  return wire
}

/** A denial concerns the gateway's own key, so its message is not passed to the client. */
function messageOf(kind: ErrorKind, error: JsonObject): string {
  const own = stringOf(error.message)
  if (own !== undefined && own.trim() !== '' && kind !== 'upstream_denied') return redactUpstreamText(own)
  return GENERIC[kind] ?? 'The upstream failed.'
}
