/**
 * Failures inside a response. Errors with another status than 200 are decoded by
 * `wire/openai/decode-error.ts`.
 */
import { isObject, type JsonObject, objectOf, stringOf } from '../../../chat/json.js'
import type { WireError } from '../../../errors.js'
import { decodeErrorPayload } from '../../../wire/openai/decode-error.js'

/** The error of a failed response; its status serves as the code if the response has no `error`. */
export function errorOfResponse(response: JsonObject): WireError {
  const error = objectOf(response['error'])
  const own = stringOf(error['code'])
  const code = own ?? stringOf(response['status']) ?? 'failed'
  const { code: named, ...decoded } = decodeErrorPayload({ ...error, code })
  return own === undefined || named === undefined ? decoded : { ...decoded, code: named }
}

/** The error of an `error` event, whose members are in the event itself or in its `error`. */
export function errorOfEvent(event: JsonObject): WireError {
  const { error } = event
  if (isObject(error)) return decodeErrorPayload(error)
  // The `type` of the event is not the type of an error.
  return decodeErrorPayload({
    code: event['code'],
    message: event['message'],
    param: event['param'],
  })
}
