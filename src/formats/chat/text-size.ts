/**
 * The amount of text in a request, without inline images, files and audio. Adds string lengths (UTF-16 units)
 * and reads no character, because a request may have 32 MiB.
 */
import type { JsonValue } from '../../base/json.js'
import type { AssistantPart, ChatRequest, UserPart } from './request.js'

/** UTF-16 units of all text in the request; for a text file, the number of its bytes. */
export function textUnits(request: ChatRequest): number {
  let units = unitsIn(request.rest) + unitsIn(request.stop ?? [])
  for (const message of request.messages) {
    for (const part of message.parts) units += unitsOf(part)
    if (message.role !== 'assistant') continue
    for (const call of message.toolCalls) units += call.arguments.length + (call.signature?.length ?? 0)
  }
  for (const { description = '', parameters = {}, custom = {} } of request.tools) {
    units += description.length + unitsIn(parameters) + unitsIn(custom.format ?? {})
  }
  const format = request.responseFormat
  return format?.type === 'json-schema' ? units + unitsIn(format.schema) : units
}

function unitsOf(part: AssistantPart | UserPart): number {
  switch (part.type) {
    case 'text':
      return part.text.length + (part.signature?.length ?? 0)
    case 'thinking':
      return part.text.length + (part.signature?.length ?? 0) + (part.redacted?.length ?? 0)
    case 'opaque':
      return unitsIn(part.block)
    case 'file': {
      const { source } = part
      const isText = source.kind === 'base64' && source.mediaType.startsWith('text/')
      return isText ? (source.data.length * 3) / 4 : 0
    }
    case 'image':
    case 'audio':
      return 0
    default:
      return part satisfies never
  }
}

function unitsIn(value: JsonValue): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 0
  let units = 0
  for (const item of Array.isArray(value) ? value : Object.values(value)) {
    if (item !== undefined) units += unitsIn(item)
  }
  return units
}
