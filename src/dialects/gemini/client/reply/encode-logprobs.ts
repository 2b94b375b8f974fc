/**
 * Encodes log probabilities of tokens as `logprobsResult` of a candidate.
 *
 * Source: ai.google.dev/api/generate-content, "LogprobsResult", read 2026-11-20.
 */
import type { JsonObject } from '../../../../chat/json.js'
import type { Logprob, TokenLogprob } from '../../../../chat/reply/logprobs.js'

/** `logprobsResult` of a candidate. */
export function encodeLogprobs(tokens: readonly TokenLogprob[]): JsonObject {
  return {
    topCandidates: tokens.map(({ top }) => ({ candidates: top.map(likelyOut) })),
    chosenCandidates: tokens.map(likelyOut),
  }
}

function likelyOut({ token, logprob }: Logprob): JsonObject {
  return { token, logProbability: logprob }
}
