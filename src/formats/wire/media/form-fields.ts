/** The fields of a multipart form as the members of a body. */
import type { JsonObject, JsonValue } from '../../../base/json.js'
import type { FormRewrite, UploadPart } from '../../chat/upload.js'
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

/** Whether the field may occur several times. */
export function isListField(name: string): boolean {
  return LISTS.has(name) || name === 'image'
}

/** The name of a field; of a list without its brackets, which name no other field. */
export function fieldName(name: string): string {
  const bare = name.replace(/\[\]$/, '')
  return isListField(bare) ? bare : name
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

/** The parts for an upstream. */
export function rewrittenParts(parts: readonly UploadPart[], rewrite: FormRewrite): UploadPart[] {
  const own = parts.flatMap((part, at): UploadPart[] => {
    const kept = 'file' in part ? part : rewrite.field(part, at)
    return kept === null ? [] : [kept]
  })
  return [...rewrite.added, ...own, ...(rewrite.files ?? [])]
}

/** The form with other values of the fields named. */
export function withFields(values: Readonly<Record<string, string>>): FormRewrite {
  return {
    added: [],
    changed: Object.keys(values),
    field: (field) => {
      const value = Object.hasOwn(values, field.name) ? values[field.name] : undefined
      return value === undefined ? field : { name: field.name, value }
    },
  }
}
