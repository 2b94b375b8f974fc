/**
 * The dialect of Anthropic's Messages API, for clients and upstreams.
 */
import { isObject, type JsonObject, type JsonValue } from '../../base/json.js'
import type { Dialect, UpstreamCodec, ClientCodec } from '../dialect.js'
import { dropReasoning, tokenCounter, encodeRequest, streamsWhole, write } from './upstream/encode-request.js'
import { modelOf, streamOf } from '../wire/request-fields.js'
import { decodeRequest as decodeClientRequest, forwardedHeaders } from './client/decode-request.js'
import { withoutBetaFields } from './beta-fields.js'
import { edits, MessageWatcher, replyFacts } from './passthrough.js'
import { encodeError, encodeStreamError, fieldName } from './client/encode-error.js'
import { encodeChoices, encodeReply } from './client/encode-reply.js'
import { replyLossOf } from '../wire/reply-losses.js'
import { MessageEncoder, PING } from './client/encode-stream.js'
import { continuation, mayOmitCall } from './upstream/continue-paused-turn.js'
import { decodeError } from './upstream/decode-error.js'
import { readsUrl } from './upstream/encode-messages.js'
import { decodeReply, newDecoder } from './upstream/decode-reply.js'
import { BINDING_BETA } from '../wire/claude-thinking.js'
import { read, type ReadMembers } from '../wire/unread-members.js'
import { decodeForVendor, type VendorRules } from '../wire/vendor-rules.js'
import { VERSION, VERSION_WITH_SAMPLING } from './constants.js'
import { FIELDS } from './fields.js'

const TEXT = read('type text citations cache_control')
const SOURCE = read('type media_type data url file_id', { content: true })
const IMAGE = read('type cache_control', { source: SOURCE })
const DOCUMENT = read('type title context citations cache_control', { source: SOURCE })
/** Results of searches are text, and other blocks are Anthropic's. */
const IN_RESULTS = { text: TEXT, image: IMAGE, document: DOCUMENT }
const RESULT = read('type tool_use_id is_error cache_control', { content: { types: IN_RESULTS } })
const CALL = read('type id name input caller cache_control')
const CONTENT = { types: { ...IN_RESULTS, tool_use: CALL, tool_result: RESULT } }
const TOOL = `type name description input_schema cache_control strict
  allowed_callers defer_loading eager_input_streaming input_examples max_characters`
const CUSTOM = read(TOOL.replace(/\s+/g, ' '))

const READ: ReadMembers = {
  isOpen: true,
  members: {
    system: { types: { text: TEXT } },
    messages: { isOpen: true, members: { content: CONTENT } },
    tools: { types: { custom: CUSTOM }, untyped: CUSTOM },
  },
}

const VENDOR_RULES: VendorRules = {
  members: new Set([
    ...['cache_control', 'context_management', 'diagnostics', 'messages', 'metadata', 'output_config'],
    ...['output_format', 'stop_sequences', 'system', 'temperature', 'thinking', 'tool_choice', 'tools'],
    ...['top_k', 'top_p', 'user_profile_id', 'workspace_id'],
  ]),
  kept: /^(?:messages|tools)$/,
  tool: /^tools\[\d+\]/,
  part: /^(?:messages\[\d+\]\.content|system)\[\d+\]/,
  message: /^messages\[\d+\]/,
  textPart: (text) => ({ type: 'text', text }),
  textMessage: (content) => ({ role: 'user', content }),
  read: READ,
}

const clientCodec: ClientCodec = {
  envelope: { idPrefix: 'msg_', heartbeat: PING, idHeader: 'request-id' },
  peek: (body) => ({ model: modelOf(body), stream: streamOf(body) }),
  decodeRequest: (body, endpoint, headers) =>
    decodeForVendor(VENDOR_RULES, body, (rest) => decodeClientRequest(rest, endpoint, headers)),
  encodeReply,
  encodeChoices,
  newEncoder: (request, seed) => new MessageEncoder(request, seed),
  lossOf: (event) => replyLossOf('anthropic', event),
  fieldName,
  encodeError,
  encodeStreamError,
  encodeCount: (inputTokens) => `{"input_tokens":${inputTokens}}`,
}

const upstreamCodec: UpstreamCodec = {
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
  edits: (body, modelName, { losses, betas }) => {
    const own = edits(body, modelName, losses)
    return betas === undefined ? own : withoutBetaFields(body, own, { platform: null, betas, losses })
  },
  forwardedHeaders,
  dropReasoning,
  tokenCounter,
  decodeReply,
  newDecoder,
  mayOmitCall,
  continuation,
  newWatcher: (request) => new MessageWatcher(request),
  replyFacts,
  decodeError,
}

/** The dialect of `POST /v1/messages`. */
export const anthropic: Dialect = { name: 'anthropic', fields: FIELDS, clientCodec, upstreamCodec }

function given(value: JsonValue | undefined): boolean {
  return value !== undefined && value !== null
}

/**
 * The current API version rejects sampling parameters, so a body with any of them uses the previous version.
 */
function headers(body: JsonObject): Record<string, string> {
  const { temperature, top_p, top_k, thinking } = body
  const sampling = given(temperature) || given(top_p) || given(top_k)
  const version = { 'anthropic-version': sampling ? VERSION_WITH_SAMPLING : VERSION }
  if (!isObject(thinking) || !isObject(thinking.block_binding)) return version
  return { ...version, 'anthropic-beta': BINDING_BETA }
}
