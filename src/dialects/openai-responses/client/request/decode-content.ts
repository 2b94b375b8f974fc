/**
 * Decodes the content of an input item: text, images, files and audio. The caller chooses the parts that a role may hold.
 *
 * Source: OpenAI API reference, "Create a model response", `input`, read 2026-11-20.
 */
import type { JsonObject } from '../../../../chat/json.js'
import type { FilePart, ImagePart, TextPart, UserPart } from '../../../../chat/request.js'
import { given, oneOf, refuse, string, text } from '../../../../wire/json/check-fields.js'
import { decodeMediaUrl } from '../../../../wire/decode-data-url.js'
import {
  decodeParts,
  decodeTextPart,
  decodeUserParts,
  type Content,
} from '../../../../wire/openai/content-parts.js'

const MAX_ID = 512

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
    image: ['input_image', imagePart],
    file: ['input_file', filePart],
  })
}

/** The parts of an assistant message: text, and refusals (text for the next turn). */
export function assistantParts(value: Content, path: string): TextPart[] {
  return decodeParts<TextPart>(value, path, (item, at) => {
    const type = oneOf(item['type'], `${at}.type`, ['output_text', 'refusal', 'input_text', 'text'])
    return decodeTextPart(item, type === 'refusal' ? 'refusal' : 'text', at)
  })
}

function imagePart(item: JsonObject, path: string): ImagePart {
  const { image_url: url, file_id: id, detail } = item
  if (!given(url) && !given(id)) refuse(path, 'must have image_url or file_id')
  const part: ImagePart = {
    type: 'image',
    source: given(url)
      ? decodeMediaUrl(string(url, `${path}.image_url`), `${path}.image_url`)
      : { kind: 'file-id', id: text(id, `${path}.file_id`, MAX_ID) },
  }
  if (given(detail)) {
    part.detail = oneOf(detail, `${path}.detail`, ['auto', 'low', 'high', 'original'])
  }
  return part
}

function filePart(item: JsonObject, path: string): FilePart {
  const part: FilePart = { type: 'file', source: fileSource(item, path) }
  if (given(item['filename'])) part.filename = text(item['filename'], `${path}.filename`, 1_024)
  return part
}

function fileSource(item: JsonObject, path: string): FilePart['source'] {
  const { file_id: id, file_url: url, file_data: data } = item
  if (given(id)) return { kind: 'file-id', id: text(id, `${path}.file_id`, MAX_ID) }
  if (given(url)) return decodeMediaUrl(string(url, `${path}.file_url`), `${path}.file_url`)
  if (!given(data)) refuse(path, 'must have file_data, file_url or file_id')
  return decodeMediaUrl(string(data, `${path}.file_data`), `${path}.file_data`)
}
