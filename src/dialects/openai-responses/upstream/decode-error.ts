/**
 * What is wrong with a reply of the Responses format.
 * What an upstream says of a failure is read in `wire/openai/decode-error.ts`.
 */
import { isObject, type JsonObject, objectOf, stringOf } from '../../../chat/json.js'
import type { WireError } from '../../../errors.js'
import { decodeErrorPayload } from '../../../wire/openai/decode-error.js'

/** A frame or reply that is not of this format. */
export const MALFORMED: Readonly<WireError> = {
  kind: 'upstream_malformed',
  message: 'The upstream’s reply broke its own format.',
}

/** An end before `response.completed`, or a whole response that is still being made. */
export const TRUNCATED: Readonly<WireError> = {
  kind: 'upstream_truncated',
  message: 'The upstream’s reply ended before it was complete.',
}

/** Why a response failed: its `error`, or its status where it gives no reason. */
export function failureOf(response: JsonObject): WireError {
  const error = objectOf(response['error'])
  const code = stringOf(error['code']) ?? stringOf(response['status']) ?? 'failed'
  return decodeErrorPayload({ ...error, code })
}

/** What an `error` event says; its members stand in the event itself or in an `error` of it. */
export function eventError(event: JsonObject): WireError {
  const { error } = event
  if (isObject(error)) return decodeErrorPayload(error)
  // The event's own `type` is no error's.
  return decodeErrorPayload({
    code: event['code'],
    message: event['message'],
    param: event['param'],
  })
}
