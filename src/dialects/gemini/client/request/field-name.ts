/** Renames the fields of canonical requests to those of Gemini's format, in errors and in lists of losses. */

const CONFIG = 'generationConfig'

/** Names of fields. */
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

/** Canonical messages have the index of their content; parts and calls have no index of their own. */
const MESSAGE = /^messages(\[\d+\])?(?:\..*)?$/
/** Canonical requests number functions; this format numbers the tools that declare them. */
const FUNCTION = /^tools\[\d+\](?:\.(?:function|custom)\b.*)?$/
/** Paths of losses in messages that encoders report without an index. */
const PARTS: ReadonlyMap<string, string> = new Map([
  ['messages.reasoning', 'contents.thoughtSignature'],
  ['messages.thinking', 'contents.thoughtSignature'],
  ['messages.is_error', 'contents.functionResponse.response.error'],
  ['messages.tool_content', 'contents.functionResponse.parts'],
  ['messages.file', 'contents.inlineData'],
  ['messages.opaque', 'contents.parts'],
])

/** The path of a field in this format. A path that is already in this format is returned unchanged. */
export function fieldName(path: string): string {
  const part = PARTS.get(path)
  if (part !== undefined) return part
  const message = MESSAGE.exec(path)
  if (message !== null) return `contents${message[1] ?? ''}`
  if (FUNCTION.test(path)) return 'tools'
  const [name = ''] = path.split(/[.[]/, 1)
  return NAMES.get(name) ?? path
}
