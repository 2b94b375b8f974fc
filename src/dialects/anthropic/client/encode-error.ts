/**
 * Encodes errors in the Messages format.
 *
 * Source: Claude API reference, "Errors", read 2026-11-22.
 */
import { rowOf, type WireError } from '../../../errors.js'
import { renameErrorField } from '../../../wire/rename-error-field.js'
import { PROVIDER } from '../shared/constants.js'
import { fieldName } from './request/field-name.js'

const TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  529: 'overloaded_error',
}

/** HTTP status and JSON body. `requestId` equals the header `x-request-id`. */
export function encodeError(
  error: WireError,
  requestId?: string,
): { status: number; body: string } {
  return { status: rowOf(error.kind).status, body: bodyOf(error, requestId) }
}

/** The event that ends a stream after its first event; no `message_stop` follows it. */
export function encodeStreamError(error: WireError, requestId?: string): string {
  return `event: error\ndata: ${bodyOf(error, requestId)}\n\n`
}

function bodyOf(error: WireError, requestId = ''): string {
  const { kind, message, param, native } = renameErrorField(error, fieldName)
  const own = native?.dialect === PROVIDER ? native : undefined
  const type = own?.type ?? typeOf(rowOf(kind).status)
  return JSON.stringify({
    type: 'error',
    error: { type, message, kind, param, details: own?.details },
    request_id: requestId,
  })
}

function typeOf(status: number): string {
  return TYPES[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error')
}
