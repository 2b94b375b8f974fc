/** What the fields of the canon are called in Gemini's format, for errors and for what a translation loses. */

const CONFIG = 'generationConfig'

/** Names of settings; the rest of a path stays. */
const NAMES: ReadonlyMap<string, string> = new Map([
  ['frequency_penalty', `${CONFIG}.frequencyPenalty`],
  ['logprobs', `${CONFIG}.responseLogprobs`],
  ['max_completion_tokens', `${CONFIG}.maxOutputTokens`],
  ['max_tokens', `${CONFIG}.maxOutputTokens`],
  ['n', `${CONFIG}.candidateCount`],
  ['presence_penalty', `${CONFIG}.presencePenalty`],
  ['reasoning_effort', `${CONFIG}.thinkingConfig`],
  ['response_format', `${CONFIG}.responseSchema`],
  ['seed', `${CONFIG}.seed`],
  ['service_tier', 'serviceTier'],
  ['stop', `${CONFIG}.stopSequences`],
  ['temperature', `${CONFIG}.temperature`],
  ['tool_choice', 'toolConfig.functionCallingConfig'],
  ['top_k', `${CONFIG}.topK`],
  ['top_logprobs', `${CONFIG}.logprobs`],
  ['top_p', `${CONFIG}.topP`],
])

/** Messages of the canon have the index of the content that they come from; parts and calls have none of their own. */
const MESSAGE = /^messages(\[\d+\])?(?:\..*)?$/
/** The canon counts functions, this format the tools that declare them. */
const FUNCTION = /^tools\[\d+\](?:\.(?:function|custom)\b.*)?$/
/** What encoders call parts of a conversation that they have no words for. */
const PARTS: ReadonlyMap<string, string> = new Map([
  ['messages.reasoning', 'contents.thoughtSignature'],
  ['messages.thinking', 'contents.thoughtSignature'],
  ['messages.is_error', 'contents.functionResponse.response.error'],
  ['messages.tool_content', 'contents.functionResponse.parts'],
  ['messages.file', 'contents.inlineData'],
  ['messages.opaque', 'contents.parts'],
])

/** The path of a field as this format has it. */
export function fieldName(path: string): string {
  const part = PARTS.get(path)
  if (part !== undefined) return part
  const message = MESSAGE.exec(path)
  if (message !== null) return `contents${message[1] ?? ''}`
  if (FUNCTION.test(path)) return 'tools'
  const [name = ''] = path.split(/[.[]/, 1)
  return NAMES.get(name) ?? path
}
