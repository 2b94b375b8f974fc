/**
 * Encodes token probabilities as the `logprobs` of a choice.
 *
 * Source: OpenAI API reference, "Chat Completions", and the SDK's types, read 2026-11-20.
 */
import type { JsonObject } from '../../../../chat/json.js'
import type { Logprob, TokenLogprob } from '../../../../chat/reply/logprobs.js'

/** The `logprobs` of a choice. */
export function encodeLogprobs(tokens: readonly TokenLogprob[]): JsonObject {
  const content = tokens.map(({ top, ...token }) => {
    return { ...encodeLogprob(token), top_logprobs: top.map(encodeLogprob) }
  })
  return { content, refusal: null }
}

function encodeLogprob({ token, logprob, bytes }: Logprob): JsonObject {
  return { token, logprob, bytes: bytes === null ? null : [...bytes] }
}
