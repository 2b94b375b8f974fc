/**
 * Errors for clients of chat completions: before a reply, and as the last event of a stream.
 *
 * Source: OpenAI API reference, "Error codes", read 2026-11-20.
 */
import { rowOf, type WireError } from '../../../errors.js'
import { errorBody } from '../../../wire/openai/error-body.js'
import { withErrorName } from '../../../wire/openai/add-error-name.js'

/** HTTP status and JSON body. */
export function encodeError(error: WireError): { status: number; body: string } {
  return { status: rowOf(error.kind).status, body: errorBody(withErrorName(error)) }
}

/** The event that ends a stream with an error. No `[DONE]` follows it. */
export function encodeStreamError(error: WireError): string {
  return `data: ${errorBody(withErrorName(error))}\n\n`
}
