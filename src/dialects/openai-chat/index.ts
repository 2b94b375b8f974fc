/**
 * OpenAI's chat completions, both as what clients speak and as what upstreams speak.
 * Only puts the parts together; every rule is in the file named for it.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { arrayOf, isObject, type JsonObject, type JsonValue, objectOf } from '../../chat/json.js'
import type { ModelFacts } from '../../chat/model.js'
import { decodeError } from '../../wire/openai-error.js'
import type { Edit } from '../../wire/splice.js'
import type { Dialect, Egress, Endpoint, Ingress } from '../dialect.js'
import { ChunkDecoder, decodeReply } from './decode.js'
import { encodeRequest } from './encode-request.js'
import { encodeError, encodeStreamError } from './error.js'
import { withoutReasoning } from './reasoning.js'
import { encodeReply } from './reply.js'
import { decodeRequest, modelOf, streamOf } from './request.js'
import { ChunkEncoder } from './stream.js'
import { ChunkTap, tapReply } from './tap.js'

const MODELS = '/v1/models'

/** A key is `sk_` and letters and digits; the scheme is case-insensitive and one space follows it. */
const BEARER = /^[Bb][Ee][Aa][Rr][Ee][Rr] (sk_[A-Za-z0-9]{1,253})$/

const ingress: Ingress = {
  match,
  credential,
  peek: (body) => ({ model: modelOf(body), stream: streamOf(body) }),
  decodeRequest: (body) => decodeRequest(body),
  encodeReply,
  newEncoder: (request, seed) => new ChunkEncoder(request, seed),
  encodeError,
  encodeStreamError,
}

const egress: Egress = {
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
  newTap: (request) => new ChunkTap(request),
  tapReply,
  decodeError,
}

/** The dialect of `POST /v1/chat/completions`. */
export const openaiChat: Dialect = { name: 'openai-chat', ingress, egress }

function match(method: string, path: string): Endpoint | null {
  if (path === '/v1/chat/completions') return method === 'POST' ? { operation: 'chat' } : null
  if (method !== 'GET' || !path.startsWith(MODELS)) return null
  if (path === MODELS) return { operation: 'models' }
  const model = path[MODELS.length] === '/' ? decoded(path.slice(MODELS.length + 1)) : ''
  return model === '' ? null : { operation: 'models', model }
}

/** A model id in a path; ids may hold slashes. Empty where the escapes are broken. */
function decoded(id: string): string {
  try {
    return decodeURIComponent(id)
  } catch {
    return ''
  }
}

function credential(headers: IncomingHttpHeaders): string | null {
  const value = headers.authorization
  return value === undefined ? null : (BEARER.exec(value)?.[1] ?? null)
}

/** The model's name for this upstream, usage at the end of a stream, and no vendor's cache marker. */
function edits(body: JsonObject, model: string, facts: ModelFacts): Edit[] {
  const out: Edit[] = []
  if (body['model'] !== model) out.push({ key: 'model', json: JSON.stringify(model) })
  const options = body['stream_options']
  if (body['stream'] === true && objectOf(options)['include_usage'] !== true) {
    const forced = { ...(isObject(options) ? options : {}), include_usage: true }
    out.push({ key: 'stream_options', json: JSON.stringify(forced) })
  }
  if (body['cache_control'] !== undefined) out.push({ key: 'cache_control', json: null })
  const messages = isOpenAi(facts) ? withoutState(body['messages']) : null
  if (messages !== null) out.push({ key: 'messages', json: JSON.stringify(messages) })
  // OpenAI's reasoning models refuse `max_tokens`; its successor means the same to them.
  const limit = body['max_tokens']
  if (facts.family === 'openai' && facts.reasoning === true && typeof limit === 'number') {
    out.push({ key: 'max_tokens', json: null })
    if (typeof body['max_completion_tokens'] !== 'number') {
      out.push({ key: 'max_completion_tokens', json: JSON.stringify(limit) })
    }
  }
  return out
}

/**
 * True for OpenAI's own models, which refuse members of a message that they do not know. Others of the
 * format (DeepSeek, Kimi, OpenRouter) want their reasoning back, and get all that the client kept.
 */
function isOpenAi(facts: ModelFacts): boolean {
  return facts.family === 'openai' && facts.reasoning !== undefined
}

/** The messages without reasoning state that another model left in them; null where there is none. */
function withoutState(value: JsonValue | undefined): JsonValue[] | null {
  const before = arrayOf(value)
  const after = before.map((item) =>
    isObject(item) && item['role'] === 'assistant' ? withoutReasoning(item) : item,
  )
  return after.some((item, at) => item !== before[at]) ? after : null
}
