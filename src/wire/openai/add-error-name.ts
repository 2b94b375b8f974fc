/**
 * The names of OpenAI's errors that apps search a message for.
 *
 * Source: OpenAI API reference, "Error codes", read 2026-11-20.
 */
import type { ErrorKind, WireError } from '../../errors.js'

const PREFIXES: Readonly<Partial<Record<ErrorKind, string>>> = {
  context_too_long: 'context_length_exceeded: ',
  unknown_model: 'model_not_found: ',
}

/** The error with OpenAI's name for its kind at the start of the message. */
export function withErrorName(error: WireError): WireError {
  const prefix = PREFIXES[error.kind] ?? ''
  if (error.message.startsWith(prefix)) return error
  return { ...error, message: prefix + error.message }
}
