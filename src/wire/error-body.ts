/**
 * An error as the JSON that clients of the OpenAI format understand, which is also what the gateway
 * says where no dialect is known yet. Knows no dialect and no socket.
 */
import { rowOf } from '../errors.js'
import type { WireError } from '../errors.js'
import { hideSecrets } from '../secrets/redact-secrets.js'

/** `{"error":{message,type,code,kind,param?}}`; `code` is the HTTP status. */
export function errorBody(error: WireError): string {
  const { status } = rowOf(error.kind)
  const { message, kind, param } = withoutSecrets(error)
  return JSON.stringify({
    error: { message, type: errorType(status), code: status, kind, param },
  })
}

/** The error as it may leave the process: neither its message nor its parameter holds a secret. */
export function withoutSecrets(error: WireError): WireError {
  const message = hideSecrets(error.message)
  const param = error.param === undefined ? undefined : hideSecrets(error.param)
  if (message === error.message && param === error.param) return error
  return param === undefined ? { ...error, message } : { ...error, message, param }
}

/** The `type` that goes with a status. */
export function errorType(status: number): string {
  if (status === 401) return 'authentication_error'
  if (status === 403) return 'permission_error'
  if (status === 429) return 'rate_limit_error'
  return status >= 500 ? 'api_error' : 'invalid_request_error'
}
