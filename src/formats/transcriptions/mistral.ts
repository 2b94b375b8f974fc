/**
 * Mistral's form of transcriptions.
 *
 * Source: Mistral API, "Audio Transcriptions", and the types of mistralai 3.7.0, read 2026-11-29.
 */
import { arrayOf, isObject, numberOf, stringOf, type JsonObject } from '../../base/json.js'
import type { MediaEvent, MediaReader } from '../chat/media-event.js'
import { transcribeTaskOf, type Segment, type TranscribeTask } from '../chat/task.js'
import type { FormField, FormRewrite } from '../chat/upload.js'
import type { Losses, TaskForm } from '../dialect.js'
import { errorIn } from '../wire/error-text.js'
import { refused } from '../wire/json/check-fields.js'
import { fieldName, fieldsOfForm } from '../wire/media/form-fields.js'
import { mediaUsage } from '../wire/media/media-usage.js'
import { decodeErrorPayload } from '../wire/openai/decode-error.js'

/** Mistral's names of fields; those without a row are lost, and null: made otherwise. */
const NAMES: Readonly<Record<string, string | null>> = {
  model: 'model',
  language: 'language',
  languages: 'language',
  keywords: 'context_bias',
  temperature: 'temperature',
  timestamp_granularities: 'timestamp_granularities',
  known_speaker_references: 'speaker_references',
  url: 'file_url',
  stream: 'stream',
  response_format: null,
}
/** Formats of replies that have segments. */
const WITH_SEGMENTS: ReadonlySet<string> = new Set(['srt', 'vtt', 'verbose_json'])

/** `POST /audio/transcriptions` of Mistral. */
export const mistral: TaskForm = {
  path: () => '/audio/transcriptions',
  basePath: (base) => base,
  encode: () => ({}),
  encodeForm: (request, losses) => rewriteFor(transcribeTaskOf(request), request.model, losses),
  newReader: () => new MistralReader(),
  read: ({ body }) => {
    if (!isObject(body)) return null
    const text = stringOf(body['text'])
    if (text === undefined) {
      const error = errorIn(body)
      return error === null ? null : decodeErrorPayload(error)
    }
    return {
      kind: 'transcriptions',
      text,
      segments: arrayOf(body['segments']).filter(isObject).flatMap(segmentOf),
      language: stringOf(body['language']) ?? null,
      usage: mediaUsage(body),
      model: stringOf(body['model']) ?? null,
    }
  },
}

function rewriteFor({ parts, texts, format }: TranscribeTask, model: string, losses: Losses): FormRewrite {
  const fields = fieldsOfForm(parts)
  if (arrayOf(fields['languages']).length > 1) {
    throw refused('languages', 'Mistral takes one language. Send one, or none.')
  }
  for (const name of Object.keys(fields)) {
    if (!Object.hasOwn(NAMES, name)) losses.drop(name, 'no-equivalent')
  }
  const judged = new Map(texts.map(({ at, text }) => [at, text]))
  const added: FormField[] = []
  if (format === 'diarized_json') added.push({ name: 'diarize', value: 'true' })
  if (WITH_SEGMENTS.has(format) && fields['timestamp_granularities'] === undefined) {
    added.push({ name: 'timestamp_granularities', value: 'segment' })
  }
  return {
    added,
    changed: null,
    field: (field, at) => {
      const own = fieldName(field.name)
      const name = Object.hasOwn(NAMES, own) ? NAMES[own] : null
      if (name === null || name === undefined) return null
      return { name, value: own === 'model' ? model : (judged.get(at) ?? field.value) }
    },
  }
}

function segmentOf(segment: JsonObject): Segment[] {
  const [start, end] = [numberOf(segment['start']), numberOf(segment['end'])]
  const [text, speaker] = [stringOf(segment['text']), stringOf(segment['speaker_id'])]
  if (start === undefined || end === undefined || text === undefined) return []
  return [{ start, end, text, ...(speaker !== undefined && { speaker }) }]
}

/** Reads Mistral's events; `transcription.done` is the end. */
class MistralReader implements MediaReader {
  model: string | null = null

  frame(body: JsonObject): readonly MediaEvent[] {
    const text = stringOf(body['text'])
    switch (body['type']) {
      case 'transcription.text.delta':
        return [{ type: 'message', body: { type: 'transcript.text.delta', delta: text ?? '' } }]
      case 'transcription.segment': {
        const segments = segmentOf(body)
        return segments.map((each) => ({
          type: 'message',
          body: { type: 'transcript.text.segment', ...each },
        }))
      }
      case 'transcription.done': {
        this.model = stringOf(body['model']) ?? null
        return [
          { type: 'transcript', text: text ?? '', usage: mediaUsage(body) },
          { type: 'done', usage: mediaUsage(body) },
        ]
      }
      default: {
        const error = errorIn(body)
        return error === null ? [] : [{ type: 'error', error: decodeErrorPayload(error) }]
      }
    }
  }

  end(): readonly MediaEvent[] {
    return []
  }
}
