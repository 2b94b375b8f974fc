/**
 * The Gemini dialect: how the gateway speaks to Google's models, and how Google's clients speak to the gateway.
 * Only puts the parts together; every rule is in the file named for it.
 */
import type { Dialect, Egress, Ingress } from '../dialect.js'
import { CandidatesDecoder } from './upstream/reply/decode-candidates.js'
import { decodeCount, decodeRequest, modelOf } from './client/decode-request.js'
import { encodeError, encodeStreamError } from './client/encode-error.js'
import { encodeChoices, encodeReply } from './client/encode-reply.js'
import { GeminiEncoder } from './client/encode-stream.js'
import { fieldName } from './client/request/field-name.js'
import { outputEdit } from './passthrough/limit-output.js'
import { lossOf } from './client/reply/reply-losses.js'
import { tokenCounter } from './upstream/count-tokens.js'
import { edits } from './passthrough/edit-request.js'
import { decodeError } from './upstream/decode-error.js'
import { readsUrl } from './upstream/request/encode-media.js'
import { decodeReply } from './upstream/decode-reply.js'
import { encodeRequest } from './upstream/encode-request.js'
import { GeminiDecoder } from './upstream/decode-stream.js'
import { GeminiTap, tapReply } from './passthrough/watch-stream.js'
import { target } from './upstream/request-path.js'

/** How Google's clients speak it. */
export const ingress: Ingress = {
  envelope: { idPrefix: '', heartbeat: ': keep-alive\n\n', idHeader: null },
  peek: (_body, endpoint) => ({ model: modelOf(endpoint), stream: endpoint.stream === true }),
  decodeRequest: (body, endpoint) =>
    endpoint.operation === 'count' ? decodeCount(body, endpoint) : decodeRequest(body, endpoint),
  encodeReply,
  encodeChoices,
  newEncoder: (request, seed, place) => new GeminiEncoder(request, seed, place),
  lossOf: lossOf,
  fieldName,
  outputEdit,
  encodeError,
  encodeStreamError,
  encodeCount,
}

/** How upstreams speak it. */
export const egress: Egress = {
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
  tokenCounter,
  edits,
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
  newTap: () => new GeminiTap(),
  tapReply,
  decodeError,
}

/** Gemini's generateContent, whole and streamed, on the Developer API. */
export const gemini: Dialect = { name: 'gemini', ingress, egress }

/** The reply to a countTokens request; the modalities are not told apart. */
function encodeCount(inputTokens: number): string {
  return JSON.stringify({ totalTokens: inputTokens })
}
