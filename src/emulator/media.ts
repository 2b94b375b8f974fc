/**
 * Pictures, sound, moderations and ranks in OpenAI's form and those of rerankers: small valid files, and
 * counts that follow from the request.
 *
 * Sources, read 2026-11-29: OpenAI API reference, "Images", "Audio", "Moderations"; Cohere API reference,
 * "Rerank"; the OpenAPI document of Hugging Face's Text Embeddings Inference.
 */
import { arrayOf, numberOf, objectOf, stringOf, type JsonObject, type JsonValue } from '../base/json.js'
import { formParts } from './form-parts.js'
import { tokensOf, wholeReply, type ParsedRequest, type Reply } from './emulated-exchange.js'
import { checkOpenAiKey, refuseOpenAi, STREAM, WHOLE } from './openai-requests.js'

/** A picture of one pixel. */
export const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mPQq50FAAIiAUaVTK0EAAAAAElFTkSuQmCC'
/** Tokens of a picture by quality; `auto` is medium. */
const PICTURE_TOKENS: Readonly<Record<string, number>> = { low: 272, medium: 1056, high: 4160 }
const SOUND_TYPES: Readonly<Record<string, string>> = {
  mp3: 'audio/mpeg',
  opus: 'audio/ogg',
  aac: 'audio/aac',
  flac: 'audio/flac',
  wav: 'audio/wav',
  pcm: 'audio/pcm',
}
/** The words of every sound. */
export const TRANSCRIPT = 'This is a transcript of the emulator.'
const SAMPLES_PER_SECOND = 24_000
const CHARACTERS_PER_SECOND = 15

/** The reply to a path of these endpoints; null for any other path. */
export function mediaReplier(path: string): ((request: ParsedRequest) => Reply) | null {
  switch (path) {
    case '/images/generations':
      return (request) => picturesReply(request, 'image_generation')
    case '/images/edits':
      return (request) => picturesReply(request, 'image_edit')
    case '/audio/speech':
      return speechReply
    case '/audio/transcriptions':
    case '/audio/translations':
      return transcriptReply
    case '/moderations':
      return moderationReply
    case '/rerank':
      return (request) => rankReply(request, 1)
    case '/v2/rerank':
      return (request) => rankReply(request, 2)
    default:
      return path.startsWith('/inference/') ? (request) => rankReply(request, 1) : null
  }
}

/** The members of a body, or the fields of a form. */
function fieldsOf(request: ParsedRequest): JsonObject {
  checkOpenAiKey(request)
  return request.body ?? {}
}

/** A field of a form is a text. */
function isStreamed({ stream }: JsonObject): boolean {
  return stream === true || stream === 'true'
}

function requiredText(body: JsonObject, name: string): string {
  const text = stringOf(body[name])
  if (text === undefined || text === '')
    refuseOpenAi(400, `Missing required parameter: '${name}'.`, { param: name })
  return text
}

function picturesReply(request: ParsedRequest, event: 'image_generation' | 'image_edit'): Reply {
  const body = fieldsOf(request)
  const prompt = requiredText(body, 'prompt')
  const count = Number(body['n'] ?? 1)
  if (!(count >= 1 && count <= 10)) refuseOpenAi(400, "Invalid 'n': must be from 1 to 10.", { param: 'n' })
  const asked = stringOf(body['quality']) ?? 'auto'
  const quality = asked === 'auto' ? 'medium' : asked
  const size = stringOf(body['size']) ?? 'auto'
  const made = {
    output_format: 'png',
    quality,
    size: size === 'auto' ? '1024x1024' : size,
    background: 'opaque',
  }
  const input = tokensOf(prompt.length)
  const output = count * (PICTURE_TOKENS[quality] ?? 1056)
  const usage = {
    input_tokens: input,
    input_tokens_details: { text_tokens: input, image_tokens: 0 },
    output_tokens: output,
    total_tokens: input + output,
  }
  const counted = { input, output }
  const data = Array.from({ length: count }, () => ({ b64_json: PNG }))
  const whole = (): Reply =>
    wholeReply(WHOLE, JSON.stringify({ created: request.now, data, ...made, usage }), counted)
  if (!isStreamed(body)) return whole()
  const partial = Array.from({ length: Number(body['partial_images'] ?? 0) }, (_, at) =>
    eventOf({
      type: `${event}.partial_image`,
      b64_json: PNG,
      partial_image_index: at,
      created_at: request.now,
      ...made,
    }),
  )
  const last = eventOf({ type: `${event}.completed`, b64_json: PNG, created_at: request.now, ...made, usage })
  return {
    status: 200,
    headers: STREAM,
    units: [...partial, last],
    stream: true,
    terminators: 1,
    whole,
    counted,
  }
}

function eventOf(value: JsonObject): string {
  return `event: ${stringOf(value['type']) ?? ''}\ndata: ${JSON.stringify(value)}\n\n`
}

function speechReply(request: ParsedRequest): Reply {
  const body = fieldsOf(request)
  const text = requiredText(body, 'input')
  requiredText(body, 'voice')
  const format = stringOf(body['response_format']) ?? 'mp3'
  const type = SOUND_TYPES[format]
  if (type === undefined)
    refuseOpenAi(400, "Invalid value for 'response_format'.", { param: 'response_format' })
  const sound = silence(Math.ceil(text.length / CHARACTERS_PER_SECOND), format)
  const counted = {
    input: tokensOf(text.length),
    output: Math.ceil(text.length / CHARACTERS_PER_SECOND) * 20,
  }
  const half = Math.ceil(sound.length / 2)
  const parts = [sound.subarray(0, half), sound.subarray(half)]
  if (body['stream_format'] !== 'sse') {
    return {
      status: 200,
      headers: { ...WHOLE, 'content-type': type },
      units: parts,
      stream: true,
      terminators: 0,
      counted,
    }
  }
  const usage = {
    input_tokens: counted.input,
    output_tokens: counted.output,
    total_tokens: counted.input + counted.output,
  }
  const deltas = parts.map((part) => eventOf({ type: 'speech.audio.delta', audio: part.toString('base64') }))
  const done = eventOf({ type: 'speech.audio.done', usage })
  return { status: 200, headers: STREAM, units: [...deltas, done], stream: true, terminators: 1, counted }
}

/** Sound without a tone: samples, with a header for `wav`; else frames of MP3. */
export function silence(seconds: number, format: string): Buffer {
  const samples = Buffer.alloc(seconds * SAMPLES_PER_SECOND * 2)
  if (format === 'pcm') return samples
  if (format === 'wav') return Buffer.concat([wavHeader(samples.length), samples])
  // MPEG 1, layer III, 128 kbit/s, 44.1 kHz, mono: 417 bytes for 26 ms.
  const frame = Buffer.alloc(417)
  frame.writeUInt32BE(0xfffb90c4)
  return Buffer.concat(Array.from({ length: Math.ceil(seconds / 0.026) }, () => frame))
}

function wavHeader(bytes: number): Buffer {
  const header = Buffer.alloc(44)
  header.write('RIFF', 0)
  header.writeUInt32LE(36 + bytes, 4)
  header.write('WAVEfmt ', 8)
  header.writeUInt32LE(16, 16)
  header.writeUInt16LE(1, 20)
  header.writeUInt16LE(1, 22)
  header.writeUInt32LE(SAMPLES_PER_SECOND, 24)
  header.writeUInt32LE(SAMPLES_PER_SECOND * 2, 28)
  header.writeUInt16LE(2, 32)
  header.writeUInt16LE(16, 34)
  header.write('data', 36)
  header.writeUInt32LE(bytes, 40)
  return header
}

function transcriptReply(request: ParsedRequest): Reply {
  const body = fieldsOf(request)
  const file = objectOf(body['file'])
  const seconds = numberOf(file['seconds'])
  if (seconds === undefined) refuseOpenAi(400, "Missing required parameter: 'file'.", { param: 'file' })
  const usage = { type: 'duration', seconds: Math.max(1, Math.ceil(seconds)) }
  const format = stringOf(body['response_format']) ?? 'json'
  const plain = (text: string): Reply =>
    wholeReply({ ...WHOLE, 'content-type': 'text/plain; charset=utf-8' }, text)
  if (isStreamed(body)) {
    const words = TRANSCRIPT.split(/(?<= )/)
    const deltas = words.map((delta) => eventOf({ type: 'transcript.text.delta', delta }))
    const done = eventOf({ type: 'transcript.text.done', text: TRANSCRIPT, usage })
    return { status: 200, headers: STREAM, units: [...deltas, done], stream: true, terminators: 1 }
  }
  const end = seconds.toFixed(3).padStart(6, '0')
  switch (format) {
    case 'json':
      return wholeReply(WHOLE, JSON.stringify({ text: TRANSCRIPT, usage }))
    case 'verbose_json': {
      const segments = [{ id: 0, start: 0, end: seconds, text: TRANSCRIPT }]
      const whole = {
        task: 'transcribe',
        language: 'english',
        duration: seconds,
        text: TRANSCRIPT,
        segments,
        usage,
      }
      return wholeReply(WHOLE, JSON.stringify(whole))
    }
    case 'text':
      return plain(`${TRANSCRIPT}\n`)
    case 'srt':
      return plain(`1\n00:00:00,000 --> 00:00:${end.replace('.', ',')}\n${TRANSCRIPT}\n\n`)
    case 'vtt':
      return plain(`WEBVTT\n\n00:00:00.000 --> 00:00:${end}\n${TRANSCRIPT}\n\n`)
    default:
      return refuseOpenAi(400, "Invalid value for 'response_format'.", { param: 'response_format' })
  }
}

const CATEGORIES = [
  ...['harassment', 'harassment/threatening', 'hate', 'hate/threatening', 'illicit', 'illicit/violent'],
  ...['self-harm', 'self-harm/intent', 'self-harm/instructions', 'sexual', 'sexual/minors'],
  ...['violence', 'violence/graphic'],
]

/** Texts with the word "kill" are violent, and no others. */
function moderationReply(request: ParsedRequest): Reply {
  const body = fieldsOf(request)
  const { input } = body
  const isOne = typeof input === 'string' || arrayOf(input).some((part) => typeof part !== 'string')
  const inputs: readonly JsonValue[] = isOne ? [input ?? ''] : arrayOf(input)
  if (inputs.length === 0) refuseOpenAi(400, "Missing required parameter: 'input'.", { param: 'input' })
  const results = inputs.map((each) => {
    const flagged = /\bkill/i.test(JSON.stringify(each))
    const of = <Value>(value: (name: string) => Value) =>
      Object.fromEntries(CATEGORIES.map((name) => [name, value(name)]))
    return {
      flagged,
      categories: of((name) => flagged && name === 'violence'),
      category_scores: of((name) => (flagged && name === 'violence' ? 0.98 : 0.0001)),
      category_applied_input_types: of(() => ['text']),
    }
  })
  const model = stringOf(body['model']) ?? 'omni-moderation-latest'
  return wholeReply(WHOLE, JSON.stringify({ id: `modr-${request.seed}`, model, results }))
}

/**
 * Ranks documents by the number of words of the query in them: in the form of TEI for `texts`, of DeepInfra
 * for `queries`, of Cohere's second version at `/v2`, else with the members of its first version, of Jina,
 * Voyage and vLLM.
 */
function rankReply(request: ParsedRequest, version: 1 | 2): Reply {
  const body = fieldsOf(request)
  const queries = arrayOf(body['queries'])
  const query = queries.length > 0 ? (stringOf(queries[0]) ?? '') : requiredText(body, 'query')
  const texts = arrayOf(body['texts'] ?? body['documents']).map(
    (each) => stringOf(each) ?? stringOf(objectOf(each)['text']) ?? JSON.stringify(each),
  )
  if (texts.length === 0)
    refuseOpenAi(400, "Missing required parameter: 'documents'.", { param: 'documents' })
  const words = query
    .toLowerCase()
    .split(/\W+/)
    .filter((word) => word !== '')
  const scored = texts.map((text, index) => {
    const found = words.filter((word) => text.toLowerCase().includes(word)).length
    return { index, score: Math.round((found / Math.max(1, words.length)) * 1000) / 1000 }
  })
  const tokens = tokensOf(texts.reduce((sum, text) => sum + query.length + text.length, 0))
  if (queries.length > 0) {
    const scores = scored.map(({ score }) => score)
    return wholeReply(WHOLE, JSON.stringify({ scores, input_tokens: tokens }))
  }
  const sorted = scored.sort((one, other) => other.score - one.score || one.index - other.index)
  if (body['texts'] !== undefined) {
    return wholeReply({ ...WHOLE, 'x-compute-tokens': String(tokens) }, JSON.stringify(sorted))
  }
  const top = sorted.slice(0, numberOf(body['top_n'] ?? body['top_k']) ?? sorted.length)
  const results = top.map(({ index, score }) => ({ index, relevance_score: score }))
  const meta = { billed_units: { search_units: Math.ceil(texts.length / 100) } }
  const first = { object: 'list', model: body['model'], data: results, usage: { total_tokens: tokens } }
  const id = `rank-${request.seed}`
  return wholeReply(WHOLE, JSON.stringify({ id, results, meta, ...(version === 1 && first) }))
}

/** The fields of a multipart form: texts, and of each file its name and its length. */
export function formFields(raw: Buffer, contentType: string | undefined): JsonObject | undefined {
  const parts = formParts(raw, contentType)
  if (parts === undefined) return undefined
  const fields: Record<string, JsonValue> = {}
  for (const { name, fileName, content } of parts) {
    if (name === undefined) continue
    fields[name] =
      fileName === undefined
        ? content.toString()
        : { name: fileName, bytes: content.length, seconds: secondsOf(content) }
  }
  return fields
}

/** From the header of a WAV file; else as 16 kB a second. */
export function secondsOf(content: Buffer): number {
  const isWav = content.length >= 44 && content.toString('latin1', 0, 4) === 'RIFF'
  const perSecond = isWav ? content.readUInt32LE(28) : 16_000
  return Math.round((content.length / Math.max(1, perSecond)) * 1000) / 1000
}
