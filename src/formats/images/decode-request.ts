/**
 * Requests for OpenAI's pictures, from clients.
 *
 * Source: OpenAI API reference, "Create image", and the types of its SDK, read 2026-11-29.
 */
import type { JsonObject, JsonValue } from '../../base/json.js'
import type { ChatRequest } from '../chat/request.js'
import type { DrawTask } from '../chat/task.js'
import { given, integer, string, text } from '../wire/json/check-fields.js'
import { modelOf, refuseForbidden, streamOf } from '../wire/request-fields.js'

const MAX_PROMPT_CHARS = 32_000
const MAX_PICTURES = 10
const MAX_PARTIAL = 3

/** Decodes a request. Throws `malformed_request` naming the field that breaks a rule. */
export function decodePictures(body: JsonObject): ChatRequest {
  const fields: Record<string, JsonValue> = {}
  for (const [key, value] of Object.entries(body)) {
    refuseForbidden(key)
    if (key !== 'model' && key !== 'prompt' && given(value)) fields[key] = value
  }
  const task = taskOf(body, fields)
  return {
    model: modelOf(body),
    messages: [{ role: 'user', index: 0, parts: [{ type: 'text', text: task.prompt }] }],
    stream: streamOf(body),
    includeUsage: false,
    tools: [],
    rest: {},
    task,
  }
}

function taskOf(body: JsonObject, fields: Readonly<Record<string, JsonValue>>): DrawTask {
  const { n, size, quality, partial_images: partial } = body
  return {
    kind: 'images',
    prompt: text(body['prompt'], 'prompt', MAX_PROMPT_CHARS),
    count: given(n) ? integer(n, 'n', { min: 1, max: MAX_PICTURES }) : 1,
    partial: given(partial) ? integer(partial, 'partial_images', { min: 0, max: MAX_PARTIAL }) : 0,
    size: given(size) ? string(size, 'size') : 'auto',
    quality: given(quality) ? string(quality, 'quality') : 'auto',
    fields,
  }
}
