/** Builders for generateContent requests, for the tests of this folder. */
import type { JsonObject, JsonValue } from '../../../../src/base/json.js'
import type { ChatRequest } from '../../../../src/formats/chat/request.js'
import { decodeRequest } from '../../../../src/formats/gemini/client/decode-request.js'

/** The endpoint `:generateContent` of model `m`. */
export const ENDPOINT = { operation: 'chat', model: 'm', stream: false } as const

/** A content of the user. */
export const HELLO: JsonObject = { parts: [{ text: 'Hello' }] }

/** Decodes a request with these contents and other members. */
export function decoded(more: JsonObject, contents: JsonValue = [HELLO]): ChatRequest {
  return decodeRequest({ contents, ...more }, ENDPOINT)
}

/** A content of the model. */
export function modelContent(...parts: JsonObject[]): JsonObject {
  return { role: 'model', parts }
}

/** A functionCall part. */
export function call(name: string, more: JsonObject = {}): JsonObject {
  return { functionCall: { name, ...more } }
}

/** A functionResponse part. */
export function result(name: string, response: JsonObject, more: JsonObject = {}): JsonObject {
  return { functionResponse: { name, response, ...more } }
}
