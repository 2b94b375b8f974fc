/**
 * Requests for OpenAI's pictures, from clients: JSON, and for edits multipart forms too.
 *
 * Source: OpenAI API reference, "Create image" and "Create image edit", and the types of its SDK, read
 * 2026-11-29.
 */
import { isObject, type JsonObject, type JsonValue } from '../../base/json.js'
import type { ChatRequest, UserPart } from '../chat/request.js'
import type { DrawTask } from '../chat/task.js'
import type { UploadPart } from '../chat/upload.js'
import { decodeMediaUrl } from '../wire/inline-media.js'
import { array, given, integer, object, oneOf, refuse, string, text } from '../wire/json/check-fields.js'
import { fieldName, filesOfForm } from '../wire/media/form-fields.js'
import { modelOf, refuseForbidden, streamOf } from '../wire/request-fields.js'

const MAX_PROMPT_CHARS = 32_000
const MAX_PICTURES = 10
const MAX_PARTIAL = 3
const MAX_SOURCES = 16
/** Members of JSON with a picture besides those that are changed. */
const OTHER_SOURCES = ['mask', 'markup'] as const

/** Decodes a request. Throws `malformed_request` naming the field that breaks a rule. */
export function decodePictures(body: JsonObject): ChatRequest {
  const fields = fieldsOf(body)
  return requestFor(body, { kind: 'images', ...optionsOf(body), fields }, [])
}

/**
 * Decodes a request for an edit; `form`: its parts, absent for a body of JSON. Throws as `decodePictures`.
 */
export function decodePictureEdit(body: JsonObject, form?: readonly UploadPart[]): ChatRequest {
  if (form === undefined) {
    const pictures = array(body['images'], 'images', MAX_SOURCES)
    if (pictures.length === 0) refuse('images', 'must not be empty')
    const task = { kind: 'image_edits' as const, ...optionsOf(body), fields: fieldsOf(body) }
    const parts = pictures.flatMap((picture, at) => pictureIn(picture, `images[${at}]`))
    const others = OTHER_SOURCES.flatMap((name) => {
      const value = body[name]
      return isObject(value) ? pictureIn(value, name) : []
    })
    return requestFor(body, task, [...parts, ...others])
  }
  const files = filesOfForm(form)
  const pictures = files.filter(({ name }) => fieldName(name) === 'image')
  const others = files.filter((file) => !pictures.includes(file))
  if (pictures.length === 0) refuse('image', 'must be a file')
  if (pictures.length > MAX_SOURCES) refuse('image', `must be at most ${MAX_SOURCES} files`)
  const named = new Map(others.map(({ name, file }) => [name, file.name]))
  if (named.size < others.length) refuse(twiceIn(others), 'must not occur twice')
  const typed = withNumbers(body)
  const fields = { ...fieldsOf(typed), ...Object.fromEntries(named) }
  const task = { kind: 'image_edits' as const, ...optionsOf(typed), fields, parts: form }
  // Masks are read, and billed, as the pictures.
  const parts = [...pictures, ...others].map(({ file: { type, bytes } }): UserPart => {
    const mediaType = type === '' ? 'image/png' : type
    return { type: 'image', source: { kind: 'base64', mediaType, data: bytes.toString('base64') } }
  })
  return requestFor(typed, task, parts)
}

function requestFor(body: JsonObject, task: DrawTask, pictures: readonly UserPart[]): ChatRequest {
  return {
    model: modelOf(body),
    messages: [{ role: 'user', index: 0, parts: [...pictures, { type: 'text', text: task.prompt }] }],
    stream: streamOf(body),
    includeUsage: false,
    tools: [],
    rest: {},
    task,
  }
}

function fieldsOf(body: JsonObject): Record<string, JsonValue> {
  const fields: Record<string, JsonValue> = {}
  for (const [key, value] of Object.entries(body)) {
    refuseForbidden(key)
    if (key !== 'model' && key !== 'prompt' && given(value)) fields[key] = value
  }
  return fields
}

function optionsOf(body: JsonObject): Omit<DrawTask, 'kind' | 'fields'> {
  const { n, size, quality, partial_images: partial } = body
  return {
    prompt: text(body['prompt'], 'prompt', MAX_PROMPT_CHARS),
    count: given(n) ? integer(n, 'n', { min: 1, max: MAX_PICTURES }) : 1,
    partial: given(partial) ? integer(partial, 'partial_images', { min: 0, max: MAX_PARTIAL }) : 0,
    size: given(size) ? string(size, 'size') : 'auto',
    quality: given(quality) ? string(quality, 'quality') : 'auto',
  }
}

/** A picture of a body of JSON; a file at the vendor has no bytes here. */
function pictureIn(value: JsonValue, path: string): UserPart[] {
  const { image_url: url, file_id: id } = object(value, path)
  if (!given(url)) {
    const known = string(id, given(id) ? `${path}.file_id` : `${path}.image_url`)
    return [{ type: 'image', source: { kind: 'file-id', id: known } }]
  }
  return [{ type: 'image', source: decodeMediaUrl(string(url, `${path}.image_url`), `${path}.image_url`) }]
}

/** Fields of a form are texts. */
function withNumbers(body: JsonObject): JsonObject {
  const typed: Record<string, JsonValue> = { ...body } as Record<string, JsonValue>
  for (const name of ['n', 'partial_images']) {
    const value = body[name]
    if (typeof value === 'string' && /^\d{1,3}$/.test(value)) typed[name] = Number(value)
  }
  const { stream } = body
  if (given(stream)) {
    typed['stream'] = oneOf(stream, 'stream', ['true', 'false', 'True', 'False']).toLowerCase() === 'true'
  }
  return typed
}

function twiceIn(files: readonly { readonly name: string }[]): string {
  return files.find(({ name }, at) => files.findIndex((file) => file.name === name) < at)?.name ?? 'file'
}
