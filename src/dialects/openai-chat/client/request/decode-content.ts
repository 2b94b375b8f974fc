/**
 * Decodes the content of a message: text, images, audio, files, refusals and reasoning. The caller chooses
 * the parts that a role may hold.
 */
import type { JsonObject } from '../../../../chat/json.js'
import type { AssistantPart, TextPart, ThinkingPart, UserPart } from '../../../../chat/request.js'
import { oneOf, string } from '../../../../wire/json/check-fields.js'
import {
  decodeParts,
  decodeTextPart,
  decodeUserParts,
  type Content,
} from '../../../../wire/openai/content-parts.js'
import { decodeFile, decodeImage } from './decode-media.js'

/** The text parts of a system or developer message. Empty text is dropped. */
export function textParts(value: Content, path: string): TextPart[] {
  return decodeParts(value, path, (item, at) => {
    oneOf(item['type'], `${at}.type`, ['text'])
    return decodeTextPart(item, 'text', at)
  })
}

/** The parts of a user message or a tool result. Empty text is dropped. */
export function userParts(value: Content, path: string): UserPart[] {
  return decodeUserParts(value, path, {
    text: 'text',
    image: ['image_url', decodeImage],
    file: ['file', decodeFile],
  })
}

/** The parts of an assistant message: text, refusals (text for the next turn) and Mistral's thinking. */
export function assistantParts(value: Content, path: string): AssistantPart[] {
  return decodeParts<AssistantPart>(value, path, (item, at) => {
    const type = oneOf(item['type'], `${at}.type`, ['text', 'refusal', 'thinking'])
    if (type === 'text') return decodeTextPart(item, 'text', at)
    if (type === 'thinking') return thinkingPart(item, at)
    return { type: 'text', text: string(item['refusal'], `${at}.refusal`) }
  })
}

/** Mistral sends thinking as a list of text parts (recorded). */
function thinkingPart(item: JsonObject, path: string): ThinkingPart {
  const value = item['thinking']
  const text =
    typeof value === 'string' ? value : textParts(value, `${path}.thinking`).map((t) => t.text)
  return { type: 'thinking', text: [text].flat().join(''), origin: 'openai-chat' }
}
