/**
 * OpenAI's Responses, both as what clients speak and as what upstreams speak.
 * Only puts the parts together; every rule is in the file named for it.
 */
import { decodeError } from '../../wire/openai/decode-error.js'
import type { Dialect, Egress } from '../dialect.js'
import { ingress } from './client/ingress.js'
import { tokenCounter } from './upstream/count-tokens.js'
import { edits } from './passthrough/edit-request.js'
import { encodeRequest, streamsWhole } from './upstream/encode-request.js'
import { decodeReply, EventDecoder } from './upstream/decode-stream.js'
import { EventTap, tapReply } from './passthrough/watch-stream.js'

const egress: Egress = {
  framing: 'sse',
  target: (_model, stream) => ({
    path: '/responses',
    accept: stream ? 'text/event-stream' : 'application/json',
  }),
  streamsWhole,
  credential: (apiKey) => ({ authorization: `Bearer ${apiKey}` }),
  headers: () => ({}),
  encodeRequest,
  edits,
  tokenCounter,
  decodeReply,
  newDecoder: (request, sink) => new EventDecoder(request, sink),
  continuation: null,
  newTap: (request) => new EventTap(request),
  tapReply,
  decodeError,
}

/** The dialect of `POST /v1/responses`. */
export const openaiResponses: Dialect = { name: 'openai-responses', ingress, egress }
