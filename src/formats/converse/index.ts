/**
 * The dialect of Bedrock's Converse and ConverseStream, for upstreams: one format for the models of all
 * vendors on Bedrock.
 */
import type { Dialect, UpstreamCodec } from '../dialect.js'
import { decodeAwsError } from '../wire/aws/decode-error.js'
import { STATE_ORIGIN } from './constants.js'
import { FIELDS, PARALLEL_CALLS } from './fields.js'
import { decodeReply, newDecoder } from './decode-reply.js'
import { readsUrl } from './encode-media.js'
import { dropReasoning } from './encode-reasoning.js'
import { continuation, encodeRequest, target, tokenCounter } from './encode-request.js'
import { mayOmitCall } from './encode-tools.js'

export const upstreamCodec: UpstreamCodec = {
  framing: 'aws-events',
  stateOrigin: STATE_ORIGIN,
  target,
  userFirst: true,
  readsUrl,
  credential: (apiKey) => ({ authorization: `Bearer ${apiKey}` }),
  headers: () => ({}),
  encodeRequest,
  edits: () => [],
  dropReasoning,
  tokenCounter,
  decodeReply,
  newDecoder: (request, sink) => newDecoder(request, sink),
  mayOmitCall,
  continuation,
  newWatcher: null,
  replyFacts: null,
  decodeError: decodeAwsError,
}

/** The dialect of `POST /model/{model}/converse`. Clients do not use it. */
export const converse: Dialect = {
  name: 'converse',
  fields: [...FIELDS, ...PARALLEL_CALLS],
  clientCodec: null,
  upstreamCodec,
}
