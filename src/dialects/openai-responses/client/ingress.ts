/**
 * Responses as clients speak it to the gateway.
 * Only puts the parts together; every rule is in the file named for it.
 */
import type { JsonObject } from '../../../chat/json.js'
import { modelOf, streamOf } from '../../../wire/openai/fields.js'
import type { Ingress } from '../../dialect.js'
import { decodeRequest } from './decode-request.js'
import { encodeError, encodeStreamError, fieldName } from './encode-error.js'
import { encodeReply } from './encode-reply.js'
import { EventEncoder } from './encode-stream.js'
import { storage } from './request/stored-responses.js'
import { lossOf } from './reply/reply-losses.js'

/** How clients speak Responses. */
export const ingress: Ingress = {
  // A comment is legal for every client of server-sent events and invisible to the SDKs.
  envelope: { idPrefix: 'resp_', heartbeat: ': keep-alive\n\n', idHeader: null },
  peek: (body: JsonObject) => ({ model: modelOf(body), stream: streamOf(body) }),
  decodeRequest: (body) => decodeRequest(body),
  encodeReply,
  // The format gives one answer to a request.
  encodeChoices: ([first], request, seed) => {
    if (first === undefined) throw new Error('no answer to encode')
    return encodeReply(first.reply, request, seed)
  },
  newEncoder: (request, seed) => new EventEncoder(request, seed),
  outputEdit: (_body, tokens) => ({ key: 'max_output_tokens', json: String(tokens) }),
  lossOf: lossOf,
  fieldName,
  encodeError,
  encodeStreamError,
  storage,
}
