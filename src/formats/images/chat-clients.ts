/**
 * Chats that request a picture, at OpenAI's endpoints for pictures: Google's clients draw by
 * `generateContent`, OpenAI's models only by `/images/generations` and, with pictures, `/images/edits`.
 *
 * Sources: Gemini API, "Image generation"; OpenAI API reference, "Images", read 2026-11-29.
 */
import { isObject, stringOf, type JsonObject } from '../../base/json.js'
import type { EventSink } from '../chat/event.js'
import type { ChatRequest, ImagePart } from '../chat/request.js'
import type { DrawTask, TaskResult } from '../chat/task.js'
import type { FormField } from '../chat/upload.js'
import type { Losses, UnfitTask, UpstreamCodec } from '../dialect.js'
import { refused } from '../wire/json/check-fields.js'
import { checkOneTurn, partsOfTurn, textOfTurn, type OneTurnModel } from '../wire/media/one-turn.js'
import { MALFORMED_REPLY } from '../wire/upstream-errors.js'

/** The task of such a chat, also of one that `checked` refuses. */
export function drawTaskIn(request: ChatRequest): DrawTask {
  const size = sizeOf(imageConfigOf(request))?.size
  return {
    kind: picturesIn(request).length > 0 ? 'image_edits' : 'images',
    prompt: textOfTurn(request),
    count: 1,
    partial: 0,
    size: size ?? 'auto',
    quality: 'auto',
    fields: size === undefined ? {} : { size },
  }
}

/** The pictures that the user sends, to be changed. */
export function picturesIn(request: ChatRequest): ImagePart[] {
  return partsOfTurn(request).filter((part) => part.type === 'image')
}

function imageConfigOf({ mediaSettings }: ChatRequest): JsonObject | undefined {
  const config = mediaSettings?.imageConfig
  return isObject(config) ? config : undefined
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

const DRAWING: OneTurnModel = {
  who: 'A model that only draws',
  takes: 'texts and pictures',
  reads: ({ type }) => type === 'text' || type === 'image',
  makes: 'picture',
}

/** The task. Throws `untranslatable` for what the picture would be another without; reports other losses. */
function checked(request: ChatRequest, losses: Losses): DrawTask {
  checkOneTurn(request, DRAWING, losses)
  if (picturesIn(request).some(({ source }) => source.kind !== 'base64')) throw refusedSource(request)
  if (sizeOf(imageConfigOf(request))?.isExact === false) {
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
