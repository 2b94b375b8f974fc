/**
 * Reads the content of a chat-completions request and of an upstream's body, naively on purpose: texts, names
 * and their order, without the rules of translation.
 */
import { arrayOf, isObject, objectOf, stringOf, type JsonObject } from '../../../src/base/json.js'

/** The content of a request that no translation may lose. */
export interface RequestContent {
  /** Texts, base64 data and URLs of all messages, results of tools among them. */
  readonly words: readonly string[]
  /** Names of the tools, in order. */
  readonly tools: readonly string[]
  /** Names of the calls in the history, in order. */
  readonly calls: readonly string[]
}

/** The content of `body`, a chat-completions request. */
export function contentOfChat(body: JsonObject): RequestContent {
  const words: string[] = []
  const calls: string[] = []
  for (const message of arrayOf(body['messages']).map(objectOf)) {
    const result = message['role'] === 'tool' || message['role'] === 'function'
    const { content } = message
    if (typeof content === 'string') words.push(...(result ? valuesIn(content) : [content]))
    for (const part of arrayOf(content).map(objectOf)) words.push(...wordsOf(part))
    const made = arrayOf(message['tool_calls']).map(objectOf)
    const legacy = message['function_call']
    for (const call of [...made, ...(isObject(legacy) ? [{ function: legacy }] : [])]) {
      calls.push(stringOf(objectOf(call['function'] ?? call['custom'])['name']) ?? '')
    }
  }
  const offered = [...arrayOf(body['tools']), ...arrayOf(body['functions'])].map(objectOf)
  const tools = offered.map((tool) => {
    const inner = objectOf(tool['function'] ?? tool['custom'] ?? tool)
    return stringOf(inner['name']) ?? ''
  })
  return { words: words.map((it) => it.trim()).filter(isWord), tools, calls }
}

/** Recordings have a note in place of long base64. */
export function isWord(text: string): boolean {
  return text !== '' && !text.startsWith('<elided ')
}

function wordsOf(part: JsonObject): string[] {
  const url = stringOf(objectOf(part['image_url'])['url'])
  const file = stringOf(objectOf(part['file'])['file_data'])
  const audio = stringOf(objectOf(part['input_audio'])['data'])
  return [stringOf(part['text'] ?? part['refusal']), url, file, audio]
    .filter((word) => word !== undefined)
    .map((word) => word.replace(/^data:[^,]*,/, ''))
}

/** A JSON result may be sent as JSON: then its strings count. */
export function valuesIn(text: string): string[] {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? stringsIn(value) : [text]
  } catch {
    return [text]
  }
}

/** Every string in a value, however deep. */
export function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (Array.isArray(value)) return value.flatMap(stringsIn)
  return isObject(value) ? Object.values(value).flatMap(stringsIn) : []
}

const CALLS = new Set(['tool_use', 'function_call', 'custom_tool_call'])

/** The same of a body in Anthropic's, Gemini's or the Responses format. */
export function contentOfUpstream(body: JsonObject): RequestContent {
  const turns = [...arrayOf(body['messages']), ...arrayOf(body['contents'])].map(objectOf)
  const parts = turns.flatMap((turn) => [...arrayOf(turn['content']), ...arrayOf(turn['parts'])])
  const items = [...parts, ...arrayOf(body['input'])]
  const calls = items.map(objectOf).flatMap((part) => {
    const own = CALLS.has(stringOf(part['type']) ?? '')
    const call = own ? part : part['functionCall']
    return isObject(call) ? [stringOf(call['name']) ?? ''] : []
  })
  const tools = arrayOf(body['tools'])
    .map(objectOf)
    .flatMap((tool) => (tool['name'] === undefined ? arrayOf(tool['functionDeclarations']) : [tool]))
    .map((tool) => stringOf(objectOf(tool)['name']) ?? '')
  return { words: stringsIn(body), tools, calls }
}
