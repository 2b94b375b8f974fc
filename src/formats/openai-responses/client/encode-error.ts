/**
 * Errors for clients of Responses: before a reply, and as the last event of a stream.
 *
 * Source: OpenAI API reference, "Error codes" and "response.failed", read 2026-11-20.
 */
import { statusOf, type WireError } from '../../../errors.js'
import { errorBody, errorCode } from '../../wire/openai/error-body.js'
import { renameErrorField } from '../../wire/request-fields.js'
import { fieldNames } from '../../wire/scalar-fields.js'
import { FIELDS } from '../fields.js'

/** The names of scalar fields in this format. `include` has values of other meanings. */
const SCALARS: ReadonlyMap<string, string> = new Map(
  fieldNames(FIELDS).filter(([, wire]) => wire !== 'include'),
)

/** The names of other canonical fields in this format. */
const NAMES: readonly (readonly [RegExp, string])[] = [
  [/^messages(?=\[|$|\.)/, 'input'],
  [/^response_format(?:\.json_schema)?/, 'text.format'],
]

/** The path of a canonical field in this format. */
export function fieldName(path: string): string {
  const [first = ''] = path.split(/[.[]/, 1)
  const scalar = SCALARS.get(first)
  if (scalar !== undefined) return scalar + path.slice(first.length)
  for (const [pattern, name] of NAMES) if (pattern.test(path)) return path.replace(pattern, name)
  return path
}

/** The error with the field names of this format. */
export function withFieldNames(error: WireError): WireError {
  return renameErrorField(error, fieldName)
}

/** HTTP status and JSON body. */
export function encodeError(error: WireError): { status: number; body: string } {
  return { status: statusOf(error), body: errorBody(withFieldNames(error)) }
}

/** `error` of a failed response. */
export function responseError(error: WireError): { code: string; message: string; kind: string } {
  const { kind, message } = error
  return { code: errorCode(error) ?? 'server_error', message, kind }
}

/** The `response.failed` event of a stream whose response object is unknown. */
export function encodeStreamError(error: WireError): string {
  return failedEvent({ object: 'response', output: [] }, error, 0)
}

/** The `response.failed` event: `response` with the error, in this format. */
export function failedEvent(response: object, error: WireError, sequenceNumber: number): string {
  const failed = { ...response, status: 'failed', error: responseError(withFieldNames(error)) }
  const event = { type: 'response.failed', sequence_number: sequenceNumber, response: failed }
  return `event: response.failed\ndata: ${JSON.stringify(event)}\n\n`
}
