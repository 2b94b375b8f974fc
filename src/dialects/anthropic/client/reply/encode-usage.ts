/**
 * Members that streams and whole replies share: why the model stopped, what was used, what a block holds.
 * Written by hand: each reply has them.
 */
import type { Citation, FinishReason } from '../../../../chat/event.js'
import type { JsonObject } from '../../../../chat/json.js'
import type { Usage } from '../../../../chat/usage.js'
import { PROVIDER } from '../../shared/names.js'
import { sealThinking } from './thinking-token.js'

/** How a reply ended. */
export interface Ending {
  readonly reason: FinishReason
  /** The upstream's own word. */
  readonly raw: string | null
  readonly stopSequence?: string
  /** The dialect of the upstream. */
  readonly origin: string | undefined
  /** The reply has a call that the client is to run. */
  readonly hasTool: boolean
  /** What the model said instead of answering; empty if nothing. */
  readonly refusal: string
}

/** Anthropic's own words, which are kept as they are. */
const REASONS: ReadonlySet<string> = new Set([
  'end_turn',
  'max_tokens',
  'model_context_window_exceeded',
  'pause_turn',
  'refusal',
  'stop_sequence',
  'tool_use',
])

/** `"stop_reason":…,"stop_sequence":…,"stop_details":…` */
export function stopMembers(ending: Ending): string {
  const { stopSequence, refusal } = ending
  const reason = stopReason(ending)
  const sequence = stopSequence === undefined ? 'null' : JSON.stringify(stopSequence)
  const explanation = refusal === '' ? 'null' : JSON.stringify(refusal)
  const details =
    reason === 'refusal'
      ? `{"type":"refusal","category":null,"explanation":${explanation}}`
      : 'null'
  return `"stop_reason":"${reason}","stop_sequence":${sequence},"stop_details":${details}`
}

function stopReason({ reason, raw, stopSequence, origin, hasTool, refusal }: Ending): string {
  if (origin === PROVIDER && raw !== null && REASONS.has(raw)) return raw
  switch (reason) {
    case 'length':
      return 'max_tokens'
    case 'filter':
      return 'refusal'
    case 'pause':
      return 'pause_turn'
    case 'stop':
    case 'tool-use':
    case 'other':
      if (refusal !== '') return 'refusal'
      if (hasTool) return 'tool_use'
      return stopSequence === undefined ? 'end_turn' : 'stop_sequence'
    default:
      return reason satisfies never
  }
}

/**
 * The counts of a `usage` object without its braces. The format counts the cache apart from the input, and its parts
 * add up: what a provider counts both as read and as written was read.
 */
export function usageMembers(usage: Usage): string {
  const { output = 0, cacheRead = 0, reasoning } = usage
  const cacheWrite = writtenOf(usage)
  const fresh = Math.max(0, (usage.input ?? 0) - cacheRead - cacheWrite)
  const details =
    reasoning === undefined ? '' : `,"output_tokens_details":{"thinking_tokens":${reasoning}}`
  return (
    `"input_tokens":${fresh},"cache_creation_input_tokens":${cacheWrite},` +
    `"cache_read_input_tokens":${cacheRead},"output_tokens":${output}${details}`
  )
}

function writtenOf({ input = 0, cacheRead = 0, cacheWrite = 0 }: Usage): number {
  return Math.min(cacheWrite, Math.max(0, input - cacheRead))
}

/** The counts and what only a message has: how long the cache is kept, and the tier; `tier` as OpenAI names it. */
export function messageUsage(usage: Usage, tier: string | undefined): string {
  const cacheWrite = writtenOf(usage)
  const cacheWrite1h = Math.min(usage.cacheWrite1h ?? 0, cacheWrite)
  const service = tier === 'default' ? '"standard"' : tier === 'priority' ? '"priority"' : 'null'
  return (
    `{${usageMembers(usage)},"cache_creation":{"ephemeral_5m_input_tokens":${cacheWrite - cacheWrite1h},` +
    `"ephemeral_1h_input_tokens":${cacheWrite1h}},"service_tier":${service}}`
  )
}

/** The signature of a thinking block: Anthropic's own, else a token of the gateway's. */
export function signatureOut(origin: string | undefined, signature: string | undefined): string {
  if (origin === PROVIDER) return signature ?? ''
  return sealThinking(origin ?? '', signature ?? '')
}

/** A source with an address as a result of a web search; null for one without. */
export function citationOut({ url, title, citedText }: Citation): JsonObject | null {
  if (url === undefined) return null
  return {
    type: 'web_search_result_location',
    cited_text: citedText ?? '',
    encrypted_index: '',
    title: title ?? null,
    url,
  }
}

/** What stands in `input` for the text of a call's arguments; a text that is no object is kept as one of its members. */
export function inputText(json: string, isCustom: boolean): string {
  if (isCustom) return JSON.stringify({ input: json })
  if (json.trim() === '') return '{}'
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
