/**
 * The JSON body of errors in OpenAI's form, which the gateway also uses when the client's dialect is unknown.
 */
import { statusOf, type ErrorKind, type WireError } from '../../../errors.js'
import { hideSecrets } from '../../../hide-secrets.js'

/** OpenAI's type and code of a spent quota. */
const INSUFFICIENT_QUOTA = 'insufficient_quota'

/**
 * The codes of OpenAI's API, which apps and its SDKs compare; kinds that are missing here have none.
 *
 * Source: OpenAI API reference, "Error codes", and recorded error bodies, read 2026-11-20.
 */
const CODES: Readonly<Partial<Record<ErrorKind, string>>> = {
  unknown_model: 'model_not_found',
  context_too_long: 'context_length_exceeded',
  budget_exceeded: INSUFFICIENT_QUOTA,
  rate_limited: 'rate_limit_exceeded',
  auth_throttled: 'rate_limit_exceeded',
  upstream_busy: 'rate_limit_exceeded',
}

/**
 * `{"error":{message,type,code,kind,param?}}`; `code` is null if OpenAI's API has none for the case.
 * `shownKind`: a narrower kind than that of the error.
 */
export function errorBody(error: WireError, shownKind?: string): string {
  const status = statusOf(error)
  const { message, kind, param } = withoutSecrets(error)
  // The number 401 is part of the specification of the product.
  const code = status === 401 ? status : errorCode(error)
  const type = errorType(status, kind)
  return JSON.stringify({ error: { message, type, code, kind: shownKind ?? kind, param } })
}

/** The `code` that OpenAI's API has for the error; null if it has none. */
export function errorCode({ kind, code, param }: WireError): string | null {
  if (code !== undefined) return code
  if (kind === 'untranslatable') return param === undefined ? null : 'unsupported_parameter'
  return CODES[kind] ?? null
}

/** The error without configured secrets in its message and parameter. */
export function withoutSecrets(error: WireError): WireError {
  const message = hideSecrets(error.message)
  const param = error.param === undefined ? undefined : hideSecrets(error.param)
  if (message === error.message && param === error.param) return error
  return param === undefined ? { ...error, message } : { ...error, message, param }
}

/** OpenAI's error `type` for an HTTP status and a kind. */
export function errorType(status: number, kind?: ErrorKind): string {
  if (kind === 'budget_exceeded') return INSUFFICIENT_QUOTA
  if (status === 401) return 'authentication_error'
  if (status === 403) return 'permission_error'
  if (status === 429) return 'rate_limit_error'
  return status >= 500 ? 'api_error' : 'invalid_request_error'
}
