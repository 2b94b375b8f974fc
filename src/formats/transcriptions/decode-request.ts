/**
 * Requests for OpenAI's transcriptions and translations of sound, from clients: multipart forms whose fields
 * may have any order.
 *
 * Source: OpenAI API reference, "Create transcription", and the types of its SDK, read 2026-11-29.
 */
import type { JsonObject } from '../../base/json.js'
import type { ChatRequest } from '../chat/request.js'
import { textsOfTask, type TranscribeTask } from '../chat/task.js'
import type { UploadedFile, UploadPart } from '../chat/upload.js'
import { given, oneOf, refuse } from '../wire/json/check-fields.js'
import { fieldName, filesOfForm } from '../wire/media/form-fields.js'
import { soundLength, UNKNOWN_LENGTH, type SoundLength } from '../wire/media/sound-length.js'
import { modelOf, refuseForbidden } from '../wire/request-fields.js'

const FORMATS = ['json', 'text', 'srt', 'verbose_json', 'vtt', 'diarized_json'] as const
/** Fields whose texts guardrails judge. */
const TEXTS: ReadonlySet<string> = new Set(['prompt', 'keywords', 'known_speaker_names'])

/** Whether the client requests events. */
export function readsTranscriptEvents(body: JsonObject): boolean {
  const { stream } = body
  return given(stream) && oneOf(stream, 'stream', ['true', 'false', 'True', 'False']).toLowerCase() === 'true'
}

/** Decodes a request. Throws `malformed_request` naming the field that breaks a rule. */
export function decodeTranscription(
  kind: TranscribeTask['kind'],
  body: JsonObject,
  parts: readonly UploadPart[],
): ChatRequest {
  for (const key of Object.keys(body)) refuseForbidden(key)
  const task = taskOf(kind, body, parts)
  return {
    model: modelOf(body),
    messages: [{ role: 'user', index: 0, parts: textsOfTask(task).map((text) => ({ type: 'text', text })) }],
    stream: kind === 'transcriptions' && readsTranscriptEvents(body),
    includeUsage: false,
    tools: [],
    rest: {},
    task,
  }
}

function lengthOf({ bytes, size = bytes.length }: UploadedFile): SoundLength {
  if (size === null) return UNKNOWN_LENGTH
  return soundLength({ size, read: (from, length) => bytes.subarray(from, from + length) })
}

function taskOf(
  kind: TranscribeTask['kind'],
  body: JsonObject,
  parts: readonly UploadPart[],
): TranscribeTask {
  const files = filesOfForm(parts)
  const [first] = files
  const isByUrl = given(body['url'])
  if (first === undefined && !isByUrl) refuse('file', 'must be a file')
  if (files.length > 1) refuse(files[1]?.name ?? 'file', 'is a second file: send one')
  const { response_format: format } = body
  return {
    kind,
    parts,
    texts: parts.flatMap((part, at) =>
      'value' in part && TEXTS.has(fieldName(part.name)) ? [{ at, text: part.value }] : [],
    ),
    format: given(format) ? oneOf(format, 'response_format', FORMATS) : 'json',
    length: first === undefined ? UNKNOWN_LENGTH : lengthOf(first.file),
  }
}
