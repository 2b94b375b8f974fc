/**
 * Chats that request a picture, at OpenAI's endpoints for pictures: Google's clients draw by
 * `generateContent`, OpenAI's models only by `/images/generations` and, with pictures, `/images/edits`.
 *
 * Sources: Gemini API, "Image generation"; OpenAI API reference, "Images", read 2026-11-29.
 */
import { stringOf, type JsonObject } from '../../base/json.js'
import type { EventSink } from '../chat/event.js'
import type { ModelFacts } from '../chat/model-facts.js'
import type { TaskForms } from '../chat/operations.js'
import type { ChatRequest, ImagePart } from '../chat/request.js'
import type { DrawTask, TaskResult } from '../chat/task.js'
import type { FormField } from '../chat/upload.js'
import type { Losses, UnfitTask, UpstreamCodec, WireFormat } from '../dialect.js'
import { refused } from '../wire/json/check-fields.js'
import { MALFORMED_REPLY } from '../wire/upstream-errors.js'

/** The formats of such requests: without and with pictures to change. */
type DrawingFormat = 'chat-images' | 'chat-image-edits'

/** Whether requests of the format are chats at an endpoint for pictures. */
export function isDrawing(wire: WireFormat | null): wire is DrawingFormat {
  return wire === 'chat-images' || wire === 'chat-image-edits'
}

/** A request whose format at an upstream is chosen. */
interface ChatAtUpstream {
  readonly request: ChatRequest
  readonly client: WireFormat
  /** The facts of the model that is requested. */
  readonly facts: ModelFacts
  readonly forms: TaskForms
}

/**
 * The format of a chat of Google's clients for a model that only draws: one that the catalogue lists as such,
 * or an unknown one whose client requests one. Null for any other, and if the upstream has another form.
 */
export function drawingFormat({ request, client, facts, forms }: ChatAtUpstream): DrawingFormat | null {
  if (client !== 'gemini') return null
  const isUnknown = facts.contextWindow === undefined
  const draws = facts.operations?.includes('images') ?? (isUnknown && requestsPicture(request))
  if (!draws) return null
  const isEdit = picturesIn(request).length > 0
  if (forms[isEdit ? 'image_edits' : 'images'] !== 'openai') return null
  return isEdit ? 'chat-image-edits' : 'chat-images'
}

function requestsPicture({ replyModalities }: ChatRequest): boolean {
  return replyModalities?.includes('image') === true
}

/** The task of such a chat, also of one that `checked` refuses. */
export function drawTaskIn(request: ChatRequest): DrawTask {
  const texts = request.messages.flatMap(({ role, parts }) =>
    role === 'user' ? parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])) : [],
  )
  const size = sizeOf(request.imageConfig)?.size
  return {
    kind: picturesIn(request).length > 0 ? 'image_edits' : 'images',
    prompt: texts.join('\n'),
    count: 1,
    partial: 0,
    size: size ?? 'auto',
    quality: 'auto',
    fields: size === undefined ? {} : { size },
  }
}

function picturesIn({ messages }: ChatRequest): ImagePart[] {
  return messages.flatMap(({ role, parts }) =>
    role === 'user' ? parts.filter((part) => part.type === 'image') : [],
  )
}

/** The codec of such chats; `base` is that of the endpoint for pictures. */
export function drawingCodec(base: UpstreamCodec): UpstreamCodec {
  return {
    ...base,
    // Google's clients get a picture whole, also in a stream.
    wholeOnly: () => true,
    readsUrl: () => false,
    readsNative: (path) => /^generationConfig\.(?:responseModalities|imageConfig)\b/.test(path),
    encodeRequest: (request, facts, losses) => {
      const task = checked(request, losses)
      return base.encodeRequest({ ...request, task }, facts, losses)
    },
    ...(base.encodeForm !== undefined && {
      encodeForm: (request, losses) => {
        const { prompt, size } = checked(request, losses)
        const values = { model: request.model, prompt, ...(size !== 'auto' && { size }) }
        return {
          added: Object.entries(values).map(([name, value]): FormField => ({ name, value })),
          field: () => null,
          changed: null,
          files: picturesIn(request).map(({ source }, at) => {
            if (source.kind !== 'base64') throw refusedSource(request)
            const { mediaType: type, data } = source
            const name = `image-${at + 1}.${type.slice(type.indexOf('/') + 1)}`
            return { name: 'image[]', file: { name, type, bytes: Buffer.from(data, 'base64') } }
          }),
        }
      },
    }),
    decodeReply: (body, request, sink) => {
      const task = drawTaskIn(request)
      const read = base.readTask?.({ body, headers: {} }, { ...request, task }) ?? null
      if (read === null) return sink.event({ type: 'error', error: MALFORMED_REPLY })
      if (!('usage' in read)) return sink.event({ type: 'error', error: read })
      emit(read, request.model, sink)
    },
  }
}

/** The pictures as events of a chat. */
function emit(read: TaskResult | UnfitTask, model: string, sink: EventSink): void {
  if (read.kind !== 'images' || read.pictures.length === 0) {
    return sink.event({ type: 'error', error: MALFORMED_REPLY })
  }
  sink.event({ type: 'start', id: '', model: read.model ?? model })
  for (const [index, { data, url }] of read.pictures.entries()) {
    const type = `image/${read.format ?? 'png'}`
    sink.event({ type: 'image', index, url: data === null ? (url ?? '') : `data:${type};base64,${data}` })
  }
  sink.event({ type: 'usage', usage: read.usage })
  sink.event({ type: 'finish', reason: 'stop', raw: null })
}

/** Fields of chats that mean nothing to a model that draws, by their canonical names. */
const LOST = {
  temperature: 'temperature',
  topP: 'top_p',
  topK: 'top_k',
  stop: 'stop',
  seed: 'seed',
  frequencyPenalty: 'frequency_penalty',
  presencePenalty: 'presence_penalty',
  maxOutputTokens: 'max_tokens',
  reasoningEffort: 'reasoning_effort',
  logprobs: 'logprobs',
} as const satisfies Partial<Record<keyof ChatRequest, string>>

/** The task. Throws `untranslatable` for what the picture would be another without; reports other losses. */
function checked(request: ChatRequest, losses: Losses): DrawTask {
  const { messages, tools, hosted = [], responseFormat, candidates = 1, imageConfig, rest } = request
  const [message, second] = messages
  if (message?.role !== 'user' || second !== undefined) {
    throw refused('messages', 'A model that only draws takes one user turn, without instructions before it.')
  }
  const other = message.parts.find(({ type }) => type !== 'text' && type !== 'image')
  if (other !== undefined) throw refused('messages[0]', 'A model that only draws takes texts and pictures.')
  if (tools.length + hosted.length > 0) throw refused('tools', 'A model that only draws calls no tools.')
  if ((responseFormat?.type ?? 'text') !== 'text') {
    throw refused('response_format', 'A model that only draws writes no JSON.')
  }
  if (candidates > 1) throw refused('n', 'Send one request for each picture.')
  if (picturesIn(request).some(({ source }) => source.kind !== 'base64')) throw refusedSource(request)
  for (const [name, path] of Object.entries(LOST)) {
    if (Object.hasOwn(request, name)) losses.drop(path, 'no-equivalent')
  }
  for (const key of Object.keys(rest)) losses.drop(key, 'no-equivalent')
  if (sizeOf(imageConfig)?.isExact === false) {
    losses.drop('generationConfig.imageConfig', 'approximated')
  }
  const task = drawTaskIn(request)
  if (task.prompt === '') throw refused('messages[0]', 'must have a text.')
  return task
}

function refusedSource({ messages }: ChatRequest): Error {
  const at = messages[0]?.index ?? 0
  return refused(`messages[${at}]`, 'OpenAI gets the bytes of pictures. Send them inline.')
}

/** OpenAI's usual sizes. */
const SIZES = [
  [1024, 1024],
  [1536, 1024],
  [1024, 1536],
] as const
const KNOWN: ReadonlySet<string> = new Set(['aspectRatio', 'imageSize'])

/** The usual size that is nearest to the ratio; null for the model's own. */
function sizeOf(
  config: JsonObject | undefined,
): { readonly size?: string; readonly isExact: boolean } | null {
  if (config === undefined) return null
  const isPlain = Object.keys(config).every((key) => KNOWN.has(key))
  const isUsual = isPlain && (stringOf(config['imageSize']) ?? '1K') === '1K'
  const ratio = stringOf(config['aspectRatio'])
  if (ratio === undefined) return { isExact: isUsual }
  const [, wide = 0, high = 0] = (/^(\d{1,2}):(\d{1,2})$/.exec(ratio) ?? []).map(Number)
  if (wide === 0 || high === 0) return { isExact: false }
  const distance = ([w, h]: readonly [number, number]): number => Math.abs(Math.log(w / h / (wide / high)))
  const [w, h] = SIZES.reduce<readonly [number, number]>(
    (nearest, size) => (distance(size) < distance(nearest) ? size : nearest),
    SIZES[0],
  )
  return { size: `${w}x${h}`, isExact: isUsual && w * high === h * wide }
}
