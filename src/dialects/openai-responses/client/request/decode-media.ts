/**
 * Decodes the images and files of an input item; `wire/decode-data-url.ts` decodes their `data:` and web
 * URLs.
 *
 * Source: OpenAI API reference, "Create a model response", `input`, read 2026-11-20.
 */
import type { JsonObject } from '../../../../chat/json.js'
import type { FilePart, ImagePart } from '../../../../chat/request.js'
import { given, oneOf, refuse, string, text } from '../../../../wire/json/check-fields.js'
import { decodeMediaUrl } from '../../../../wire/decode-data-url.js'

const MAX_ID = 512

/** An `input_image` part. */
export function decodeImage(item: JsonObject, path: string): ImagePart {
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

/** An `input_file` part. */
export function decodeFile(item: JsonObject, path: string): FilePart {
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
