/**
 * OpenAI's Responses, as upstreams speak it; clients do not speak it to us.
 * Only puts the parts together; every rule is in the file named for it.
 */
import { decodeError } from '../../wire/openai-error.js'
import type { Dialect, Egress } from '../dialect.js'
import { counter } from './counter.js'
import { encodeRequest, streamsWhole } from './request.js'
import { decodeReply, EventDecoder } from './stream.js'

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
  edits: () => [],
  counter,
  decodeReply,
  newDecoder: (request, sink) => new EventDecoder(request, sink),
  continuation: null,
  newTap: null,
  tapReply: null,
  decodeError,
}

/** The dialect of `POST /v1/responses`. */
export const openaiResponses: Dialect = { name: 'openai-responses', ingress: null, egress }
