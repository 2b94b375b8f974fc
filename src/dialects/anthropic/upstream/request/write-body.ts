/**
 * Serializes a body to the same bytes as `stringifyExact` in a third of the time. Turns of text, the usual
 * case, are concatenated here; all other values may contain exact numbers and use `stringifyExact`.
 */
import { isObject, type JsonObject, type JsonValue } from '../../../../chat/json.js'
import { stringifyExact } from '../../../../wire/json/exact-numbers.js'
import { TextSizer, type SizedText } from '../../../../wire/frames/sized-text.js'

/** The JSON text of a body. */
export function write(body: JsonObject): SizedText {
  const sizer = new TextSizer()
  let text = ''
  for (const name in body) {
    const value = body[name]
    if (value === undefined) continue
    text += `${text === '' ? '{' : ','}${memberText(name, value, sizer)}`
  }
  return sizer.whole(text === '' ? '{}' : `${text}}`)
}

function memberText(name: string, value: JsonValue, sizer: TextSizer): string {
  switch (name) {
    case 'model':
      if (typeof value === 'string') return `"model":${sizer.name(value)}`
      break
    case 'system':
      if (Array.isArray(value)) return `"system":[${itemsText(value, blockText, sizer)}]`
      break
    case 'messages':
      if (Array.isArray(value)) return `"messages":[${itemsText(value, messageText, sizer)}]`
      break
    case 'max_tokens':
      if (typeof value === 'number' && Number.isInteger(value)) return `"max_tokens":${value}`
      break
    default:
  }
  return `${sizer.quoted(name)}:${sizer.part(stringifyExact(value))}`
}

/** The JSON text of the items of a list, without brackets. */
function itemsText(
  items: readonly JsonValue[],
  itemText: (item: JsonValue, sizer: TextSizer) => string,
  sizer: TextSizer,
): string {
  let text = ''
  for (let at = 0; at < items.length; at += 1) {
    const item = items[at] ?? null
    text += at === 0 ? itemText(item, sizer) : `,${itemText(item, sizer)}`
  }
  return text
}

function messageText(message: JsonValue, sizer: TextSizer): string {
  if (isObject(message) && hasOnly(message, 'role', 'content')) {
    const { role, content } = message
    if (typeof role === 'string' && Array.isArray(content)) {
      return `{"role":${sizer.name(role)},"content":[${itemsText(content, blockText, sizer)}]}`
    }
  }
  return sizer.part(stringifyExact(message))
}

function blockText(block: JsonValue, sizer: TextSizer): string {
  if (isObject(block) && hasOnly(block, 'type', 'text')) {
    const { type, text } = block
    if (type === 'text' && typeof text === 'string') {
      return `{"type":"text","text":${sizer.quoted(text)}}`
    }
  }
  return sizer.part(stringifyExact(block))
}

/** True if the object has exactly these two members, in this order. */
function hasOnly(object: JsonObject, first: string, second: string): boolean {
  let members = 0
  for (const name in object) {
    if (members > 1 || name !== (members === 0 ? first : second)) return false
    members += 1
  }
  return members === 2
}
