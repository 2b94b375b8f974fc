/**
 * Encodes errors in Google's format for clients.
 *
 * Source: google.aip.dev/193 and google/rpc/error_details.proto, read 2026-11-20.
 */
import type { JsonObject } from '../../../chat/json.js'
import { rowOf, type WireError } from '../../../errors.js'
import { withoutSecrets } from '../../../wire/openai/error-body.js'
import { renameErrorField } from '../../../wire/rename-error-field.js'
import { STATUS_CODES } from '../upstream/decode-error.js'
import { PROVIDER } from '../shared/constants.js'
import { fieldName } from './request/field-name.js'

const TYPE = 'type.googleapis.com/google.rpc.'

/** The name of google.rpc.Code by HTTP status. */
const STATUSES: Readonly<Record<number, string>> = {
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  500: 'INTERNAL',
  501: 'UNIMPLEMENTED',
  502: 'UNAVAILABLE',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}

/** HTTP status and JSON body. */
export function encodeError(error: WireError): { status: number; body: string } {
  const { status } = rowOf(error.kind)
  const { kind, message, param, retryAfterSeconds, native } = renameErrorField(
    withoutSecrets(error),
    fieldName,
  )
  const details: JsonObject[] = [{ '@type': `${TYPE}ErrorInfo`, reason: kind, domain: 'sluice' }]
  if (param !== undefined) {
    const fieldViolations = [{ field: param, description: message }]
    details.push({ '@type': `${TYPE}BadRequest`, fieldViolations })
  }
  if (retryAfterSeconds !== undefined) {
    details.push({ '@type': `${TYPE}RetryInfo`, retryDelay: `${retryAfterSeconds}s` })
  }
  // An error of Google keeps its own status name.
  const name = native?.dialect === PROVIDER ? native.type : nameOf(status)
  const code = native?.dialect === PROVIDER ? (STATUS_CODES[name] ?? status) : status
  const body = JSON.stringify({ error: { code, message, status: name, details } })
  return { status, body }
}

function nameOf(status: number): string {
  return STATUSES[status] ?? (status >= 500 ? 'INTERNAL' : 'INVALID_ARGUMENT')
}

/** The event that ends a stream after its first event. */
export function encodeStreamError(error: WireError): string {
  return `data: ${encodeError(error).body}\n\n`
}
