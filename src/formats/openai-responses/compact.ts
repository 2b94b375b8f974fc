/**
 * `POST /v1/responses/compact`: OpenAI and Azure compact the conversation themselves; any other model writes
 * a summary, which becomes a `compaction` item.
 *
 * Source: OpenAI API reference, "Compact a response", read 2026-11-29.
 */
import { GatewayError } from '../../errors.js'
import { isObject, type JsonObject } from '../../base/json.js'
import type { Reply } from '../chat/fold.js'
import type { ChatRequest } from '../chat/request.js'
import type { ClientCodec, FormatCodecs, Seed, UpstreamCodec } from '../dialect.js'
import { sizedText, type SizedText } from '../wire/frames/sized-text.js'
import { compactionItem, isCompaction } from './compaction-item.js'
import { decodeRequest } from './client/decode-request.js'
import { encodeUsage, itemId } from './client/response-object.js'
import { storage } from './client/expand-references.js'
import { clientCodec, upstreamCodec } from './index.js'
import { ORIGIN } from './reasoning-state.js'

const INSTRUCTION = `Write a summary of this conversation, with which another model can continue it without the conversation itself. State the goal of the user, the decisions and constraints, what was done and found with the names of files, commands and values, what is still to be done, and the state of the last request. Write the summary only, as plain text, in the language of the conversation.`

/** Members that a summary does not have. */
const OF_REPLIES = [
  'stream',
  'text',
  'store',
  'tool_choice',
  'parallel_tool_calls',
  'max_tool_calls',
  'include',
]
/** Tools that a conversation with their calls needs; those of the provider could run. */
const CLIENT_TOOLS: ReadonlySet<unknown> = new Set(['function', 'custom', 'namespace'])

/** The body of a request for a summary. */
function settingsOf(body: JsonObject): JsonObject {
  const settings = { ...body }
  for (const name of OF_REPLIES) Reflect.deleteProperty(settings, name)
  const { tools } = body
  if (Array.isArray(tools)) {
    settings['tools'] = tools.filter((tool) => isObject(tool) && CLIENT_TOOLS.has(tool['type']))
  }
  return settings
}

/** The conversation with the instruction at its end. */
function withInstruction(request: ChatRequest): ChatRequest {
  const { messages } = request
  const index = (messages.at(-1)?.index ?? -1) + 1
  const text = { type: 'text' as const, text: INSTRUCTION }
  const asked = { ...request, messages: [...messages, { role: 'user' as const, index, parts: [text] }] }
  return request.tools.length === 0 ? asked : { ...asked, toolChoice: { mode: 'none' } }
}

/** The `response.compaction` with the summary, or with the item that OpenAI wrote. */
function encodeCompaction({ blocks, usage }: Reply, _request: ChatRequest, seed: Seed): SizedText {
  const own = blocks.flatMap((block) => {
    const isOwn = block.type === 'opaque' && block.provider === ORIGIN && isCompaction(block.block)
    return isOwn ? [JSON.stringify(block.block)] : []
  })
  const summary = blocks.map((block) => (block.type === 'text' ? block.text : '')).join('')
  if (own.length === 0 && summary.trim() === '') {
    const message = 'The model wrote no summary; try again, or compact with another model.'
    throw new GatewayError('upstream_malformed', message)
  }
  const items = own.length === 0 ? [compactionItem(itemId('cmp', seed.id, 0), summary)] : own
  return sizedText(
    `{"id":"${seed.id}","object":"response.compaction","created_at":${seed.createdAtSeconds},"output":[${items.join(',')}],"usage":${encodeUsage(usage)}}`,
  )
}

const compactClient: ClientCodec = {
  ...clientCodec,
  peek: (body, endpoint) => ({ ...clientCodec.peek(body, endpoint), stream: false }),
  decodeRequest: (body) => withInstruction(decodeRequest(settingsOf(body))),
  encodeReply: encodeCompaction,
  encodeChoices: ([first], request, seed) => {
    if (first === undefined) throw new Error('A reply without a choice cannot be encoded')
    return encodeCompaction(first.reply, request, seed)
  },
  storage: {
    ...storage,
    shouldStore: () => false,
    expand: (body, history, found) => {
      const expanded = storage.expand(body, history, found)
      const summarised = storage.expand(settingsOf(body), history, found)
      return { ...expanded, request: withInstruction(summarised.request) }
    },
  },
}

/** Members that OpenAI's endpoint takes of a request that the gateway has rewritten. */
const TAKEN = ['model', 'input', 'instructions', 'prompt_cache_key', 'service_tier']

const compactUpstream: UpstreamCodec = {
  ...upstreamCodec,
  target: () => ({ path: '/responses/compact', accept: 'application/json' }),
  streamsWhole: () => false,
  encodeRequest: (request, model, losses) => {
    const conversation = { ...request, messages: request.messages.slice(0, -1) }
    const body = upstreamCodec.encodeRequest(conversation, model, losses)
    return Object.fromEntries(Object.entries(body).filter(([name]) => TAKEN.includes(name)))
  },
  edits: (body, modelName, context) => [
    ...upstreamCodec.edits(body, modelName, context),
    { key: 'stream', json: null },
  ],
}

/** `POST /v1/responses/compact`. */
export const responsesCompact: FormatCodecs = {
  clientCodec: compactClient,
  upstreamCodec: compactUpstream,
}

/** The upstream of a request, as its configuration describes it. */
interface CompactingUpstream {
  readonly preset: string | null
  readonly platform: { readonly name: string } | null
}

/** Whether the upstream compacts conversations itself: OpenAI, Azure, and those that no preset names. */
export function compactsItself({ preset, platform }: CompactingUpstream): boolean {
  if (platform !== null) return platform.name === 'azure'
  return preset === null || preset === 'openai' || preset === 'azure'
}
