/**
 * Encodes the parts of user messages and tool results as content parts of an input item. Media that the
 * format has no part for is refused.
 *
 * Source: OpenAI API reference, "Create a model response", input items, read 2026-11-20.
 */
import type { JsonObject } from '../../../../chat/json.js'
import type { FilePart, ImagePart, UserPart } from '../../../../chat/request.js'
import { GatewayError } from '../../../../errors.js'

/**
 * One part. `index` is the index of its message, for errors. `marks`: the model accepts the breakpoints of
 * OpenAI's prompt cache. Throws `GatewayError(untranslatable)`.
 */
export function encodePart(part: UserPart, index: number, marks: boolean): JsonObject {
  const encoded = encodeContent(part, index)
  const breakpoint = part.type === 'audio' ? undefined : part.cache?.breakpoint
  if (marks && breakpoint !== undefined) {
    encoded['prompt_cache_breakpoint'] = { mode: 'explicit', ...breakpoint }
  }
  return encoded
}

function encodeContent(part: UserPart, index: number): JsonObject {
  switch (part.type) {
    case 'text':
      return { type: 'input_text', text: part.text }
    case 'image':
      refuseForeign(part, index)
      return image(part)
    case 'file':
      refuseForeign(part, index)
      return file(part)
    case 'audio':
      throw new GatewayError(
        'untranslatable',
        `messages[${index}].content: OpenAI's Responses API accepts no audio. Choose an audio model, which is served through chat completions.`,
        { param: `messages[${index}].content` },
      )
    default:
      return part satisfies never
  }
}

function refuseForeign({ source }: ImagePart | FilePart, index: number): void {
  if (source.kind !== 'file-id' || source.origin === undefined) return
  throw new GatewayError(
    'untranslatable',
    `messages[${index}].content: this upstream does not accept a file id of another provider. Send the data.`,
    { param: `messages[${index}].content` },
  )
}

function image({ source, detail }: ImagePart): JsonObject {
  const part: JsonObject = { type: 'input_image' }
  if (source.kind === 'file-id') part['file_id'] = source.id
  else if (source.kind === 'url') part['image_url'] = source.url
  else part['image_url'] = `data:${source.mediaType};base64,${source.data}`
  if (detail !== undefined) part['detail'] = detail
  return part
}

function file({ source, filename }: FilePart): JsonObject {
  if (source.kind === 'file-id') return { type: 'input_file', file_id: source.id }
  if (source.kind === 'url') return { type: 'input_file', file_url: source.url }
  return {
    type: 'input_file',
    filename: filename ?? fileName(source.mediaType),
    file_data: `data:${source.mediaType};base64,${source.data}`,
  }
}

/** A name for a file without one: the API requires a name, whose extension decides how the file is read. */
function fileName(mediaType: string): string {
  const extension = mediaType === 'text/plain' ? 'txt' : /\/([a-z0-9]{1,8})$/.exec(mediaType)?.[1]
  return `file.${extension ?? 'bin'}`
}
