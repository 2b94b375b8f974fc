/** The dialect of OpenAI's Responses, for clients and for upstreams. */
import type { JsonObject } from '../../base/json.js'
import { decodeError } from '../wire/openai/decode-error.js'
import { modelOf, streamOf } from '../wire/request-fields.js'
import type { Dialect, UpstreamCodec, ClientCodec } from '../dialect.js'
import { decodeRequest } from './client/decode-request.js'
import { FIELDS } from './fields.js'
import { encodeError, encodeStreamError, fieldName } from './client/encode-error.js'
import { encodeReply } from './client/encode-reply.js'
import { replyLossOf } from '../wire/reply-losses.js'
import { EventEncoder } from './client/encode-stream.js'
import { storage } from './client/expand-references.js'
import { edits, EventWatcher, replyFacts } from './passthrough.js'
import { tokenCounter, encodeRequest, streamsWhole } from './upstream/encode-request.js'
import { decodeReply, EventDecoder } from './upstream/decode-reply.js'
import { read, type ReadMembers } from '../wire/unread-members.js'
import { decodeForVendor, type VendorRules } from '../wire/vendor-rules.js'

const MARKS = 'type cache_control prompt_cache_breakpoint'
const URL = read('url')
const PARTS = {
  types: {
    input_text: read(`${MARKS} text`),
    text: read(`${MARKS} text`),
    output_text: read(`${MARKS} text annotations logprobs`),
    refusal: read(`${MARKS} refusal`),
    input_image: read(`${MARKS} image_url file_id detail`),
    input_file: read(`${MARKS} file_data file_id file_url filename`),
    input_audio: read(MARKS, { input_audio: read('data format') }),
    audio_url: read(MARKS, { audio_url: URL }),
    input_video: read(MARKS, { video_url: URL }),
    video_url: read(MARKS, { video_url: URL }),
  },
}
const FUNCTION = read('type name description parameters strict cache_control defer_loading')

const READ: ReadMembers = {
  isOpen: true,
  members: {
    input: { isOpen: true, members: { content: PARTS, output: PARTS } },
    tools: { types: { function: FUNCTION } },
  },
}

const VENDOR_RULES: VendorRules = {
  members: new Set([
    ...['client_metadata', 'context_management', 'include', 'input', 'instructions', 'max_tool_calls'],
    ...['metadata', 'parallel_tool_calls', 'prompt_cache_key', 'prompt_cache_options', 'reasoning'],
    ...['prompt_cache_retention', 'safety_identifier', 'stream_options', 'temperature', 'text'],
    ...['tool_choice', 'tools', 'top_logprobs', 'top_p', 'truncation', 'user'],
  ]),
  // Items are also references, and a namespace has tools of the provider.
  kept: /^(?:input|tools)$|^input\[\d+\](?:\.id)?$|^tools\[\d+\]\.tools\b/,
  tool: /^tools\[\d+\]/,
  part: /^input\[\d+\]\.(?:content|output)\[\d+\]/,
  message: /^input\[\d+\]/,
  textPart: (text) => ({ type: 'input_text', text }),
  textMessage: (content) => ({ role: 'user', content }),
  read: READ,
}

/** The format for clients. */
export const clientCodec: ClientCodec = {
  // Clients of server-sent events ignore comments.
  envelope: { idPrefix: 'resp_', heartbeat: ': keep-alive\n\n', idHeader: null },
  peek: (body: JsonObject) => ({ model: modelOf(body), stream: streamOf(body) }),
  decodeRequest: (body) => decodeForVendor(VENDOR_RULES, body, decodeRequest),
  encodeReply,
  // The format has one choice per request.
  encodeChoices: ([first], request, seed) => {
    if (first === undefined) throw new Error('A reply without a choice cannot be encoded')
    return encodeReply(first.reply, request, seed)
  },
  newEncoder: (request, seed) => new EventEncoder(request, seed),
  outputEdit: (_body, tokens) => ({ key: 'max_output_tokens', json: String(tokens) }),
  lossOf: (event) => replyLossOf('openai-responses', event),
  fieldName,
  encodeError,
  encodeStreamError,
  encodeCount: (inputTokens) => `{"object":"response.input_tokens","input_tokens":${inputTokens}}`,
  storage,
}

/** The format for upstreams. */
export const upstreamCodec: UpstreamCodec = {
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
  newWatcher: (request) => new EventWatcher(request),
  replyFacts,
  decodeError,
}

/** The dialect of `POST /v1/responses`. */
export const openaiResponses: Dialect = {
  name: 'openai-responses',
  fields: FIELDS,
  clientCodec,
  upstreamCodec,
}
