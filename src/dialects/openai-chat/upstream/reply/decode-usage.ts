/**
 * Decodes the `usage` object of replies.
 *
 * Source: OpenAI API reference, "Chat Completions", and the SDK's types, read 2026-11-20.
 */
import { isObject, objectOf } from '../../../../chat/json.js'
import { tokenCount, type Usage } from '../../../../chat/usage.js'

/** Counts that are absent or not numbers stay absent. */
export function usageOf(value: unknown): Usage {
  const usage: Usage = {}
  if (!isObject(value)) return usage
  const prompt = objectOf(value['prompt_tokens_details'])
  const completion = objectOf(value['completion_tokens_details'])
  take(usage, 'input', value['prompt_tokens'])
  take(usage, 'output', value['completion_tokens'])
  // DeepSeek also sends the cache reads under a name of its own.
  take(usage, 'cacheRead', prompt['cached_tokens'] ?? value['prompt_cache_hit_tokens'])
  take(usage, 'cacheWrite', prompt['cache_write_tokens'])
  take(usage, 'reasoning', completion['reasoning_tokens'])
  for (const [counts, member, key] of KINDS) {
    // Vendors report zero for the kinds of a request that has only text.
    const count = (counts === 'input' ? prompt : completion)[member]
    if (count !== 0) take(usage, key, count)
  }
  return usage
}

/** Counts by kind of token: input or output, the member in the details, the canonical name. */
const KINDS = [
  ['input', 'text_tokens', 'inputText'],
  ['input', 'image_tokens', 'inputImage'],
  ['input', 'audio_tokens', 'inputAudio'],
  ['output', 'text_tokens', 'outputText'],
  ['output', 'image_tokens', 'outputImage'],
  ['output', 'audio_tokens', 'outputAudio'],
] as const

function take(usage: Usage, key: keyof Usage, value: unknown): void {
  const count = tokenCount(value)
  if (count !== undefined) usage[key] = count
}
