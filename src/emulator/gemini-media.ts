/**
 * Pictures, sound and transcripts of Gemini's models, by `generateContent`: a model whose client requests
 * such a reply makes nothing else.
 *
 * Sources: Gemini API, "Image generation", "Speech generation" and "Audio understanding", read 2026-11-30.
 */
import { arrayOf, isObject, objectOf, stringOf, type JsonObject } from '../base/json.js'
import { replyInForm, tokensOf, type ParsedRequest, type Reply } from './emulated-exchange.js'
import { camel, checkGeminiKey, frame, STREAM, WHOLE } from './gemini-requests.js'
import { PNG, secondsOf, silence, TRANSCRIPT } from './media.js'

/** Tokens of a picture, and of a second of sound that is made or sent. */
const PICTURE_TOKENS = 1290
const TOKENS_PER_SECOND_MADE = 25
const TOKENS_PER_SECOND_SENT = 32
const CHARACTERS_PER_SECOND = 15

type Modality = 'TEXT' | 'IMAGE' | 'AUDIO'

/** What a model makes: parts of one content, with their tokens. */
interface Made {
  readonly parts: readonly JsonObject[]
  readonly modality: Modality
  readonly tokens: number
}

/** The reply to a request for pictures, sound or a transcript; null for any other. */
export function geminiMedia(request: ParsedRequest): Reply | null {
  const body = camel(objectOf(request.body))
  const config = camel(objectOf(body['generationConfig']))
  const parts = arrayOf(body['contents']).flatMap((content) => arrayOf(objectOf(content)['parts']))
  const text = parts.map((part) => stringOf(objectOf(part)['text']) ?? '').join(' ')
  const sounds = parts.map(soundIn).filter((sound) => sound !== null)
  const made = madeBy(request.path, config, { text, hasSound: sounds.length > 0 })
  if (made === null) return null
  checkGeminiKey(request)
  const sent = sounds.reduce((sum, sound) => sum + Math.ceil(secondsOf(sound) * TOKENS_PER_SECOND_SENT), 0)
  const words = tokensOf(text.length)
  const modelVersion = /^\/models\/([^/:]+)/.exec(request.path)?.[1] ?? ''
  const usageMetadata = {
    promptTokenCount: words + sent,
    candidatesTokenCount: made.tokens,
    totalTokenCount: words + sent + made.tokens,
    promptTokensDetails: [
      { modality: 'TEXT', tokenCount: words },
      ...(sent > 0 ? [{ modality: 'AUDIO', tokenCount: sent }] : []),
    ],
    candidatesTokensDetails: [{ modality: made.modality, tokenCount: made.tokens }],
  }
  const bodyOf = (own: readonly JsonObject[], isLast: boolean): string =>
    JSON.stringify({
      candidates: [
        { content: { parts: own, role: 'model' }, index: 0, ...(isLast && { finishReason: 'STOP' }) },
      ],
      ...(isLast && { usageMetadata }),
      modelVersion,
    })
  const stream = request.path.endsWith(':streamGenerateContent')
  const isSse = request.query.get('alt') === 'sse'
  return replyInForm(stream, {
    wholeHeaders: WHOLE,
    body: () => bodyOf(made.parts, true),
    streamHeaders: isSse ? STREAM : WHOLE,
    units: () => {
      const chunks = made.parts.map((part, at) => bodyOf([part], at === made.parts.length - 1))
      return isSse ? chunks.map(frame) : [`[${chunks.join(',')}]`]
    },
    counted: { input: words + sent, output: made.tokens },
  })
}

interface Asked {
  readonly text: string
  readonly hasSound: boolean
}

function madeBy(path: string, config: JsonObject, { text, hasSound }: Asked): Made | null {
  const modalities = arrayOf(config['responseModalities'])
  if (modalities.includes('IMAGE')) {
    const inlineData = { mimeType: 'image/png', data: PNG }
    return { parts: [{ inlineData }], modality: 'IMAGE', tokens: PICTURE_TOKENS }
  }
  if (modalities.includes('AUDIO')) {
    const seconds = Math.ceil(text.length / CHARACTERS_PER_SECOND)
    const { format, mimeType } = soundFormat(config)
    const inlineData = { mimeType, data: silence(seconds, format).toString('base64') }
    return { parts: [{ inlineData }], modality: 'AUDIO', tokens: seconds * TOKENS_PER_SECOND_MADE }
  }
  const isRequested = isObject(config['audioTranscriptionConfig']) || /transcribe/.test(path)
  if (!isRequested || !hasSound) return null
  const audioTranscription = { text: TRANSCRIPT, languageCode: 'en', startOffset: '0s', endOffset: '2.5s' }
  return { parts: [{ audioTranscription }], modality: 'TEXT', tokens: tokensOf(TRANSCRIPT.length) }
}

/** Samples, unless the client names a type. */
function soundFormat(config: JsonObject): { readonly format: string; readonly mimeType: string } {
  const audio = arrayOf(config['responseFormat']).map((each) => objectOf(objectOf(each)['audio']))
  const type = audio.map((each) => stringOf(each['mimeType'])).find((each) => each !== undefined)
  if (type === 'audio/wav') return { format: 'wav', mimeType: type }
  if (type === undefined || type === 'audio/l16') {
    return { format: 'pcm', mimeType: 'audio/L16;codec=pcm;rate=24000' }
  }
  return { format: 'mp3', mimeType: type }
}

function soundIn(part: unknown): Buffer | null {
  const { inlineData } = camel(objectOf(part))
  const { mimeType, data } = camel(objectOf(inlineData))
  const type = stringOf(mimeType) ?? ''
  return /^(?:audio|video)\//.test(type) ? Buffer.from(stringOf(data) ?? '', 'base64') : null
}
