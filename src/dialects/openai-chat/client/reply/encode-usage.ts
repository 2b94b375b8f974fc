/**
 * Encodes usage as the `usage` object of chat completions and legacy completions.
 *
 * Source: OpenAI API reference, "Chat Completions", and the SDK's types, read 2026-11-20.
 */
import { totalTokens, type Usage } from '../../../../chat/usage.js'

/**
 * The JSON text. The three totals are always integers, because the types of OpenAI's SDKs require them. The
 * text is concatenated without `JSON.stringify`, which takes longer.
 */
export function encodeUsage(usage: Usage): string {
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

/** Appends a member if there is a count; `name` is the quoted name with its colon. */
function put(members: string, name: string, count: number | undefined): string {
  if (count === undefined) return members
  return members === '' ? name + String(count) : `${members},${name}${count}`
}
