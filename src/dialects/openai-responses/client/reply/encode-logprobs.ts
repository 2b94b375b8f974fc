/**
 * Encodes token probabilities as the `logprobs` of a text.
 *
 * Source: OpenAI API reference, "The response object", read 2026-11-20.
 */
import type { JsonObject } from '../../../../chat/json.js'
import type { Logprob, TokenLogprob } from '../../../../chat/reply/logprobs.js'

/** The JSON text of the array. */
export function encodeLogprobs(tokens: readonly TokenLogprob[]): string {
  return JSON.stringify(
    tokens.map(({ top, ...token }) => ({
      ...encodeLogprob(token),
      top_logprobs: top.map(encodeLogprob),
    })),
  )
}

function encodeLogprob({ token, logprob, bytes }: Logprob): JsonObject {
  return { token, logprob, bytes: bytes === null ? [] : [...bytes] }
}
