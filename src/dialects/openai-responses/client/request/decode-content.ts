/**
 * Decodes the content of an input item: text, images, files and audio. The caller chooses the parts that a
 * role may hold.
 *
 * Source: OpenAI API reference, "Create a model response", `input`, read 2026-11-20.
 */
import type { TextPart, UserPart } from '../../../../chat/request.js'
import { oneOf } from '../../../../wire/json/check-fields.js'
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
    oneOf(item['type'], `${at}.type`, ['input_text'])
    return decodeTextPart(item, 'text', at)
  })
}

/** The parts of a user message or a tool result. Empty text is dropped. */
export function userParts(value: Content, path: string): UserPart[] {
  return decodeUserParts(value, path, {
    text: 'input_text',
    image: ['input_image', decodeImage],
    file: ['input_file', decodeFile],
  })
}

/** The parts of an assistant message: text, and refusals (text for the next turn). */
export function assistantParts(value: Content, path: string): TextPart[] {
  return decodeParts<TextPart>(value, path, (item, at) => {
    const type = oneOf(item['type'], `${at}.type`, ['output_text', 'refusal', 'input_text', 'text'])
    return decodeTextPart(item, type === 'refusal' ? 'refusal' : 'text', at)
  })
}
