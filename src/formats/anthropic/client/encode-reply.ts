/**
 * Encodes a whole reply as a message.
 *
 * Source: Claude API reference, "Messages", read 2026-11-22.
 */
import type { Citation, FinishReason } from '../../chat/event.js'
import type { Reply, ReplyBlock } from '../../chat/fold.js'
import type { JsonObject } from '../../../base/json.js'
import type { ChatRequest } from '../../chat/request.js'
import type { Usage } from '../../chat/usage.js'
import type { Choice, Seed } from '../../dialect.js'
import { TextSizer, type SizedText } from '../../wire/frames/sized-text.js'
import { stringifyExact } from '../../wire/json/exact-numbers.js'
import { hasNoArguments } from '../../wire/json/no-arguments.js'
import { writeReasoningToken, type Thought } from '../../wire/reasoning-token.js'
import { PROVIDER } from '../constants.js'
import { isStopWord, stopWordOf } from '../../wire/stop-reasons.js'

/** The JSON body of a completed reply; `seed` has its id and model. */
export function encodeReply(reply: Reply, { hidesThoughts }: ChatRequest, seed: Seed): SizedText {
  const sizer = new TextSizer()
  let content = ''
  let refusal = ''
  const hides = hidesThoughts === true && seed.origin !== PROVIDER
  for (const block of reply.blocks) {
    if (block.type === 'refusal') refusal += block.text
    const shown = hides && block.type === 'thinking' ? { ...block, text: '' } : block
    const text = blockText(shown, seed.origin, sizer)
    if (text !== '') content += content === '' ? text : `,${text}`
  }
  const hasTool = reply.blocks.some(({ type }) => type === 'tool')
  const { usage, serviceTier, reason, raw, stopSequence } = reply
  const ending = { reason, raw, origin: seed.origin, hasTool, refusal }
  const stop = stopMembers(stopSequence === undefined ? ending : { ...ending, stopSequence })
  return sizer.whole(
    `{"id":${sizer.quoted(seed.id)},"type":"message","role":"assistant","model":${sizer.name(seed.model)},` +
      `"content":[${content}],${sizer.part(stop)},"usage":${messageUsage(usage, serviceTier)}}`,
  )
}

/** Encodes the first choice: the format has one reply per request. */
export function encodeChoices(choices: readonly Choice[], request: ChatRequest, seed: Seed): SizedText {
  const [first] = choices
  if (first === undefined) throw new Error('a request without a reply')
  return encodeReply(first.reply, request, seed)
}

/** The JSON text of a block; empty for an empty block and for one that the format cannot express. */
function blockText(block: ReplyBlock, origin: string | undefined, sizer: TextSizer): string {
  switch (block.type) {
    case 'text':
      return block.text === '' ? '' : textText(block, sizer)
    case 'thinking':
      return thinkingText(block, origin, sizer)
    case 'tool': {
      const input = sizer.part(encodeToolInput(block.json, block.custom === true))
      return `{"type":"tool_use","id":${sizer.quoted(block.id)},"name":${sizer.name(block.name)},"input":${input},"caller":{"type":"direct"}}`
    }
    case 'opaque':
      return block.provider === PROVIDER ? sizer.part(stringifyExact(block.block)) : ''
    case 'refusal':
    case 'image':
      return ''
    default:
      return block satisfies never
  }
}

function textText({ text, citations }: Extract<ReplyBlock, { type: 'text' }>, sizer: TextSizer): string {
  const encoded: JsonObject[] = []
  for (const citation of citations) {
    const out = encodeCitation(citation)
    if (out !== null) encoded.push(out)
  }
  const sources = encoded.length === 0 ? '' : `,"citations":${sizer.part(JSON.stringify(encoded))}`
  return `{"type":"text","text":${sizer.quoted(text)}${sources}}`
}

function thinkingText(
  { text, signature, redacted }: Extract<ReplyBlock, { type: 'thinking' }>,
  origin: string | undefined,
  sizer: TextSizer,
): string {
  if (redacted !== undefined && text === '') {
    return `{"type":"redacted_thinking","data":${sizer.quoted(encodeState(origin, { redacted }))}}`
  }
  if (text === '' && signature === undefined) return ''
  const state = sizer.quoted(encodeState(origin, { signature, redacted }))
  return `{"type":"thinking","thinking":${sizer.quoted(text)},"signature":${state}}`
}

/** The state of a thinking block: Anthropic's own, or the gateway's token for other upstreams. */
export function encodeState(origin: string | undefined, { signature, redacted }: Thought): string {
  if (origin === PROVIDER) return signature ?? redacted ?? ''
  const thoughts = [{ signature, redacted }]
  return writeReasoningToken({ origin: origin ?? 'openai-chat', thoughts })
}

/** A citation with a URL as a web search result; null for one without a URL. */
export function encodeCitation({ url, title, citedText }: Citation): JsonObject | null {
  if (url === undefined) return null
  return {
    type: 'web_search_result_location',
    cited_text: citedText ?? '',
    encrypted_index: '',
    title: title ?? null,
    url,
  }
}

/**
 * The JSON text of `input` for a call's arguments. Arguments that are not a JSON object become `{"_raw":
 * text}`.
 */
export function encodeToolInput(json: string, isCustom: boolean): string {
  if (isCustom) return JSON.stringify({ input: json })
  if (hasNoArguments(json)) return '{}'
  return isObjectText(json) ? json : JSON.stringify({ _raw: json })
}

function isObjectText(json: string): boolean {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

/**
 * The members of a `usage` object, without braces. The format counts cached tokens apart from `input_tokens`;
 * tokens that a provider counts both as cache reads and as cache writes are counted as reads.
 */
export function usageMembers(usage: Usage): string {
  const { output = 0, cacheRead = 0, reasoning } = usage
  const cacheWrite = writtenOf(usage)
  const fresh = Math.max(0, (usage.input ?? 0) - cacheRead - cacheWrite)
  const details = reasoning === undefined ? '' : `,"output_tokens_details":{"thinking_tokens":${reasoning}}`
  return (
    `"input_tokens":${fresh},"cache_creation_input_tokens":${cacheWrite},` +
    `"cache_read_input_tokens":${cacheRead},"output_tokens":${output}${details}`
  )
}

function writtenOf({ input = 0, cacheRead = 0, cacheWrite = 0 }: Usage): number {
  return Math.min(cacheWrite, Math.max(0, input - cacheRead))
}

/**
 * The `usage` object of a message, with cache lifetimes and the service tier; `tier` is OpenAI's name of it.
 */
export function messageUsage(usage: Usage, tier: string | undefined): string {
  const cacheWrite = writtenOf(usage)
  const cacheWrite1h = Math.min(usage.cacheWrite1h ?? 0, cacheWrite)
  const service = tier === 'default' ? '"standard"' : tier === 'priority' ? '"priority"' : 'null'
  return (
    `{${usageMembers(usage)},"cache_creation":{"ephemeral_5m_input_tokens":${cacheWrite - cacheWrite1h},` +
    `"ephemeral_1h_input_tokens":${cacheWrite1h}},"service_tier":${service}}`
  )
}

/** How a reply ended. */
interface Ending {
  readonly reason: FinishReason
  /** The upstream's own stop reason. */
  readonly raw: string | null
  readonly stopSequence?: string
  /** The dialect of the upstream. */
  readonly origin: string | undefined
  /** True if the reply has a call for the client to run. */
  readonly hasTool: boolean
  /** The text of the model's refusal; empty if it did not refuse. */
  readonly refusal: string
}

/**
 * `"stop_reason":…,"stop_sequence":…,"stop_details":…`
 *
 * Source: Claude API reference, "Handling stop reasons", read 2026-11-22.
 */
export function stopMembers(ending: Ending): string {
  const { stopSequence, refusal } = ending
  const reason = stopReason(ending)
  const sequence = stopSequence === undefined ? 'null' : JSON.stringify(stopSequence)
  const explanation = refusal === '' ? 'null' : JSON.stringify(refusal)
  const details =
    reason === 'refusal' ? `{"type":"refusal","category":null,"explanation":${explanation}}` : 'null'
  return `"stop_reason":"${reason}","stop_sequence":${sequence},"stop_details":${details}`
}

/** The word of an Anthropic upstream is passed unchanged. */
function stopReason({ reason, raw, stopSequence, origin, hasTool, refusal }: Ending): string {
  if (origin === PROVIDER && isStopWord('anthropic', raw)) return raw
  if (reason !== 'stop' && reason !== 'tool-use' && reason !== 'other') {
    return stopWordOf('anthropic', reason)
  }
  if (refusal !== '') return 'refusal'
  if (hasTool) return 'tool_use'
  return stopSequence === undefined ? stopWordOf('anthropic', 'stop') : 'stop_sequence'
}
