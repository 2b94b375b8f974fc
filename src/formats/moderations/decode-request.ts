/**
 * Requests for OpenAI's moderations, from clients.
 *
 * Source: OpenAI API reference, "Create moderation", and the SDK's types, read 2026-11-29.
 */
import type { JsonObject, JsonValue } from '../../base/json.js'
import type { ChatRequest, UserPart } from '../chat/request.js'
import type { ModeratedPart, ModerateTask } from '../chat/task.js'
import { array, boolean, given, object, oneOf, refuse, string } from '../wire/json/check-fields.js'
import { modelOf, refuseForbidden } from '../wire/request-fields.js'

/** The model of requests that name none. */
const DEFAULT_MODEL = 'omni-moderation-latest'
/** Far above the vendors' limits. */
const MAX_INPUTS = 10_000
const KNOWN = new Set(['model', 'input', 'stream'])

/** The model of a request, which may be absent. */
export function moderationModelOf(body: JsonObject): string {
  return given(body['model']) ? modelOf(body) : DEFAULT_MODEL
}

/** Decodes a request. Throws `malformed_request` naming the field that breaks a rule. */
export function decodeModeration(body: JsonObject): ChatRequest {
  const rest: Record<string, JsonValue> = {}
  for (const [key, value] of Object.entries(body)) {
    refuseForbidden(key)
    if (!KNOWN.has(key) && given(value)) rest[key] = value
  }
  if (given(body['stream']) && boolean(body['stream'], 'stream')) {
    refuse('stream', 'must be false: moderations are not streamed')
  }
  const task = taskOf(body['input'])
  const parts = task.inputs
    .flat()
    .map((part): UserPart =>
      part.type === 'text'
        ? { type: 'text', text: part.text }
        : { type: 'image', source: sourceOf(part.url) },
    )
  return {
    model: moderationModelOf(body),
    messages: [{ role: 'user', index: 0, parts }],
    stream: false,
    includeUsage: false,
    tools: [],
    maxOutputTokens: 0,
    rest,
    task,
  }
}

/** One text, several texts, or the parts of one input. */
function taskOf(input: JsonValue | undefined): ModerateTask {
  const kind = 'moderations'
  if (typeof input === 'string') return { kind, inputs: [[{ type: 'text', text: input }]], isSingle: true }
  const list = array(input, 'input', MAX_INPUTS)
  const [first] = list
  if (first === undefined) refuse('input', 'must not be empty')
  if (typeof first !== 'string') return { kind, inputs: [list.map(partOf)], isSingle: false }
  const inputs = list.map((each, at): ModeratedPart[] => {
    return [{ type: 'text', text: string(each, `input[${at}]`) }]
  })
  return { kind, inputs, isSingle: false }
}

function partOf(value: JsonValue, at: number): ModeratedPart {
  const path = `input[${at}]`
  const part = object(value, path)
  if (oneOf(part['type'], `${path}.type`, ['text', 'image_url']) === 'text') {
    return { type: 'text', text: string(part['text'], `${path}.text`) }
  }
  const { url } = object(part['image_url'], `${path}.image_url`)
  return { type: 'image', url: string(url, `${path}.image_url.url`) }
}

function sourceOf(url: string): Extract<UserPart, { type: 'image' }>['source'] {
  const [, mediaType, data] = /^data:([^;,]{1,100});base64,(.*)$/s.exec(url) ?? []
  return mediaType === undefined || data === undefined
    ? { kind: 'url', url }
    : { kind: 'base64', mediaType, data }
}
