/**
 * Transcriptions by Gemini's models that take sound: those for transcription have settings for it, others are
 * instructed in words.
 *
 * Source: Gemini API, "Audio understanding", and the types of @google/genai 3.3.0, read 2026-11-29.
 */
import { arrayOf, isObject, objectOf, stringOf, type JsonObject } from '../../base/json.js'
import type { WireError } from '../../errors.js'
import type { MediaEvent, MediaReader } from '../chat/media-event.js'
import type { ChatRequest } from '../chat/request.js'
import { transcribeTaskOf, type Segment, type TaskResult } from '../chat/task.js'
import type { UploadedFile } from '../chat/upload.js'
import type { Usage } from '../chat/usage.js'
import type { Losses, TaskForm } from '../dialect.js'
import { refuse, refused } from '../wire/json/check-fields.js'
import { fieldsOfForm, filesOfForm } from '../wire/media/form-fields.js'
import { assertInline, endOfReply, partsOfReply, refusalOf, usageOfReply } from './media-reply.js'
import { decodeStreamError } from './upstream/decode-error.js'
import { target } from './upstream/request-path.js'

const INSTRUCTION =
  'Write down the words of the sound in their language. Answer with the transcript and nothing else.'

/** Types of sound by the extension of a name. */
const TYPES: Readonly<Record<string, string>> = {
  flac: 'audio/flac',
  mp3: 'audio/mp3',
  mpga: 'audio/mp3',
  mpeg: 'audio/mpeg',
  mp4: 'audio/mp4',
  m4a: 'audio/mp4',
  ogg: 'audio/ogg',
  wav: 'audio/wav',
  webm: 'audio/webm',
}
/** Fields that are translated, or mean nothing to Gemini by themselves. */
const OWN = new Set(
  'model language languages keywords temperature timestamp_granularities response_format stream'.split(' '),
)
/** Maximum length of a line of subtitles. */
const MAX_LINE_CHARS = 84

/** `generateContent` of Gemini's models. */
export const geminiTranscriptions: TaskForm = {
  path: (model, stream) => target(model, stream).path,
  basePath: (base) => base,
  encode: (request, losses) => {
    const task = transcribeTaskOf(request)
    const fields = fieldsOfForm(task.parts)
    const [first] = filesOfForm(task.parts)
    if (first === undefined) throw refused('url', 'Gemini gets the bytes of the sound. Send a file.')
    const data = first.file.bytes.toString('base64')
    assertInline(data.length)
    const inlineData = { mimeType: typeOf(first.file), data }
    const { temperature } = fields
    const isSpecial = hasSettings(request.model)
    const [prompt] = promptOf(request)
    const config = isSpecial ? settingsOf(request, fields, losses) : null
    if (!isSpecial) checkWords(task.format, fields, losses)
    const text = prompt === undefined ? INSTRUCTION : `${INSTRUCTION}\n${prompt}`
    const generationConfig = {
      ...(typeof temperature === 'string' && { temperature: numberIn(temperature) }),
      ...(config !== null && { audioTranscriptionConfig: config }),
    }
    return {
      contents: [{ role: 'user', parts: [{ inlineData }, ...(isSpecial ? [] : [{ text }])] }],
      ...(Object.keys(generationConfig).length > 0 && { generationConfig }),
    }
  },
  newReader: () => new GeminiTranscriptReader(),
  read: ({ body }) => (isObject(body) ? readTranscript(body) : null),
}

/** Whether the model takes `audioTranscriptionConfig`. */
function hasSettings(model: string): boolean {
  return model.includes('transcribe')
}

/** The judged text of the field `prompt`, if the client sent it. */
function promptOf(request: ChatRequest): string[] {
  const { parts, texts } = transcribeTaskOf(request)
  return texts.filter(({ at }) => parts[at]?.name === 'prompt').map(({ text }) => text)
}

function settingsOf(request: ChatRequest, fields: JsonObject, losses: Losses): JsonObject {
  const { format, parts, texts } = transcribeTaskOf(request)
  const keywords = texts.filter(({ at }) => parts[at]?.name.startsWith('keywords') === true)
  const languages = [fields['language'], ...arrayOf(fields['languages'])].filter(
    (each) => typeof each === 'string',
  )
  const granularities = arrayOf(fields['timestamp_granularities'])
  const isSubtitles = format === 'srt' || format === 'vtt' || format === 'verbose_json'
  if (granularities.includes('segment')) losses.drop('timestamp_granularities', 'no-equivalent')
  dropOthers(fields, losses)
  return {
    ...(languages.length > 0 && { languageCodes: languages }),
    ...(keywords.length > 0 && { customVocabulary: keywords.map(({ text }) => text) }),
    ...((isSubtitles || granularities.includes('word')) && { wordTimestamp: true }),
    ...(format === 'diarized_json' && { diarization: true }),
  }
}

/** A model that is instructed in words makes no times and distinguishes no speakers. */
function checkWords(format: string, fields: JsonObject, losses: Losses): void {
  if (format !== 'json' && format !== 'text') {
    throw refused('response_format', 'This model of Google makes json and text only.')
  }
  for (const name of ['language', 'languages', 'keywords', 'timestamp_granularities']) {
    if (fields[name] !== undefined) losses.drop(name, 'no-equivalent')
  }
  dropOthers(fields, losses)
}

function dropOthers(fields: JsonObject, losses: Losses): void {
  for (const name of Object.keys(fields)) {
    if (name.startsWith('known_speaker_')) throw refused(name, 'Gemini compares no voices. Leave it out.')
    if (!OWN.has(name)) losses.drop(name, 'no-equivalent')
  }
}

function numberIn(temperature: string): number {
  const value = Number(temperature)
  return value >= 0 && value <= 2 ? value : refuse('temperature', 'must be a number between 0 and 2')
}

/** The type of the part, else that of the name. */
function typeOf({ name, type }: UploadedFile): string {
  if (type !== '' && type !== 'application/octet-stream') return type
  const known = TYPES[name.slice(name.lastIndexOf('.') + 1).toLowerCase()]
  if (known !== undefined) return known
  throw refused('file', 'Gemini needs the type of the sound. Send a content type, or a name such as a.wav.')
}

function readTranscript(body: JsonObject): TaskResult | WireError | null {
  const { error } = body
  if (isObject(error)) return decodeStreamError(error)
  const parts = partsOfReply(body)
  const text = textsIn(parts).join('')
  if (text === '' && endOfReply(body) === null) return refusalOf(body)
  const refusal = refusalOf(body)
  if (refusal !== null) return refusal
  const transcript = parts.map((part) => objectOf(part['audioTranscription']))
  const language = transcript.map((each) => stringOf(each['languageCode'])).find((each) => each !== undefined)
  return {
    kind: 'transcriptions',
    text,
    segments: transcript.flatMap(segmentsOf),
    language: language ?? null,
    usage: soundUsage(body),
    model: stringOf(body['modelVersion']) ?? null,
  }
}

function textsIn(parts: readonly JsonObject[]): string[] {
  return parts.flatMap((part) => stringOf(objectOf(part['audioTranscription'])['text'] ?? part['text']) ?? [])
}

/** Prompt tokens are sound unless the upstream counts the kinds apart. */
function soundUsage(body: JsonObject): Usage {
  const usage = usageOfReply(body)
  const { input, inputText, inputAudio } = usage
  const isCounted = input === undefined || (inputText ?? inputAudio) !== undefined
  return isCounted ? usage : { ...usage, inputAudio: input }
}

/** The words in lines, each from its first to its last word; without words the text of the part. */
function segmentsOf(transcript: JsonObject): Segment[] {
  const whole = timed(transcript)
  const speaker = stringOf(transcript['speakerLabel'])
  const words = arrayOf(transcript['words']).filter(isObject).flatMap(timed)
  const lines: Segment[] = []
  for (const word of words.length === 0 ? whole : words) {
    const last = lines.at(-1)
    const joined = last === undefined ? '' : `${last.text} ${word.text}`
    if (last === undefined || joined.length > MAX_LINE_CHARS) lines.push(word)
    else lines[lines.length - 1] = { ...last, end: word.end, text: joined }
  }
  return speaker === undefined ? lines : lines.map((line) => ({ ...line, speaker }))
}

function timed(transcript: JsonObject): Segment[] {
  const text = stringOf(transcript['text'] ?? transcript['word'])
  const [start, end] = [secondsIn(transcript['startOffset']), secondsIn(transcript['endOffset'])]
  return text === undefined || start === null || end === null ? [] : [{ start, end, text: text.trim() }]
}

/** `1.2s`; null for any other value. */
function secondsIn(value: unknown): number | null {
  const [, seconds] = /^(\d{1,9}(?:\.\d{1,9})?)s$/.exec(stringOf(value) ?? '') ?? []
  return seconds === undefined ? null : Number(seconds)
}

/** Each text is a part of the transcript; a reason for the end completes it. */
class GeminiTranscriptReader implements MediaReader {
  model: string | null = null
  private text = ''
  private last: JsonObject = {}
  private hasEnded = false

  frame(body: JsonObject): readonly MediaEvent[] {
    if (isObject(body['error'])) return [{ type: 'error', error: decodeStreamError(body['error']) }]
    const refusal = refusalOf(body)
    if (refusal !== null) return [{ type: 'error', error: refusal }]
    this.model = stringOf(body['modelVersion']) ?? this.model
    if (body['usageMetadata'] !== undefined) this.last = body
    this.hasEnded ||= endOfReply(body) !== null
    return textsIn(partsOfReply(body)).map((delta) => {
      this.text += delta
      return { type: 'message', body: { type: 'transcript.text.delta', delta } }
    })
  }

  end(): readonly MediaEvent[] {
    if (!this.hasEnded) return []
    const usage = soundUsage(this.last)
    return [
      { type: 'transcript', text: this.text, usage },
      { type: 'done', usage },
    ]
  }
}
