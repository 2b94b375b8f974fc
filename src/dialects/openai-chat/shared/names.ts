/**
 * The words of the chat-completions format and what they mean in the canon.
 * Knows neither requests nor streams; only names, enumerations and their tables.
 *
 * Source: OpenAI API reference, "Chat Completions", and the SDK's types, read 2026-11-20.
 */
import type { FinishReason } from '../../../chat/event.js'
import { isObject, type JsonObject, objectOf } from '../../../chat/json.js'
import type { Logprob, TokenLogprob } from '../../../chat/reply/logprobs.js'
import { tokenCount, totalTokens, type Usage } from '../../../chat/usage.js'

/** Longer ids of calls are refused: `string_above_max_length`. */
export const MAX_CALL_ID = 40

/**
 * What differs from one chunk to the next: what it says, and numbers (counts so far, a time of its own).
 * A quote inside a string has a backslash before it, so what is found are members.
 */
export const SLOT =
  /"(?:(?:content|arguments|reasoning_content|reasoning|refusal|obfuscation|id)"\s*:\s*"|\w+"\s*:\s*(?=[-\d]))/g

/** Service tiers of OpenAI, and `on_demand` and `performance` of Groq (recorded). */
export const SERVICE_TIERS: readonly string[] = [
  'auto',
  'default',
  'flex',
  'scale',
  'priority',
  'fast',
  'on_demand',
  'performance',
]

/** The canonical reason of an upstream's `finish_reason`; anything unknown is `other`. */
export function finishReason(raw: string): FinishReason {
  switch (raw) {
    case 'stop':
    case 'eos':
      return 'stop'
    case 'length':
    case 'max_tokens':
    case 'model_length':
      return 'length'
    case 'tool_calls':
    case 'function_call':
      return 'tool-use'
    case 'content_filter':
      return 'filter'
    default:
      return 'other'
  }
}

/** The `finish_reason` a client sees; a reply that holds a call and was not cut asks for it to be run. */
export function finishReasonOut(reason: FinishReason, tools: boolean, legacy: boolean): string {
  switch (reason) {
    case 'length':
      return 'length'
    case 'filter':
      return 'content_filter'
    case 'stop':
    case 'tool-use':
      if (!tools) return 'stop'
      return legacy ? 'function_call' : 'tool_calls'
    case 'pause':
    case 'other':
      return 'stop'
    default:
      return reason satisfies never
  }
}

/** Reads a `usage` object; counts that are absent or no numbers stay absent. */
export function usageOf(value: unknown): Usage {
  const usage: Usage = {}
  if (!isObject(value)) return usage
  const prompt = objectOf(value['prompt_tokens_details'])
  const completion = objectOf(value['completion_tokens_details'])
  take(usage, 'input', value['prompt_tokens'])
  take(usage, 'output', value['completion_tokens'])
  // DeepSeek's own name for cache reads stands beside the standard one.
  take(usage, 'cacheRead', prompt['cached_tokens'] ?? value['prompt_cache_hit_tokens'])
  take(usage, 'cacheWrite', prompt['cache_write_tokens'])
  take(usage, 'reasoning', completion['reasoning_tokens'])
  for (const [counts, member, key] of KINDS) {
    // Zero is what the format says of everything that is text alone.
    const count = (counts === 'input' ? prompt : completion)[member]
    if (count !== 0) take(usage, key, count)
  }
  return usage
}

/** Counts by what the tokens are: of which side, the format's name, ours. */
const KINDS = [
  ['input', 'text_tokens', 'inputText'],
  ['input', 'image_tokens', 'inputImage'],
  ['input', 'audio_tokens', 'inputAudio'],
  ['output', 'text_tokens', 'outputText'],
  ['output', 'image_tokens', 'outputImage'],
  ['output', 'audio_tokens', 'outputAudio'],
] as const

/** Writes a `usage` object. The three totals are always integers, because clients' types demand it. By hand: each reply has one. */
export function usageText(usage: Usage): string {
  let prompt = put('', '"cached_tokens":', usage.cacheRead)
  prompt = put(prompt, '"cache_write_tokens":', usage.cacheWrite)
  prompt = put(prompt, '"text_tokens":', usage.inputText)
  prompt = put(prompt, '"image_tokens":', usage.inputImage)
  prompt = put(prompt, '"audio_tokens":', usage.inputAudio)
  let completion = put('', '"reasoning_tokens":', usage.reasoning)
  completion = put(completion, '"text_tokens":', usage.outputText)
  completion = put(completion, '"image_tokens":', usage.outputImage)
  completion = put(completion, '"audio_tokens":', usage.outputAudio)
  const { input = 0, output = 0 } = usage
  const behind = completion === '' ? '}' : `,"completion_tokens_details":{${completion}}}`
  const details = prompt === '' ? behind : `,"prompt_tokens_details":{${prompt}}${behind}`
  return `{"prompt_tokens":${input},"completion_tokens":${output},"total_tokens":${totalTokens(usage) ?? 0}${details}`
}

/** `members` with one more, where there is a count for it; `name` as JSON writes it before a value. */
function put(members: string, name: string, count: number | undefined): string {
  if (count === undefined) return members
  return members === '' ? name + String(count) : `${members},${name}${count}`
}

/** The `logprobs` of a choice. */
export function logprobsOut(tokens: readonly TokenLogprob[]): JsonObject {
  const content = tokens.map(({ top, ...token }) => {
    return { ...likelyOut(token), top_logprobs: top.map(likelyOut) }
  })
  return { content, refusal: null }
}

function likelyOut({ token, logprob, bytes }: Logprob): JsonObject {
  return { token, logprob, bytes: bytes === null ? null : [...bytes] }
}

function take(usage: Usage, key: keyof Usage, value: unknown): void {
  const count = tokenCount(value)
  if (count !== undefined) usage[key] = count
}
