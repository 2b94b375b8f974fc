/** The dialect of OpenAI's chat completions, for clients and for upstreams. */
import { decodeError } from '../wire/openai/decode-error.js'
import { modelOf, streamOf } from '../wire/request-fields.js'
import type { Dialect, UpstreamCodec, ClientCodec } from '../dialect.js'
import { ChoicesOfReply, decodeReply, ChunkDecoder } from './upstream/decode-reply.js'
import { edits, ChunkWatcher, replyFacts } from './passthrough.js'
import { encodeRequest } from './upstream/encode-request.js'
import { encodeError, encodeStreamError } from './client/encode-error.js'
import { encodeChoices, encodeReply } from './client/encode-reply.js'
import { replyLossOf } from '../wire/reply-losses.js'
import { decodeRequest } from './client/decode-request.js'
import { decodeForVendor, type VendorRules } from '../wire/vendor-rules.js'
import { read, type ReadMembers } from '../wire/unread-members.js'
import { FIELDS } from './fields.js'
import { ChunkEncoder } from './client/encode-stream.js'

const MARKS = 'type cache_control prompt_cache_breakpoint'
const URL = read('url')
const CONTENT = {
  types: {
    text: read(`${MARKS} text`),
    refusal: read(`${MARKS} refusal`),
    image_url: read(MARKS, { image_url: read('url detail') }),
    input_audio: read(MARKS, { input_audio: read('data format') }),
    file: read(MARKS, { file: read('file_data file_id file_url filename') }),
    audio_url: read(MARKS, { audio_url: URL }),
    input_video: read(MARKS, { video_url: URL }),
    video_url: read(MARKS, { video_url: URL }),
  },
}
const FUNCTION = read('name description parameters strict')
const TOOLS = {
  types: {
    function: read('type cache_control', { function: FUNCTION }),
    custom: read('type cache_control', { custom: read('name description format') }),
  },
}

const READ: ReadMembers = {
  isOpen: true,
  members: { messages: { isOpen: true, members: { content: CONTENT } }, tools: TOOLS },
}

const VENDOR_RULES: VendorRules = {
  members: new Set([
    ...['audio', 'frequency_penalty', 'function_call', 'functions', 'logit_bias', 'logprobs', 'messages'],
    ...['metadata', 'modalities', 'moderation', 'parallel_tool_calls', 'prediction', 'presence_penalty'],
    ...['prompt_cache_key', 'prompt_cache_options', 'prompt_cache_retention', 'reasoning_effort'],
    ...['response_format', 'safety_identifier', 'seed', 'stop', 'temperature', 'tool_choice', 'tools'],
    ...['top_logprobs', 'top_p', 'user', 'verbosity'],
  ]),
  kept: /^(?:messages|tools)$/,
  tool: /^tools\[\d+\]/,
  part: /^messages\[\d+\]\.content\[\d+\]/,
  message: /^messages\[\d+\]/,
  textPart: (text) => ({ type: 'text', text }),
  textMessage: (content) => ({ role: 'user', content }),
  read: READ,
}

export const clientCodec: ClientCodec = {
  // Clients of server-sent events ignore comments.
  envelope: { idPrefix: 'chatcmpl-', heartbeat: ': keep-alive\n\n', idHeader: null },
  peek: (body) => ({ model: modelOf(body), stream: streamOf(body) }),
  decodeRequest: (body) => decodeForVendor(VENDOR_RULES, body, decodeRequest),
  encodeReply,
  encodeChoices,
  newEncoder: (request, seed, position) => new ChunkEncoder(request, seed, position),
  lossOf: (event) => replyLossOf('openai-chat', event),
  encodeError,
  encodeStreamError,
}

export const upstreamCodec: UpstreamCodec = {
  framing: 'sse',
  target: (_model, stream) => ({
    path: '/chat/completions',
    accept: stream ? 'text/event-stream' : 'application/json',
  }),
  credential: (apiKey) => ({ authorization: `Bearer ${apiKey}` }),
  headers: () => ({}),
  // Documents and sound are data only: `file_data` and `input_audio`.
  readsUrl: (_url, type) => type === 'image' || type === 'video',
  encodeRequest,
  edits,
  decodeReply,
  newDecoder: (_request, sink) => new ChunkDecoder(sink),
  newChoices: (_request, sinks) => new ChoicesOfReply(sinks),
  // An upstream sends the chunks of several choices interleaved; encoders of other formats need whole
  // choices in sequence.
  wholeOnly: ({ candidates = 1 }) => candidates > 1,
  continuation: null,
  newWatcher: (request) => new ChunkWatcher(request),
  replyFacts,
  decodeError,
}

/** The dialect of `POST /v1/chat/completions`. */
export const openaiChat: Dialect = {
  name: 'openai-chat',
  fields: FIELDS,
  clientCodec,
  upstreamCodec,
}
