/**
 * Decodes the `usage` object of replies.
 *
 * Source: OpenAI API reference, "Chat Completions", and the SDK's types, read 2026-11-20.
 */
import { withCalls, type CallCounts } from '../../../../chat/hosted-tools.js'
import { isObject, type JsonObject, objectOf } from '../../../../chat/json.js'
import { tokenCount, type TokenKind, type Usage } from '../../../../chat/usage.js'

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
  const calls = callsIn(value)
  if (calls !== undefined) usage.calls = calls
  for (const [counts, member, key] of KINDS) {
    // Vendors report zero for the kinds of a request that has only text.
    const count = (counts === 'input' ? prompt : completion)[member]
    if (count !== 0) take(usage, key, count)
  }
  return usage
}

const REQUESTS = '_requests'

/** The calls of tools that the provider ran, as OpenRouter reports them. */
function callsIn(usage: JsonObject): CallCounts | undefined {
  const reported = usage['server_tool_use']
  if (!isObject(reported)) return undefined
  let calls: CallCounts | undefined
  for (const [key, count] of Object.entries(reported)) {
    if (!key.endsWith(REQUESTS)) continue
    calls = withCalls(calls, key.slice(0, -REQUESTS.length), tokenCount(count) ?? 0)
  }
  return calls
}

/** Whether the reply cites pages: a search of the web, of which a reply has one. */
export function citesPages(delta: JsonObject): boolean {
  const { annotations } = delta
  if (!Array.isArray(annotations)) return false
  return annotations.some((item) => isObject(item) && item['type'] === 'url_citation')
}

/** The search of a reply that cites pages and whose usage has no calls. */
export const ONE_SEARCH: CallCounts = { web_search: 1 }

/** Counts by kind of token: input or output, the member in the details, the canonical name. */
const KINDS = [
  ['input', 'text_tokens', 'inputText'],
  ['input', 'image_tokens', 'inputImage'],
  ['input', 'audio_tokens', 'inputAudio'],
  ['output', 'text_tokens', 'outputText'],
  ['output', 'image_tokens', 'outputImage'],
  ['output', 'audio_tokens', 'outputAudio'],
] as const

function take(usage: Usage, key: TokenKind, value: unknown): void {
  const count = tokenCount(value)
  if (count !== undefined) usage[key] = count
}
