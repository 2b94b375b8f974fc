/** The fields of a multipart form as the members of a body. */
import type { JsonObject, JsonValue } from '../../../base/json.js'
import type { UploadPart } from '../../chat/upload.js'
import { refuse, string } from '../json/check-fields.js'

/** Lists are the fields with brackets, and those that OpenAI's formats name. */
const LISTS: ReadonlySet<string> = new Set([
  'timestamp_granularities',
  'include',
  'languages',
  'keywords',
  'known_speaker_names',
  'known_speaker_references',
])

/** The name of a field, without the brackets of a list. */
export function fieldName(name: string): string {
  return name.replace(/\[\]$/, '')
}

/** The fields without the files. Throws `malformed_request` for one that occurs twice and is no list. */
export function fieldsOfForm(parts: readonly UploadPart[]): JsonObject {
  const body: Record<string, JsonValue> = {}
  for (const part of parts) {
    const name = fieldName(part.name)
    if ('file' in part) continue
    const known = body[name]
    if (LISTS.has(name)) body[name] = Array.isArray(known) ? [...known, part.value] : [part.value]
    else if (known !== undefined) refuse(name, 'must not occur twice')
    else body[name] = string(part.value, name)
  }
  return body
}

/** The files of a form with the names of their fields. */
type FilePart = Extract<UploadPart, { readonly file: unknown }>

export function filesOfForm(parts: readonly UploadPart[]): FilePart[] {
  return parts.flatMap((part) => ('file' in part ? [part] : []))
}

/** The parts in the order of the client, with other values of the fields named. */
export function withFields(
  parts: readonly UploadPart[],
  values: Readonly<Record<string, string>>,
): UploadPart[] {
  return parts.map((part) => {
    if ('file' in part) return part
    const value = Object.hasOwn(values, part.name) ? values[part.name] : undefined
    return value === undefined ? part : { name: part.name, value }
  })
}
