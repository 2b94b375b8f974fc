/**
 * The Gemini dialect: how the gateway speaks to Google's models.
 * Egress only; no client speaks it to the gateway.
 */
import type { Dialect } from '../dialect.js'
import { CandidatesDecoder } from './candidates.js'
import { decodeError } from './error.js'
import { readsUrl } from './media.js'
import { decodeReply } from './reply.js'
import { encodeRequest } from './request.js'
import { GeminiDecoder } from './stream.js'
import { target } from './target.js'

/** Gemini's generateContent, whole and streamed, on the Developer API. */
export const gemini: Dialect = {
  name: 'gemini',
  ingress: null,
  egress: {
    framing: 'sse',
    target,
    userFirst: true,
    readsUrl,
    streamsWhole: ({ maxOutputTokens = Infinity }, { maxOutputTokensWhole = Infinity }) =>
      maxOutputTokens > maxOutputTokensWhole,
    // Never `?key=`: a URL ends up in logs.
    credential: (apiKey) => ({ 'x-goog-api-key': apiKey }),
    headers: () => ({}),
    encodeRequest,
    // No client speaks Gemini, so no client's own body ever goes there.
    edits: () => [],
    decodeReply,
    newDecoder: (request, sink) => new GeminiDecoder(request, sink),
    newChoices: (request, sinks) => new CandidatesDecoder(request, sinks),
    // "candidateCount: … streamGenerateContent is not supported" (Vertex, "Inference", read 2026-11-20).
    // Log probabilities are refused for streams as well (vercel/ai#11989).
    wholeOnly: ({ candidates = 1, logprobs }) => candidates > 1 || logprobs === true,
    continuation: {
      mayPause: () => true,
      // The same request with the token; the budget of tokens counts on by itself (Gemini API,
      // "Long decode", read 2026-11-20), and what was written so far is not sent back.
      next: (body, resume) => ({ ...body, ...resume }),
    },
    newTap: null,
    tapReply: null,
    decodeError,
  },
}
