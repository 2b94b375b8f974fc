/**
 * The dialect of Gemini's generateContent, for clients and upstreams.
 */
import type { Dialect, UpstreamCodec, ClientCodec } from '../dialect.js'
import { CandidatesDecoder, decodeReply, GeminiDecoder } from './upstream/decode-reply.js'
import { decodeCount, decodeRequest, modelOf } from './client/decode-request.js'
import { FIELDS } from './fields.js'
import { encodeError, encodeStreamError, fieldName } from './client/encode-error.js'
import { encodeChoices, encodeReply } from './client/encode-reply.js'
import { replyLossOf } from '../wire/reply-losses.js'
import { GeminiEncoder } from './client/encode-stream.js'
import { outputEdit, edits, GeminiWatcher, replyFacts } from './passthrough.js'
import { tokenCounter, target } from './upstream/request-path.js'
import { decodeError } from './upstream/decode-error.js'
import { readsUrl } from './upstream/encode-messages.js'
import { encodeRequest } from './upstream/encode-request.js'
import { read, type ReadMembers } from '../wire/unread-members.js'
import { decodeForVendor, type VendorRules } from '../wire/vendor-rules.js'

const PART: ReadMembers = {
  inBothCases: true,
  members: {
    ...read('text thought thoughtSignature executableCode codeExecutionResult toolCall toolResponse').members,
    inlineData: { ...read('mimeType data displayName'), inBothCases: true },
    fileData: { ...read('mimeType fileUri displayName'), inBothCases: true },
    functionCall: read('id name args'),
    functionResponse: read('id name response parts'),
  },
}
const CONTENT: ReadMembers = { isOpen: true, members: { parts: PART } }

const READ: ReadMembers = {
  isOpen: true,
  inBothCases: true,
  members: { contents: CONTENT, systemInstruction: CONTENT },
}

const VENDOR_RULES: VendorRules = {
  members: new Set([
    ...[
      'contents',
      'generationConfig',
      'labels',
      'safetySettings',
      'systemInstruction',
      'toolConfig',
      'tools',
    ],
  ]),
  kept: /^(?:contents|tools)$|^generationConfig(?:$|\.(?:candidateCount|maxOutputTokens|responseModalities)\b)/,
  tool: /^tools\[\d+\]\.functionDeclarations\[\d+\]/,
  part: /^contents\[\d+\]\.parts\[\d+\]/,
  message: /^contents\[\d+\]/,
  textPart: (text) => ({ text }),
  textMessage: (text) => ({ role: 'user', parts: [{ text }] }),
  read: READ,
}

export const clientCodec: ClientCodec = {
  envelope: { idPrefix: '', heartbeat: ': keep-alive\n\n', idHeader: null },
  peek: (_body, endpoint) => ({ model: modelOf(endpoint), stream: endpoint.stream === true }),
  decodeRequest: (body, endpoint) =>
    endpoint.operation === 'count'
      ? decodeCount(body, endpoint)
      : decodeForVendor(VENDOR_RULES, body, (rest) => decodeRequest(rest, endpoint)),
  encodeReply,
  encodeChoices,
  newEncoder: (request, seed, position) => new GeminiEncoder(request, seed, position),
  lossOf: (event) => replyLossOf('gemini', event),
  fieldName,
  outputEdit,
  encodeError,
  encodeStreamError,
  encodeCount,
}

export const upstreamCodec: UpstreamCodec = {
  framing: 'sse',
  target,
  userFirst: true,
  readsUrl,
  streamsWhole: ({ maxOutputTokens = Infinity }, { maxOutputTokensWhole = Infinity }) =>
    maxOutputTokens > maxOutputTokensWhole,
  // Not `?key=`: URLs are logged.
  credential: (apiKey) => ({ 'x-goog-api-key': apiKey }),
  headers: () => ({}),
  encodeRequest,
  tokenCounter,
  edits,
  decodeReply,
  newDecoder: (request, sink) => new GeminiDecoder(request, sink),
  newChoices: (request, sinks) => new CandidatesDecoder(request, sinks),
  // "candidateCount: … streamGenerateContent is not supported" (Vertex, "Inference", read 2026-11-20).
  // Log probabilities are rejected for streams as well (vercel/ai#11989).
  wholeOnly: ({ candidates = 1, logprobs }) => candidates > 1 || logprobs === true,
  continuation: {
    mayPause: () => true,
    // The same request with the token, without the reply so far; the token budget continues (Gemini API,
    // "Long decode", read 2026-11-20).
    next: (body, resume) => ({ ...body, ...resume }),
  },
  newWatcher: (request) => new GeminiWatcher(request),
  replyFacts,
  decodeError,
}

/** Gemini's generateContent, whole and streamed, on the Developer API. */
export const gemini: Dialect = { name: 'gemini', fields: FIELDS, clientCodec, upstreamCodec }

/** The reply to a countTokens request, without counts by modality. */
function encodeCount(inputTokens: number): string {
  return JSON.stringify({ totalTokens: inputTokens })
}
