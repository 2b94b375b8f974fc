/**
 * OpenAI's chat completions, both as what clients speak and as what upstreams speak.
 * Only puts the parts together; every rule is in the file named for it.
 */
import { decodeError } from '../../wire/openai/decode-error.js'
import { modelOf, streamOf } from '../../wire/openai/fields.js'
import type { Dialect, Egress, Ingress } from '../dialect.js'
import { ChoicesOfReply } from './upstream/reply/decode-choices.js'
import { ChunkDecoder, decodeReply } from './upstream/decode-stream.js'
import { edits } from './passthrough/edit-request.js'
import { encodeRequest } from './upstream/encode-request.js'
import { encodeError, encodeStreamError } from './shared/errors.js'
import { encodeChoices, encodeReply } from './client/encode-reply.js'
import { decodeRequest } from './client/decode-request.js'
import { ChunkEncoder } from './client/encode-stream.js'
import { ChunkTap, tapReply } from './passthrough/watch-stream.js'
import { lossOf } from './client/reply/reply-losses.js'

/** How clients speak it. */
export const ingress: Ingress = {
  // A comment is legal for every client of server-sent events and invisible to the SDKs.
  envelope: { idPrefix: 'chatcmpl-', heartbeat: ': keep-alive\n\n', idHeader: null },
  peek: (body) => ({ model: modelOf(body), stream: streamOf(body) }),
  decodeRequest: (body) => decodeRequest(body),
  encodeReply,
  encodeChoices,
  newEncoder: (request, seed, place) => new ChunkEncoder(request, seed, place),
  lossOf: lossOf,
  encodeError,
  encodeStreamError,
}

/** How upstreams speak it. */
export const egress: Egress = {
  framing: 'sse',
  target: (_model, stream) => ({
    path: '/chat/completions',
    accept: stream ? 'text/event-stream' : 'application/json',
  }),
  credential: (apiKey) => ({ authorization: `Bearer ${apiKey}` }),
  headers: () => ({}),
  encodeRequest,
  edits,
  decodeReply,
  newDecoder: (request, sink) => new ChunkDecoder(request, sink),
  newChoices: (request, sinks) => new ChoicesOfReply(request, sinks),
  // Chunks of several choices come by turns, and other formats have one reply after the other.
  wholeOnly: ({ candidates = 1 }) => candidates > 1,
  continuation: null,
  newTap: (request) => new ChunkTap(request),
  tapReply,
  decodeError,
}

/** The dialect of `POST /v1/chat/completions`. */
export const openaiChat: Dialect = { name: 'openai-chat', ingress, egress }
