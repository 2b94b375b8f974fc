/**
 * Chats that request sound, at endpoints for speech: Google's clients use `generateContent`, while models of
 * OpenAI and of vendors of its format only have `/audio/speech`.
 *
 * Sources: Gemini API, "Speech generation"; OpenAI API reference, "Create speech"; Groq, "Text to speech",
 * read 2026-11-30.
 */
import { arrayOf, isObject, objectOf, stringOf, type JsonObject } from '../../base/json.js'
import type { ChatEvent, EventSink } from '../chat/event.js'
import type { MediaEvent, MediaReader } from '../chat/media-event.js'
import type { ChatRequest } from '../chat/request.js'
import type { SoundFormat, SpeechTask } from '../chat/task.js'
import type { DialectName, Losses, UpstreamCodec } from '../dialect.js'
import { refused } from '../wire/json/check-fields.js'
import { checkOneTurn, textOfTurn, type OneTurnModel } from '../wire/media/one-turn.js'
import { samplesOf } from '../wire/media/sound.js'
import { openAiVoice } from '../wire/media/voices.js'
import { MALFORMED_REPLY } from '../wire/upstream-errors.js'

/** The format of the clients, which have sound in parts of their own. */
const CLIENT: DialectName = 'gemini'
/** The bytes of a reply as a body, which Mistral's format has too. */
const SOUND = 'audio_data'
/** The voice of clients that name none. */
const USUAL_VOICE = 'alloy'
/** Types of sound that Google's clients may name, by their names there. */
const FORMATS: Readonly<Record<string, SoundFormat>> = {
  'audio/l16': 'pcm',
  'audio/mp3': 'mp3',
  'audio/mpeg': 'mp3',
  'audio/ogg_opus': 'opus',
  'audio/wav': 'wav',
}
/** The type of the sound in replies. OpenAI's samples have 24 kHz and 16 bits, as Google's. */
const TYPES: Partial<Record<SoundFormat, string>> = {
  pcm: 'audio/L16;codec=pcm;rate=24000',
  mp3: 'audio/mp3',
  opus: 'audio/ogg_opus',
  wav: 'audio/wav',
}
/** Models at Groq, which make WAV and no bare samples. */
const WAV_ONLY = /orpheus|playai/i

const SPEECH: OneTurnModel = {
  who: 'A model that only makes speech',
  takes: 'texts',
  reads: ({ type }) => type === 'text',
  makes: 'text',
}

/** The task of such a chat, also of one that `checked` refuses. */
export function speechTaskIn(request: ChatRequest): SpeechTask {
  const { voice } = voiceOf(request)
  return {
    kind: 'speech',
    input: textOfTurn(request),
    voice: { name: voice },
    format: formatOf(request) ?? 'pcm',
  }
}

/** The codec of such chats; `base` is that of the endpoint for speech. */
export function speechOfChats(base: UpstreamCodec): UpstreamCodec {
  return {
    ...base,
    readsUrl: () => false,
    readsNative: (path) =>
      /^generationConfig\.(?:responseModalities|speechConfig|responseFormat)\b/.test(path),
    encodeRequest: (request, facts, losses) => {
      const task = checked(request, losses)
      // Only some models take `stream_format`, which the form adds.
      return base.encodeRequest({ ...request, rest: {}, stream: false, task }, facts, losses)
    },
    bodyOfBytes: (bytes) => ({ [SOUND]: bytes.toString('base64') }),
    decodeReply: (body, request, sink) => {
      const read = base.readTask?.({ body, headers: {} }, { ...request, task: speechTaskIn(request) }) ?? null
      const usage = read !== null && 'usage' in read ? read.usage : null
      const data = stringOf(body[SOUND])
      if (data === undefined) {
        const error = read === null || 'usage' in read ? MALFORMED_REPLY : read
        return sink.event({ type: 'error', error })
      }
      const reply = new SoundWriter(request, sink)
      reply.take({ type: 'sound', data: Buffer.from(data, 'base64') })
      reply.take({ type: 'done', usage: usage ?? {} })
    },
    newDecoder: (request, sink) => {
      const reader = base.newMediaReader?.({ ...request, task: speechTaskIn(request) }) ?? null
      return new SpeechDecoder(reader, new SoundWriter(request, sink))
    },
  }
}

/** Writes sound as the parts of a chat of Google's format: as it arrives in a stream, else in one part. */
class SoundWriter {
  private readonly request: ChatRequest
  private readonly sink: EventSink
  private readonly format: SoundFormat
  private index = 0
  private hasBegun = false
  private hasEnded = false
  private pending: Buffer[] = []

  constructor(request: ChatRequest, sink: EventSink) {
    this.request = request
    this.sink = sink
    this.format = speechTaskIn(request).format
  }

  take(event: MediaEvent): void {
    if (this.hasEnded) return
    if (event.type === 'error') {
      this.hasEnded = true
      this.sink.event({ type: 'error', error: event.error })
    } else if (event.type === 'sound') {
      this.pending.push(event.data)
      if (this.request.stream) this.flush()
    } else if (event.type === 'done') {
      this.hasEnded = true
      this.flush()
      if (!this.hasBegun) return this.sink.event({ type: 'error', error: MALFORMED_REPLY })
      this.sink.event({ type: 'usage', usage: event.usage })
      this.sink.event({ type: 'finish', reason: 'stop', raw: null })
    }
  }

  private flush(): void {
    const sound = Buffer.concat(this.pending)
    this.pending = []
    if (sound.length === 0) return
    if (!this.hasBegun) this.sink.event({ type: 'start', id: '', model: this.request.model })
    this.hasBegun = true
    this.sink.event(this.partOf(sound))
    this.index += 1
  }

  private partOf(sound: Buffer): ChatEvent {
    const { format, index } = this
    const wav = format === 'pcm' ? samplesOf(sound) : null
    const mimeType = wav === null ? TYPES[format] : `audio/L16;codec=pcm;rate=${wav.rate}`
    const data = (wav?.samples ?? sound).toString('base64')
    const block = { inlineData: { mimeType: mimeType ?? `audio/${format}`, data } }
    return { type: 'opaque', index, provider: CLIENT, block }
  }
}

/** Reads the events of an endpoint for speech. */
class SpeechDecoder {
  private readonly reader: MediaReader | null
  private readonly reply: SoundWriter

  constructor(reader: MediaReader | null, reply: SoundWriter) {
    this.reader = reader
    this.reply = reply
  }

  frame(_name: string, data: string): void {
    if (data === '[DONE]') return
    let body: unknown
    try {
      body = JSON.parse(data)
    } catch {
      body = null
    }
    if (!isObject(body)) return this.reply.take({ type: 'error', error: MALFORMED_REPLY })
    for (const event of this.reader?.frame(body) ?? []) this.reply.take(event)
  }

  end(): void {
    for (const event of this.reader?.end() ?? []) this.reply.take(event)
  }
}

/** The task. Throws `untranslatable` for what the sound would be another without; reports other losses. */
function checked(request: ChatRequest, losses: Losses): SpeechTask {
  checkOneTurn(request, SPEECH, losses)
  const speech = objectOf(request.mediaSettings?.speechConfig)
  if (speech['multiSpeakerVoiceConfig'] !== undefined) {
    throw refused(
      'generationConfig.speechConfig.multiSpeakerVoiceConfig',
      'The endpoint for speech has one voice. Send a request for each speaker.',
    )
  }
  if (speech['languageCode'] !== undefined) {
    losses.drop('generationConfig.speechConfig.languageCode', 'no-equivalent')
  }
  const { isExact } = voiceOf(request)
  if (!isExact) losses.drop('generationConfig.speechConfig.voiceConfig', 'approximated')
  if (formatOf(request) === null) {
    throw refused('generationConfig.responseFormat', `Use ${Object.keys(FORMATS).join(', ')}.`)
  }
  if (Object.keys(soundSettings(request)).some((key) => key !== 'mimeType')) {
    losses.drop('generationConfig.responseFormat', 'approximated')
  }
  const task = speechTaskIn(request)
  if (task.input === '') throw refused('messages[0]', 'must have a text.')
  return task.format === 'pcm' && WAV_ONLY.test(request.model) ? { ...task, format: 'wav' } : task
}

/** The voice; a name that Google does not have is the upstream's own. */
function voiceOf({ mediaSettings }: ChatRequest): { readonly voice: string; readonly isExact: boolean } {
  const { voiceConfig } = objectOf(mediaSettings?.speechConfig)
  const given = objectOf(voiceConfig)
  const name = stringOf(objectOf(given['prebuiltVoiceConfig'])['voiceName'])
  // Of a copied voice there is only the sample.
  if (name === undefined) return { voice: USUAL_VOICE, isExact: Object.keys(given).length === 0 }
  const similar = openAiVoice(name)
  return similar === null ? { voice: name, isExact: true } : { voice: similar, isExact: false }
}

/** The format that the client names, or samples; null for one that is not made. */
function formatOf(request: ChatRequest): SoundFormat | null {
  const type = stringOf(soundSettings(request)['mimeType'])
  if (type === undefined) return 'pcm'
  const [name = ''] = type.toLowerCase().split(';', 1)
  return (Object.hasOwn(FORMATS, name) ? FORMATS[name] : undefined) ?? null
}

/** The format of sound among those of the reply; empty if the client names none. */
function soundSettings({ mediaSettings }: ChatRequest): JsonObject {
  const formats = arrayOf(mediaSettings?.responseFormat).map((each) => objectOf(objectOf(each)['audio']))
  return formats.find((audio) => Object.keys(audio).length > 0) ?? {}
}
