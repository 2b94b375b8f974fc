/**
 * The path of a request below the upstream's base URL. A model id must be exactly one segment of it.
 */
import { GatewayError } from '../../../errors.js'
import { tokenCount } from '../../chat/usage.js'
import type { TokenCounter } from '../../dialect.js'

/** Longer than any id that Google serves (the longest known has 40 characters). */
const MAX_MODEL_CHARS = 128

/**
 * The characters of a model id, which exclude slashes, dot-only names, queries, fragments, escapes and
 * spaces.
 */
const MODEL_ID = /^[A-Za-z0-9_][A-Za-z0-9._@:+-]*$/

/**
 * The path and the `accept` header. Throws `GatewayError(unknown_model)` for an id with other characters: it
 * is part of the path, so such an id is refused instead of escaped.
 */
export function target(model: string, stream: boolean): { path: string; accept: string } {
  if (model.length > MAX_MODEL_CHARS || !MODEL_ID.test(model)) {
    throw new GatewayError(
      'unknown_model',
      'Unknown model: the id contains characters that no model id has.',
      {
        param: 'model',
      },
    )
  }
  const path = `/models/${encodeURIComponent(model)}`
  return stream
    ? { path: `${path}:streamGenerateContent?alt=sse`, accept: 'text/event-stream' }
    : { path: `${path}:generateContent`, accept: 'application/json' }
}

/**
 * `POST /models/{model}:countTokens`. Sends a whole request, because only that counts system instruction and
 * tools.
 *
 * Source: Gemini API reference, "Counting tokens", read 2026-11-22.
 */
export const tokenCounter: TokenCounter = {
  path: (model) => target(model, false).path.replace(/:generateContent$/, ':countTokens'),
  body: (chat, model) => ({ generateContentRequest: { model: `models/${model}`, ...chat } }),
  read: (reply) => tokenCount(reply.totalTokens) ?? null,
}
