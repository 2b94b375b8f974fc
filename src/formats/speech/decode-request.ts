/**
 * Requests for OpenAI's speech, from clients.
 *
 * Source: OpenAI API reference, "Create speech", and the types of its SDK, read 2026-11-29.
 */
import { isObject, type JsonObject, type JsonValue } from '../../base/json.js'
import type { ChatRequest } from '../chat/request.js'
import { SOUND_FORMATS, textsOfTask, type SpeechTask } from '../chat/task.js'
import { given, number, oneOf, refuse, string } from '../wire/json/check-fields.js'
import { modelOf, refuseForbidden } from '../wire/request-fields.js'

/** OpenAI's format of requests that name none. */
const DEFAULT_FORMAT = 'mp3'
const SPEEDS = { min: 0.25, max: 4 }
const KNOWN = new Set([
  'model',
  'input',
  'voice',
  'instructions',
  'response_format',
  'speed',
  'stream_format',
])

/** Whether the client reads events instead of the bytes of the sound. */
export function readsEvents(body: JsonObject): boolean {
  const format = body['stream_format']
  return given(format) && oneOf(format, 'stream_format', ['audio', 'sse']) === 'sse'
}

/** Decodes a request. Throws `malformed_request` naming the field that breaks a rule. */
export function decodeSpeech(body: JsonObject): ChatRequest {
  const rest: Record<string, JsonValue> = {}
  for (const [key, value] of Object.entries(body)) {
    refuseForbidden(key)
    if (!KNOWN.has(key) && given(value)) rest[key] = value
  }
  const task = taskOf(body)
  return {
    model: modelOf(body),
    messages: [{ role: 'user', index: 0, parts: textsOfTask(task).map((text) => ({ type: 'text', text })) }],
    stream: readsEvents(body),
    includeUsage: false,
    tools: [],
    rest,
    task,
  }
}

function taskOf(body: JsonObject): SpeechTask {
  const { input, voice, instructions, speed } = body
  const format = body['response_format']
  const text = string(input, 'input')
  if (text === '') refuse('input', 'must not be empty')
  return {
    kind: 'speech',
    input: text,
    voice: isObject(voice) ? { id: string(voice['id'], 'voice.id') } : { name: string(voice, 'voice') },
    format: given(format) ? oneOf(format, 'response_format', SOUND_FORMATS) : DEFAULT_FORMAT,
    ...(given(instructions) && { instructions: string(instructions, 'instructions') }),
    ...(given(speed) && { speed: number(speed, 'speed', SPEEDS) }),
  }
}
