/**
 * The forms in which upstreams make speech.
 *
 * Sources, read 2026-11-29: OpenAI API reference, "Create speech"; Mistral API, "Speech"; the
 * types of their SDKs. Gemini's form is in `gemini/speech.ts`.
 */
import { isObject, stringOf, type JsonObject } from '../../base/json.js'
import type { MediaEvent, MediaReader } from '../chat/media-event.js'
import type { SoundFormat } from '../chat/task.js'
import type { TaskForm } from '../dialect.js'
import { errorIn } from '../wire/error-text.js'
import type { Usage } from '../chat/usage.js'
import { allOfKind, mediaUsage } from '../wire/media/media-usage.js'
import { checkSoundFormat, dropSpeechOptions, speechTaskOf } from '../wire/media/sound.js'
import { decodeErrorPayload } from '../wire/openai/decode-error.js'

/** Models whose tokens of sound are only counted in events (OpenAI API reference, `stream_format`). */
const COUNTS_IN_EVENTS = /^gpt-/

/** `POST /audio/speech` of OpenAI. */
export const openai: TaskForm = {
  path: () => '/audio/speech',
  basePath: (base) => base,
  encode: (request) => {
    const { input, voice, instructions, format, speed } = speechTaskOf(request)
    return {
      ...request.rest,
      model: request.model,
      input,
      voice: 'id' in voice ? { id: voice.id } : voice.name,
      ...(instructions !== undefined && { instructions }),
      response_format: format,
      ...(speed !== undefined && { speed }),
      ...((request.stream || COUNTS_IN_EVENTS.test(request.model)) && { stream_format: 'sse' }),
    }
  },
  edits: (body, modelName) =>
    COUNTS_IN_EVENTS.test(modelName) && body['stream_format'] !== 'sse'
      ? [{ key: 'stream_format', json: '"sse"' }]
      : [],
  newReader: () => new SpeechReader('audio'),
  // The sound is no JSON.
  read: ({ body }) => {
    const error = isObject(body) ? errorIn(body) : null
    return error === null ? null : decodeErrorPayload(error)
  },
}

const MISTRAL_FORMATS: readonly SoundFormat[] = ['pcm', 'wav', 'mp3', 'flac', 'opus']

/** `POST /audio/speech` of Mistral: JSON with the sound as base64. */
export const mistral: TaskForm = {
  path: () => '/audio/speech',
  basePath: (base) => base,
  encode: (request, losses) => {
    const { input, voice, format } = speechTaskOf(request)
    dropSpeechOptions(request, losses)
    checkSoundFormat(format, MISTRAL_FORMATS, 'Mistral')
    return {
      model: request.model,
      input,
      voice_id: 'id' in voice ? voice.id : voice.name,
      response_format: format,
      ...(request.stream && { stream: true }),
    }
  },
  newReader: () => new SpeechReader('audio_data'),
  read: ({ body }, request) => {
    if (!isObject(body)) return null
    const data = stringOf(body['audio_data'])
    if (data === undefined) {
      const error = errorIn(body)
      return error === null ? null : decodeErrorPayload(error)
    }
    const { format } = speechTaskOf(request)
    const usage = soundUsage(body)
    const sound = Buffer.from(data, 'base64')
    return { kind: 'speech', sound, format, usage, model: stringOf(body['model']) ?? null }
  },
}

/** Reads `speech.audio.delta` and `speech.audio.done`, which is the end. */
class SpeechReader implements MediaReader {
  readonly model = null
  private readonly member: string

  /** `member`: the member with the sound. */
  constructor(member: 'audio' | 'audio_data') {
    this.member = member
  }

  frame(body: JsonObject): readonly MediaEvent[] {
    const data = stringOf(body[this.member])
    if (body['type'] === 'speech.audio.delta') {
      return data === undefined ? [] : [{ type: 'sound', data: Buffer.from(data, 'base64') }]
    }
    if (body['type'] === 'speech.audio.done') return [{ type: 'done', usage: soundUsage(body) }]
    const error = errorIn(body)
    return error === null ? [] : [{ type: 'error', error: decodeErrorPayload(error) }]
  }

  end(): readonly MediaEvent[] {
    return []
  }
}

function soundUsage(body: JsonObject): Usage {
  return allOfKind(mediaUsage(body), 'outputAudio')
}
