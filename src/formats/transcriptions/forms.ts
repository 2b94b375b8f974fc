/**
 * OpenAI's form of transcriptions, which Azure, Groq and hosts of open models have too.
 *
 * Sources, read 2026-11-29: OpenAI API reference, "Create transcription"; Groq, "Speech to text"; vLLM,
 * "OpenAI-Compatible Server".
 */
import { arrayOf, isObject, numberOf, stringOf, type JsonObject } from '../../base/json.js'
import type { MediaEvent, MediaReader } from '../chat/media-event.js'
import { transcribeTaskOf, type Segment, type TranscribeTask } from '../chat/task.js'
import type { FormRewrite } from '../chat/upload.js'
import type { Usage } from '../chat/usage.js'
import type { TaskForm } from '../dialect.js'
import { errorIn } from '../wire/error-text.js'
import { mediaUsage } from '../wire/media/media-usage.js'
import { decodeErrorPayload } from '../wire/openai/decode-error.js'

/** The format that an upstream is requested to answer in: one with usage. Subtitles need segments. */
const ANSWERED_AS: Readonly<Record<string, string>> = {
  text: 'json',
  srt: 'verbose_json',
  vtt: 'verbose_json',
}

/** A form of OpenAI with this path. */
function openaiForm(path: string): TaskForm {
  return {
    path: () => path,
    basePath: (base) => base,
    encode: () => ({}),
    encodeForm: (request) => rewriteFor(transcribeTaskOf(request), request.model),
    newReader: () => new TranscriptReader(),
    read: ({ body }) => {
      if (!isObject(body)) return null
      const text = stringOf(body['text'])
      if (text === undefined) {
        const error = errorIn(body)
        return error === null ? null : decodeErrorPayload(error)
      }
      const segments = arrayOf(body['segments']).filter(isObject).flatMap(segmentOf)
      const language = stringOf(body['language']) ?? null
      return { kind: 'transcriptions', text, segments, language, usage: usageOf(body), model: null }
    },
  }
}

/** `POST /audio/transcriptions` of OpenAI. */
export const transcriptions = openaiForm('/audio/transcriptions')
/** `POST /audio/translations` of OpenAI. */
export const translations = openaiForm('/audio/translations')

/** The client's parts in their order, with the target's model and a format that has usage. */
function rewriteFor({ texts }: TranscribeTask, model: string): FormRewrite {
  const judged = new Map(texts.map(({ at, text }) => [at, text]))
  return {
    added: [],
    changed: ['model', 'response_format'],
    field: ({ name, value }, at) => {
      if (name === 'model') return { name, value: model }
      if (name === 'response_format') return { name, value: ANSWERED_AS[value] ?? value }
      return { name, value: judged.get(at) ?? value }
    },
  }
}

function segmentOf(segment: JsonObject): Segment[] {
  const [start, end] = [numberOf(segment['start']), numberOf(segment['end'])]
  const text = stringOf(segment['text'])
  return start === undefined || end === undefined || text === undefined ? [] : [{ start, end, text }]
}

/** The usage; of a verbose reply without one, its duration. */
function usageOf(body: JsonObject): Usage {
  const usage = mediaUsage(body)
  const seconds = numberOf(body['duration'])
  const isCounted = usage.input !== undefined || usage.units !== undefined
  if (isCounted) return allSound(usage)
  return seconds === undefined || seconds <= 0 ? usage : { ...usage, units: { audio_second: seconds } }
}

/** Prompt tokens are sound unless the upstream counts the kinds apart. */
function allSound(usage: Usage): Usage {
  const { input, inputText, inputAudio } = usage
  return input === undefined || (inputText ?? inputAudio) !== undefined
    ? usage
    : { ...usage, inputAudio: input }
}

/** Reads `transcript.text.delta`, `….segment` and `….done`, which is the end. */
class TranscriptReader implements MediaReader {
  readonly model = null

  frame(body: JsonObject): readonly MediaEvent[] {
    const { type } = body
    if (type === 'transcript.text.delta' || type === 'transcript.text.segment') {
      return [{ type: 'message', body }]
    }
    if (type === 'transcript.text.done') {
      return [
        { type: 'message', body },
        { type: 'done', usage: usageOf(body) },
      ]
    }
    const error = errorIn(body)
    return error === null ? [] : [{ type: 'error', error: decodeErrorPayload(error) }]
  }

  end(): readonly MediaEvent[] {
    return []
  }
}
