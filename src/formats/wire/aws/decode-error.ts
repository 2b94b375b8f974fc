/**
 * Decodes the errors of Bedrock: HTTP errors, exceptions inside a stream, and a 200 whose body is an error.
 * All of them have a name (`ThrottlingException`) and a message; the kind depends on the name.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { ErrorKind, WireError } from '../../../errors.js'
import { isObject, objectOf, stringOf, type JsonObject } from '../../../base/json.js'
import { bodyText, errorIn, errorText, isPage } from '../error-text.js'
import { retryAfterSeconds } from '../retry-after.js'
import { isMissingEndpoint, missingEndpoint, redactUpstreamText } from '../upstream-errors.js'

/** By the name without `Exception` at its end, in lower case: names inside a stream start in lower case. */
const BY_NAME: Readonly<Record<string, ErrorKind>> = {
  validation: 'upstream_rejected',
  servicequotaexceeded: 'upstream_busy',
  accessdenied: 'upstream_denied',
  unrecognizedclient: 'upstream_denied',
  invalidsignature: 'upstream_denied',
  signaturedoesnotmatch: 'upstream_denied',
  incompletesignature: 'upstream_denied',
  missingauthenticationtoken: 'upstream_denied',
  expiredtoken: 'upstream_denied',
  resourcenotfound: 'unknown_model',
  modeltimeout: 'upstream_timeout',
  modelerror: 'upstream_failed',
  modelstreamerror: 'upstream_failed',
  throttling: 'upstream_busy',
  toomanyrequests: 'upstream_busy',
  modelnotready: 'upstream_busy',
  internalserver: 'upstream_failed',
  serviceunavailable: 'upstream_busy',
}

/** For errors without a known name, such as those of proxies. */
const BY_STATUS: Readonly<Record<number, ErrorKind>> = {
  401: 'upstream_denied',
  402: 'upstream_busy',
  403: 'upstream_denied',
  404: 'unknown_model',
  408: 'upstream_timeout',
  413: 'body_too_large',
  424: 'upstream_failed',
  429: 'upstream_busy',
  503: 'upstream_busy',
  504: 'upstream_timeout',
}

const DENIED = "The upstream did not accept the gateway's credentials."
const UNKNOWN_OPERATION = 'UnknownOperationException'

/** Bedrock puts this before the messages of some models. */
const QUOTED = /^The model returned the following errors: /

/** The messages of a context overflow. The whole message must match: an error about a name may contain it. */
const TOO_LONG =
  /^(?:input is too long(?: for requested model)?|prompt is too long(?:: \d+ tokens > \d+ maximum)?|input length and `max_tokens` exceed context limit: \d+ \+ \d+ > \d+, .{1,100}|input tokens exceeded: number of input tokens exceeds maximum length.{0,100})\.?$/i

/** The message for a model that only inference profiles serve; its own text does not name the remedy. */
const ON_DEMAND = /on-demand throughput isn.t supported/i
const USE_PROFILE =
  ' Set the model of the route to the id of an inference profile, such as one that begins with "us." or "global.".'

/** Decodes an HTTP error. `body` is JSON or any other text. */
export function decodeAwsError(status: number, headers: IncomingHttpHeaders, body: string): WireError {
  const payload = parsed(body)
  const header = headers['x-amzn-errortype']
  const name = nameOf((Array.isArray(header) ? header[0] : header) ?? payload)
  const message = messageIn(payload) || bodyText(body)
  if (name === UNKNOWN_OPERATION) return unknownOperation()
  if (name === '' && isMissingEndpoint(status, isPage(body) ? '' : message)) return missingEndpoint(message)
  const other = status >= 400 && status < 500 ? 'upstream_rejected' : 'upstream_failed'
  const error = describe(kindOf(name) ?? BY_STATUS[status] ?? other, name, message)
  error.upstreamCode ??= String(status)
  if (error.kind === 'upstream_busy' && status === 402) return { ...error, retryable: false }
  const seconds = retryAfterSeconds(headers)
  if (seconds !== undefined) error.retryAfterSeconds = seconds
  return error
}

/** Decodes an exception inside a stream: an object with `__type` and `message`. */
export function decodeAwsException(payload: JsonObject): WireError {
  const name = nameOf(payload)
  if (name === UNKNOWN_OPERATION) return unknownOperation()
  return describe(kindOf(name) ?? 'upstream_failed', name, messageIn(payload))
}

/**
 * The error in a body with status 200: Bedrock answers so to a path that it does not have, such as one with a
 * bare slash in the model's id. Null if the body is no error.
 */
export function awsErrorIn(body: JsonObject): WireError | null {
  const payload = isObject(body.Output) ? body.Output : body
  return typeof payload.__type === 'string' ? decodeAwsException(payload) : null
}

/** The same, and errors in the form of a proxy; `body` may be no reply. */
export function proxyErrorIn(body: JsonObject): WireError | null {
  const error = errorIn(body)
  return awsErrorIn(body) ?? (error === null ? null : describe('upstream_failed', '', errorText(error)))
}

/** The types of Anthropic's errors that mean the same. */
const ANTHROPIC_TYPES: Readonly<Partial<Record<ErrorKind, string>>> = {
  upstream_rejected: 'invalid_request_error',
  context_too_long: 'invalid_request_error',
  upstream_denied: 'permission_error',
  unknown_model: 'not_found_error',
  upstream_timeout: 'timeout_error',
}

/** An exception inside a stream of Messages events as Anthropic's own `error` event. */
export function anthropicErrorOf(exception: JsonObject): JsonObject {
  const name = nameOf(exception)
  const kind = kindOf(name) ?? 'upstream_failed'
  const busy = name.toLowerCase().startsWith('serviceunavailable') ? 'overloaded' : 'rate_limit'
  const type = kind === 'upstream_busy' ? `${busy}_error` : (ANTHROPIC_TYPES[kind] ?? 'api_error')
  const message = messageIn(exception).replace(QUOTED, '')
  return { type: 'error', error: { type, message, details: { error_code: name } } }
}

/** The name in a header `Name:http…`, or in `prefix#Name`. */
function nameOf(source: string | JsonObject): string {
  const text = typeof source === 'string' ? source : (stringOf(source.__type) ?? '')
  const [name = ''] = text.split(':', 1)
  return name.slice(name.lastIndexOf('#') + 1).trim()
}

function kindOf(name: string): ErrorKind | undefined {
  const key = name.replace(/(?:Exception|Error)$/, '').toLowerCase()
  return Object.hasOwn(BY_NAME, key) ? BY_NAME[key] : undefined
}

function describe(kind: ErrorKind, name: string, message: string): WireError {
  const own = redactUpstreamText(message.replace(QUOTED, '')).trim()
  const error: WireError = { kind, message: own }
  if (kind === 'upstream_denied') {
    error.message = DENIED
    if (own !== '') error.upstreamMessage = own
  } else if (own === '') error.message = 'The upstream gave no reason.'
  else if (ON_DEMAND.test(own)) error.message = own + USE_PROFILE
  if (kind === 'upstream_rejected' && TOO_LONG.test(own)) error.kind = 'context_too_long'
  if (name !== '') error.upstreamCode = redactUpstreamText(name).slice(0, 100)
  return error
}

function unknownOperation(): WireError {
  return { ...missingEndpoint(''), upstreamCode: UNKNOWN_OPERATION }
}

function messageIn(payload: JsonObject): string {
  return stringOf(payload.message) ?? stringOf(payload.Message) ?? ''
}

function parsed(body: string): JsonObject {
  try {
    return objectOf(JSON.parse(body.trim()))
  } catch {
    return {}
  }
}
