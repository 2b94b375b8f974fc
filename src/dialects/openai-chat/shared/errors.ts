/**
 * Errors in the chat-completions format: what a client is told, and what is wrong with a reply.
 * What an upstream says of a failure is read in `wire/openai/decode-error.ts`.
 *
 * Source: OpenAI API reference, "Error codes", and recorded error bodies, read 2026-11-20.
 */
import { type ErrorKind, rowOf, type WireError } from '../../../errors.js'
import { errorBody } from '../../../wire/error-body.js'

/** A frame or reply that is not of this format. */
export const MALFORMED: Readonly<WireError> = {
  kind: 'upstream_malformed',
  message: 'The upstream’s reply broke its own format.',
}
/** An end, or `[DONE]`, before any `finish_reason`. */
export const TRUNCATED: Readonly<WireError> = {
  kind: 'upstream_truncated',
  message: 'The upstream’s reply ended before it was complete.',
}
/** `finish_reason: "error"` without an error beside it (OpenRouter). */
export const GAVE_UP: Readonly<WireError> = {
  kind: 'upstream_failed',
  message: 'The upstream gave up on the answer.',
  upstreamCode: 'error',
}

/** The format's own names for what apps look for in a message. */
const WORDS: Readonly<Partial<Record<ErrorKind, string>>> = {
  context_too_long: 'context_length_exceeded: ',
  unknown_model: 'model_not_found: ',
}

/** The body of an error, in the words that clients look for. */
function bodyOf(error: WireError): string {
  const prefix = WORDS[error.kind] ?? ''
  if (error.message.startsWith(prefix)) return errorBody(error)
  return errorBody({ ...error, message: prefix + error.message })
}

/** Status and body for a client. */
export function encodeError(error: WireError): { status: number; body: string } {
  return { status: rowOf(error.kind).status, body: bodyOf(error) }
}

/** The frame that ends a stream which has begun; no `[DONE]` follows it. */
export function encodeStreamError(error: WireError): string {
  return `data: ${bodyOf(error)}\n\n`
}
