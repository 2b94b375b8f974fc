/**
 * The JSON body of errors in OpenAI's form, which the gateway also uses when the client's dialect is unknown.
 */
import { rowOf } from '../../errors.js'
import type { WireError } from '../../errors.js'
import { hideSecrets } from '../../secrets/redact-secrets.js'

/** `{"error":{message,type,code,kind,param?}}`; `code` is the HTTP status. */
export function errorBody(error: WireError): string {
  const { status } = rowOf(error.kind)
  const { message, kind, param } = withoutSecrets(error)
  return JSON.stringify({
    error: { message, type: errorType(status), code: status, kind, param },
  })
}

/** The error without configured secrets in its message and parameter. */
export function withoutSecrets(error: WireError): WireError {
  const message = hideSecrets(error.message)
  const param = error.param === undefined ? undefined : hideSecrets(error.param)
  if (message === error.message && param === error.param) return error
  return param === undefined ? { ...error, message } : { ...error, message, param }
}

/** OpenAI's error `type` for an HTTP status. */
export function errorType(status: number): string {
  if (status === 401) return 'authentication_error'
  if (status === 403) return 'permission_error'
  if (status === 429) return 'rate_limit_error'
  return status >= 500 ? 'api_error' : 'invalid_request_error'
}
