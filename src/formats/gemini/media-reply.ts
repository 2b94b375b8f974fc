/**
 * Requests and replies of `generateContent` with pictures, sound or a transcript: the limit of inline data,
 * parts, usage and refusals.
 */
import { arrayOf, isObject, objectOf, stringOf, type JsonObject } from '../../base/json.js'
import { GatewayError, type WireError } from '../../errors.js'
import type { Usage } from '../chat/usage.js'
import { MAX_INLINE_BYTES } from './constants.js'
import { Counts } from './upstream/decode-usage.js'

/** Throws `body_too_large` if a request has more inline data than Google takes; `bytes`: as base64. */
export function assertInline(bytes: number): void {
  if (bytes <= MAX_INLINE_BYTES) return
  const message = `The files are too large for Google, which takes at most ${MAX_INLINE_BYTES} bytes of them as base64. Send less.`
  throw new GatewayError('body_too_large', message)
}

/** The parts of the first candidate, without thoughts. */
export function partsOfReply(body: JsonObject): JsonObject[] {
  const parts = arrayOf(objectOf(candidateOf(body)['content'])['parts'])
  return parts.filter(isObject).filter(({ thought }) => thought !== true)
}

function candidateOf(body: JsonObject): JsonObject {
  return objectOf(arrayOf(body['candidates'])[0])
}

/** The usage with the tokens of each kind. */
export function usageOfReply(body: JsonObject): Usage {
  const counts = new Counts()
  const usage = counts.update(body) ?? {}
  return { ...usage, ...counts.kinds() }
}

/** The reason with which the reply ended; null if it has not. */
export function endOfReply(body: JsonObject): string | null {
  return stringOf(candidateOf(body)['finishReason']) ?? null
}

const SAFETY: ReadonlySet<string> = new Set([
  'IMAGE_SAFETY',
  'SAFETY',
  'PROHIBITED_CONTENT',
  'IMAGE_PROHIBITED_CONTENT',
  'BLOCKLIST',
  'SPII',
  'RECITATION',
  'IMAGE_RECITATION',
])

/** The error of a reply that Google refused because of its content; null for any other. */
export function refusalOf(body: JsonObject): WireError | null {
  const { blockReason } = objectOf(body['promptFeedback'])
  const ended = endOfReply(body)
  const reason = stringOf(blockReason) ?? (ended !== null && SAFETY.has(ended) ? ended : null)
  if (reason === null) return null
  const message = `The upstream refused the request because of its content (${reason.slice(0, 64)}).`
  return { kind: 'upstream_rejected', message, code: 'content_filter' }
}
