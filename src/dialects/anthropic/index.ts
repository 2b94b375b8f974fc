/**
 * Anthropic's Messages API as an upstream.
 * No ingress: clients speak another dialect to us, so there is nothing to tap and no body to pass.
 */
import { isObject, type JsonObject, type JsonValue } from '../../chat/json.js'
import type { Dialect } from '../dialect.js'
import { dropReasoning } from './binding.js'
import { continuation } from './continuation.js'
import { decodeError } from './error.js'
import { readsUrl } from './media.js'
import { decodeReply } from './reply.js'
import { encodeRequest, streamsWhole } from './request.js'
import { newDecoder } from './stream.js'
import { BINDING_BETA, VERSION, VERSION_WITH_SAMPLING } from './wire.js'
import { write } from './write.js'

/** The Messages API; clients cannot speak it to the gateway. */
export const anthropic: Dialect = {
  name: 'anthropic',
  ingress: null,
  egress: {
    framing: 'sse',
    target: (_model, stream) => ({
      path: '/messages',
      accept: stream ? 'text/event-stream' : 'application/json',
    }),
    userFirst: true,
    readsUrl,
    streamsWhole,
    credential: (apiKey) => ({ 'x-api-key': apiKey }),
    headers,
    encodeRequest,
    write,
    edits: (_body, model) => [{ key: 'model', json: JSON.stringify(model) }],
    dropReasoning,
    decodeReply,
    newDecoder,
    continuation,
    newTap: null,
    tapReply: null,
    decodeError,
  },
}

function given(value: JsonValue | undefined): boolean {
  return value !== undefined && value !== null
}

/** Sampling parameters are unknown to the current version, so they pull in the one before. */
function headers(body: JsonObject): Record<string, string> {
  const { temperature, top_p, top_k, thinking } = body
  const sampling = given(temperature) || given(top_p) || given(top_k)
  const version = { 'anthropic-version': sampling ? VERSION_WITH_SAMPLING : VERSION }
  if (!isObject(thinking) || !isObject(thinking.block_binding)) return version
  return { ...version, 'anthropic-beta': BINDING_BETA }
}
