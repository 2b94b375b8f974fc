/**
 * Speech by Gemini's models that make sound.
 *
 * Source: Gemini API, "Speech generation", and the types of @google/genai 3.3.0, read 2026-11-29.
 */
import { isObject, objectOf, stringOf, type JsonObject } from '../../base/json.js'
import type { WireError } from '../../errors.js'
import type { MediaEvent, MediaReader } from '../chat/media-event.js'
import type { ChatRequest } from '../chat/request.js'
import type { SoundFormat, SpeechTask, TaskResult } from '../chat/task.js'
import type { Losses, TaskForm } from '../dialect.js'
import { refused } from '../wire/json/check-fields.js'
import { allOfKind } from '../wire/media/media-usage.js'
import { checkSoundFormat, dropSpeechOptions, speechTaskOf, wavHeader, wavOf } from '../wire/media/sound.js'
import { geminiVoiceLike, isGeminiVoice } from '../wire/media/voices.js'
import { MALFORMED_REPLY } from '../wire/upstream-errors.js'
import { endOfReply, partsOfReply, refusalOf, usageOfReply } from './media-reply.js'
import { decodeStreamError } from './upstream/decode-error.js'
import { target } from './upstream/request-path.js'

/** Types of sound that newer models make; all make samples of 16 bits. */
const MIME_TYPES: Partial<Record<SoundFormat, string>> = { mp3: 'audio/mp3', opus: 'audio/ogg_opus' }
const SAMPLES: readonly SoundFormat[] = ['wav', 'pcm']
/** Models that make samples only. */
const SAMPLES_ONLY = /^gemini-[12]\b/

/** `generateContent` of Gemini's models for speech. */
export const geminiSpeech: TaskForm = {
  path: (model, stream) => target(model, stream).path,
  basePath: (base) => base,
  encode: (request, losses) => {
    const { input, voice, format } = speechTaskOf(request)
    dropSpeechOptions(request, losses)
    checkSoundFormat(format, ['mp3', 'opus', ...SAMPLES], 'Gemini')
    const mimeType = MIME_TYPES[format]
    if (mimeType !== undefined && SAMPLES_ONLY.test(request.model)) {
      checkSoundFormat(format, SAMPLES, `The model ${request.model}`)
    }
    const voiceName = geminiVoice(voice, losses)
    return {
      contents: [{ role: 'user', parts: [{ text: input }] }],
      generationConfig: {
        responseModalities: ['AUDIO'],
        speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName } } },
        ...(mimeType !== undefined && { responseFormat: [{ audio: { mimeType } }] }),
      },
    }
  },
  newReader: (request) => new GeminiSpeechReader(speechTaskOf(request).format),
  read: ({ body }, request) => (isObject(body) ? readGemini(body, request) : null),
}

function geminiVoice(voice: SpeechTask['voice'], losses: Losses): string {
  const name = 'id' in voice ? null : voice.name
  if (name !== null && isGeminiVoice(name)) return name
  const similar = name === null ? undefined : geminiVoiceLike(name)
  if (similar === undefined) {
    throw refused('voice', "Gemini has no such voice. Use a voice of Gemini's, such as Kore, or OpenAI's.")
  }
  losses.drop('voice', 'approximated')
  return similar
}

function readGemini(body: JsonObject, request: ChatRequest): TaskResult | WireError | null {
  const { error } = body
  if (isObject(error)) return decodeStreamError(error)
  const parts = partsOfReply(body)
  const chunks = parts.map(soundIn).filter((sound) => sound !== null)
  const [first] = chunks
  if (first === undefined) return refusalOf(body)
  const { format } = speechTaskOf(request)
  const sound = soundAs(format, { data: Buffer.concat(chunks.map(({ data }) => data)), type: first.type })
  if (sound === null) return null
  const model = stringOf(body['modelVersion']) ?? null
  return { kind: 'speech', sound, format, usage: allOfKind(usageOfReply(body), 'outputAudio'), model }
}

/** Sound with its type. */
interface Sound {
  readonly data: Buffer
  /** With its parameters: `audio/L16;codec=pcm;rate=24000`. */
  readonly type: string
}

/** The sound of a part of a reply; null if it has none. */
function soundIn(part: JsonObject): Sound | null {
  const inline = objectOf(part['inlineData'] ?? part['inline_data'])
  const type = stringOf(inline['mimeType'] ?? inline['mime_type'])
  const data = stringOf(inline['data'])
  if (type === undefined || data === undefined || !type.startsWith('audio/')) return null
  return { data: Buffer.from(data, 'base64'), type }
}

const IS_SAMPLES = /^audio\/(?:l16|pcm)\b/i
const USUAL_RATE = 24_000

/** The sound in the format of the request; null if it is of another one. */
function soundAs(format: SoundFormat, { data, type }: Sound): Buffer | null {
  if (!SAMPLES.includes(format)) return IS_SAMPLES.test(type) ? null : data
  if (!IS_SAMPLES.test(type)) return format === 'wav' && /^audio\/(?:x-)?wav\b/i.test(type) ? data : null
  return format === 'wav' ? wavOf(data, rateOf(type)) : data
}

function rateOf(type: string): number {
  return Number(/rate=(\d{1,6})/.exec(type)?.[1] ?? USUAL_RATE)
}

/** Reads chunks of sound; the reply is complete after a reason for its end. */
class GeminiSpeechReader implements MediaReader {
  model: string | null = null
  private readonly format: SoundFormat
  private last: JsonObject = {}
  private hasEnded = false
  private hasBegun = false

  constructor(format: SoundFormat) {
    this.format = format
  }

  frame(body: JsonObject): readonly MediaEvent[] {
    if (isObject(body['error'])) return [{ type: 'error', error: decodeStreamError(body['error']) }]
    this.model = stringOf(body['modelVersion']) ?? this.model
    if (body['usageMetadata'] !== undefined) this.last = body
    const refusal = refusalOf(body)
    if (refusal !== null) return [{ type: 'error', error: refusal }]
    this.hasEnded ||= endOfReply(body) !== null
    return partsOfReply(body).flatMap((part): MediaEvent[] => {
      const sound = soundIn(part)
      if (sound === null) return []
      const isWav = this.format === 'wav' && IS_SAMPLES.test(sound.type)
      const data = soundAs(isWav ? 'pcm' : this.format, sound)
      if (data === null) return [{ type: 'error', error: MALFORMED_REPLY }]
      const isFirst = isWav && !this.hasBegun
      this.hasBegun = true
      const whole = isFirst ? Buffer.concat([wavHeader(rateOf(sound.type), null), data]) : data
      return [{ type: 'sound', data: whole }]
    })
  }

  end(): readonly MediaEvent[] {
    return this.hasEnded ? [{ type: 'done', usage: allOfKind(usageOfReply(this.last), 'outputAudio') }] : []
  }
}
