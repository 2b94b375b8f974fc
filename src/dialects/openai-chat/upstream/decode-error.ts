/**
 * Failures inside a reply with status 200. Errors with another status are decoded by
 * `wire/openai/decode-error.ts`.
 *
 * Source: OpenAI API reference, "Error codes", and recorded error bodies, read 2026-11-20.
 */
import { arrayOf, type JsonObject, objectOf } from '../../../chat/json.js'
import type { WireError } from '../../../errors.js'
import { decodeErrorPayload } from '../../../wire/openai/decode-error.js'

/** `finish_reason: "error"` without an error object (OpenRouter). */
export const STOPPED_WITH_ERROR: Readonly<WireError> = {
  kind: 'upstream_failed',
  message: 'The upstream stopped the reply with finish_reason "error" and gave no reason.',
  upstreamCode: 'error',
}

/** The error of a body or chunk, alone or beside its choices; null if there is none. */
export function errorIn(chunk: JsonObject): WireError | null {
  const error = chunk['error'] ?? objectOf(arrayOf(chunk['choices'])[0])['error']
  if (error === undefined || error === null || error === false || error === '') return null
  return decodeErrorPayload(error)
}
