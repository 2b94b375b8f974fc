/**
 * Errors as clients of the Responses format get them: before a stream, and as its last event.
 *
 * Source: OpenAI API reference, "Error codes" and "response.failed", read 2026-11-20.
 */
import { type ErrorKind, rowOf, type WireError } from '../../../errors.js'
import { errorBody } from '../../../wire/error-body.js'

/** The format's own names for what apps look for in a message. */
const WORDS: Readonly<Partial<Record<ErrorKind, string>>> = {
  context_too_long: 'context_length_exceeded: ',
  unknown_model: 'model_not_found: ',
}

/** What the fields of the canon are called here. */
const NAMES: readonly (readonly [RegExp, string])[] = [
  [/^messages(?=\[|$|\.)/, 'input'],
  [/^max_completion_tokens\b/, 'max_output_tokens'],
  [/^response_format(?:\.json_schema)?/, 'text.format'],
  [/^reasoning_effort\b/, 'reasoning.effort'],
  [/^verbosity\b/, 'text.verbosity'],
]

/** The path of a field as this format has it. */
export function fieldName(path: string): string {
  for (const [pattern, name] of NAMES) if (pattern.test(path)) return path.replace(pattern, name)
  return path
}

/** The error in the words of this format. */
export function spelled(error: WireError): WireError {
  const { kind, param } = error
  const prefix = WORDS[kind] ?? ''
  const message = error.message.startsWith(prefix) ? error.message : prefix + error.message
  if (param === undefined) return { ...error, message }
  const own = fieldName(param)
  // Messages begin with the field that they are about.
  const named = message.startsWith(param) ? own + message.slice(param.length) : message
  return { ...error, message: named, param: own }
}

/** Status and body for a client. */
export function encodeError(error: WireError): { status: number; body: string } {
  return { status: rowOf(error.kind).status, body: errorBody(spelled(error)) }
}

/** The event that ends a stream of which nothing else is known. */
export function encodeStreamError(error: WireError): string {
  const { kind, message } = spelled(error)
  const code = kind === 'upstream_busy' ? 'rate_limit_exceeded' : 'server_error'
  const response = {
    object: 'response',
    status: 'failed',
    error: { code, message, kind },
    output: [],
  }
  const event = { type: 'response.failed', sequence_number: 0, response }
  return `event: response.failed\ndata: ${JSON.stringify(event)}\n\n`
}
