/**
 * Chats with sound, at endpoints for transcriptions: Google's clients let a model write down sound by
 * `generateContent`, models of OpenAI and of vendors of its format only by `/audio/transcriptions`.
 *
 * Sources: Gemini API, "Audio understanding", and the types of @google/genai 3.3.0; OpenAI API reference,
 * "Create transcription", read 2026-11-30.
 */
import { arrayOf, objectOf, stringOf, type JsonObject } from '../../base/json.js'
import type { ChatRequest, UserPart } from '../chat/request.js'
import type { TranscribeTask } from '../chat/task.js'
import type { FormField, UploadedFile, UploadPart } from '../chat/upload.js'
import type { Losses, UpstreamCodec } from '../dialect.js'
import { refused } from '../wire/json/check-fields.js'
import { rewrittenParts } from '../wire/media/form-fields.js'
import { checkOneTurn, partsOfTurn, textOfTurn, type OneTurnModel } from '../wire/media/one-turn.js'
import { soundLength, UNKNOWN_LENGTH } from '../wire/media/sound-length.js'
import { soundTypeOf } from '../wire/media/sound.js'
import { MALFORMED_REPLY } from '../wire/upstream-errors.js'

const TRANSCRIBING: OneTurnModel = {
  who: 'A model that only writes down sound',
  takes: 'texts and sound',
  reads: (part) => part.type === 'text' || soundIn(part) !== null,
  makes: 'transcript',
  keeps: new Set(['temperature']),
}
/** OpenAI's models take no higher one. */
const MAX_TEMPERATURE = 1

/** The task of such a chat, also of one that `checked` refuses. */
export function transcribeTaskIn(request: ChatRequest): TranscribeTask {
  const sound =
    partsOfTurn(request)
      .map(soundIn)
      .find((each) => each !== null) ?? null
  const prompt = textOfTurn(request)
  const { temperature, mediaSettings } = request
  const settings = objectOf(mediaSettings?.audioTranscriptionConfig)
  const values: [name: string, value: string | undefined][] = [
    ['model', request.model],
    ['response_format', 'json'],
    ['language', languageIn(settings)],
    ['prompt', prompt === '' ? undefined : prompt],
    ['temperature', temperature === undefined ? undefined : String(Math.min(temperature, MAX_TEMPERATURE))],
  ]
  const fields = values.flatMap(([name, value]): FormField[] =>
    value === undefined ? [] : [{ name, value }],
  )
  const parts: UploadPart[] = sound === null ? fields : [...fields, { name: 'file', file: fileOf(sound) }]
  const texts = fields.flatMap(({ name, value }, at) => (name === 'prompt' ? [{ at, text: value }] : []))
  return {
    kind: 'transcriptions',
    parts,
    texts,
    format: 'json',
    length: sound === null ? UNKNOWN_LENGTH : lengthOf(sound.data),
  }
}

/** The codec of such chats; `base` is that of the endpoint for transcriptions. */
export function transcribingCodec(base: UpstreamCodec): UpstreamCodec {
  return {
    ...base,
    // Google's clients get a transcript whole, also in a stream.
    wholeOnly: () => true,
    readsUrl: () => false,
    readsNative: (path) => /^generationConfig\.audioTranscriptionConfig\b/.test(path),
    encodeForm: (request, losses) => {
      const task = checked(request, losses)
      const rewrite = base.encodeForm?.({ ...request, stream: false, task }, losses) ?? null
      if (rewrite === null) return null
      const parts = rewrittenParts(task.parts, rewrite)
      return {
        added: parts.flatMap((part) => ('file' in part ? [] : [part])),
        field: () => null,
        changed: null,
        files: parts.filter((part) => 'file' in part),
      }
    },
    decodeReply: (body, request, sink) => {
      const task = transcribeTaskIn(request)
      const read = base.readTask?.({ body, headers: {} }, { ...request, task }) ?? null
      if (read === null || !('usage' in read) || read.kind !== 'transcriptions') {
        const error = read === null || 'usage' in read ? MALFORMED_REPLY : read
        return sink.event({ type: 'error', error })
      }
      sink.event({ type: 'start', id: '', model: read.model ?? request.model })
      sink.event({ type: 'text-start', index: 0 })
      sink.event({ type: 'text-delta', index: 0, text: read.text })
      sink.event({ type: 'text-end', index: 0 })
      sink.event({ type: 'usage', usage: read.usage })
      sink.event({ type: 'finish', reason: 'stop', raw: null })
    },
  }
}

/** The task. Throws `untranslatable` for what the reply would be another without; reports other losses. */
function checked(request: ChatRequest, losses: Losses): TranscribeTask {
  const sounds = partsOfTurn(request).filter(({ type }) => type !== 'text')
  checkOneTurn(request, TRANSCRIBING, losses)
  if (sounds.length !== 1) throw refused('messages[0]', 'must have one sound.')
  const settings = objectOf(request.mediaSettings?.audioTranscriptionConfig)
  const language = languageIn(settings)
  for (const key of Object.keys(settings)) {
    const isKept = key === 'languageCodes' && language !== undefined
    if (!isKept) losses.drop(`generationConfig.audioTranscriptionConfig.${key}`, 'no-equivalent')
  }
  if ((request.temperature ?? 0) > MAX_TEMPERATURE) losses.drop('temperature', 'approximated')
  // The endpoint follows no instruction.
  if (textOfTurn(request) !== '') losses.drop('messages', 'approximated')
  return transcribeTaskIn(request)
}

/** The only language that is named, as OpenAI names it: `en` of `en-US`; undefined for several, or none. */
function languageIn(settings: JsonObject): string | undefined {
  const [only, second] = arrayOf(settings['languageCodes'])
  return second === undefined ? stringOf(only)?.split('-', 1)[0]?.toLowerCase() : undefined
}

/** Inline sound, or the sound of a video. */
interface Sound {
  readonly mediaType: string
  /** Base64. */
  readonly data: string
}

/** The sound of a part; null if it has none, or is not in the request. */
function soundIn(part: UserPart): Sound | null {
  if (part.type === 'audio') {
    // Bare samples have no rate.
    if (part.format === 'pcm16') return null
    return { mediaType: soundTypeOf(part.format) ?? `audio/${part.format}`, data: part.data }
  }
  if (part.type !== 'file' || part.source.kind !== 'base64') return null
  const { mediaType, data } = part.source
  return /^(?:audio|video)\//.test(mediaType) ? { mediaType, data } : null
}

/** OpenAI reads the format of sound from the extension of its file: those that differ from the media type. */
const EXTENSIONS: Readonly<Record<string, string>> = { mpeg: 'mp3', mp4: 'm4a', 'x-m4a': 'm4a' }

function fileOf({ mediaType: type, data }: Sound): UploadedFile {
  const kind = type.slice(type.indexOf('/') + 1)
  const extension =
    (Object.hasOwn(EXTENSIONS, kind) ? EXTENSIONS[kind] : undefined) ?? kind.replace(/^x-/, '')
  return { name: `sound.${extension}`, type, bytes: Buffer.from(data, 'base64') }
}

/** Decodes only the bytes that are read. */
function lengthOf(data: string): TranscribeTask['length'] {
  const padding = data.endsWith('==') ? 2 : data.endsWith('=') ? 1 : 0
  return soundLength({
    size: Math.floor((data.length * 3) / 4) - padding,
    read: (from, length) => {
      const skipped = Math.floor(from / 3)
      const text = data.slice(skipped * 4, Math.ceil((from + length) / 3) * 4)
      return Buffer.from(text, 'base64').subarray(from - skipped * 3, from - skipped * 3 + length)
    },
  })
}
