/**
 * Errors for clients of chat completions: before a reply, and as the last event of a stream.
 *
 * Source: OpenAI API reference, "Error codes", read 2026-11-20.
 */
import { statusOf, type WireError } from '../../../errors.js'
import { errorBody } from '../../wire/openai/error-body.js'

/** HTTP status and JSON body. */
export function encodeError(error: WireError): { status: number; body: string } {
  return { status: statusOf(error), body: errorBody(error) }
}

/** The event that ends a stream with an error. No `[DONE]` follows it. */
export function encodeStreamError(error: WireError): string {
  return `data: ${errorBody(error)}\n\n`
}
