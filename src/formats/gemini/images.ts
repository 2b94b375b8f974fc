/**
 * Pictures by Gemini's models that draw.
 *
 * Source: Gemini API, "Image generation", and the types of @google/genai 3.3.0, read 2026-11-29.
 */
import { isObject, objectOf, stringOf, type JsonObject } from '../../base/json.js'
import type { MediaEvent, MediaReader } from '../chat/media-event.js'
import type { ChatRequest } from '../chat/request.js'
import { drawTaskOf, madeAs, type DrawTask, type Picture, type TaskResult } from '../chat/task.js'
import type { Usage } from '../chat/usage.js'
import type { Losses, TaskForm } from '../dialect.js'
import type { WireError } from '../../errors.js'
import { refused } from '../wire/json/check-fields.js'
import { allOfKind } from '../wire/media/media-usage.js'
import { assertInline, endOfReply, partsOfReply, refusalOf, usageOfReply } from './media-reply.js'
import { decodeStreamError } from './upstream/decode-error.js'
import { target } from './upstream/request-path.js'

/** Ratios of all models that draw, as width and height. */
const RATIOS: readonly (readonly [number, number])[] = [
  [1, 1],
  [2, 3],
  [3, 2],
  [3, 4],
  [4, 3],
  [4, 5],
  [5, 4],
  [9, 16],
  [16, 9],
  [21, 9],
]
/** The longer side in pixels up to which a resolution is enough. */
const RESOLUTIONS = [
  [1536, '1K'],
  [3072, '2K'],
] as const

/** Fields without which the picture would be another one. */
const NEEDED = ['mask', 'markup', 'svg']
/** Fields that are translated, or mean nothing to Gemini by themselves. */
const OWN = new Set(['n', 'size', 'stream', 'response_format', 'images', ...NEEDED])

/** `generateContent` of Gemini's models that draw. */
export const geminiImages: TaskForm = {
  path: (model, stream) => target(model, stream).path,
  basePath: (base) => base,
  encode: (request, losses) => {
    const { prompt, count, size, fields } = drawTaskOf(request)
    if (count > 1) throw refused('n', `Gemini makes one picture for each request. Send ${count} requests.`)
    checkFields(fields, losses)
    const imageConfig = imageConfigOf(size, losses)
    return {
      contents: [{ role: 'user', parts: [...picturesOf(request), { text: prompt }] }],
      generationConfig: {
        responseModalities: ['IMAGE'],
        ...(imageConfig !== null && { imageConfig }),
      },
    }
  },
  newReader: (request) => new GeminiPictureReader(drawTaskOf(request)),
  read: ({ body }, request) => (isObject(body) ? readPictures(body, drawTaskOf(request)) : null),
}

/** The same with pictures to change. */
export const geminiImageEdits: TaskForm = geminiImages

/** The pictures of the request in their order. */
function picturesOf(request: ChatRequest): JsonObject[] {
  const isForm = drawTaskOf(request).parts !== undefined
  const { messages } = request
  const pictures = messages.flatMap(({ parts }) => parts.filter((part) => part.type === 'image'))
  const data = pictures.map(({ source }) => (source.kind === 'base64' ? source.data : ''))
  assertInline(data.reduce((bytes, each) => bytes + each.length, 0))
  return pictures.map(({ source }, at) => {
    const path = isForm ? 'image' : `images[${at}]`
    if (source.kind === 'base64') return { inlineData: { mimeType: source.mediaType, data: source.data } }
    throw refused(path, 'Gemini gets the bytes of pictures. Send a data: URL.')
  })
}

function checkFields(fields: DrawTask['fields'], losses: Losses): void {
  const { background, output_format: format, response_format: form } = fields
  for (const name of NEEDED) {
    if (Object.keys(fields).some((field) => field.split('[')[0] === name))
      throw refused(name, 'Gemini does not take it. Leave it out.')
  }
  if (background === 'transparent') {
    throw refused('background', 'Gemini makes no transparent pictures. Use opaque or auto.')
  }
  if (format === 'gif' || format === 'svg') {
    throw refused('output_format', `Gemini makes no ${format}. Use png.`)
  }
  if (form === 'url') throw refused('response_format', 'Gemini sends pictures as base64. Use b64_json.')
  for (const [name, value] of Object.entries(fields)) {
    const isUsual = value === 'auto' || (name === 'output_format' && value === 'png')
    const isOpaque = name === 'background' && value === 'opaque'
    if (!OWN.has(name) && !isUsual && !isOpaque) losses.drop(name, 'no-equivalent')
  }
}

/** The nearest ratio by its logarithm, and the resolution; null for the model's own. */
function imageConfigOf(size: string, losses: Losses): JsonObject | null {
  if (size === 'auto') return null
  const [, width = 0, height = 0] = (/^(\d{1,5})x(\d{1,5})$/.exec(size) ?? []).map(Number)
  if (width === 0 || height === 0) throw refused('size', 'Gemini takes WIDTHxHEIGHT or auto.')
  const wanted = Math.log(width / height)
  const distance = ([w, h]: readonly [number, number]): number => Math.abs(Math.log(w / h) - wanted)
  const [w, h] = RATIOS.reduce((nearest, ratio) => (distance(ratio) < distance(nearest) ? ratio : nearest))
  if (w * height !== h * width) losses.drop('size', 'approximated')
  const longer = Math.max(width, height)
  const imageSize = RESOLUTIONS.find(([most]) => longer <= most)?.[1] ?? '4K'
  return { aspectRatio: `${w}:${h}`, imageSize }
}

function readPictures(body: JsonObject, task: DrawTask): TaskResult | WireError | null {
  const { error } = body
  if (isObject(error)) return decodeStreamError(error)
  const found = partsOfReply(body).flatMap(pictureIn)
  const [first] = found
  if (first === undefined) return refusalOf(body)
  return {
    kind: 'images',
    pictures: found,
    createdAtSeconds: null,
    format: first.format,
    usage: usageOf(body, task, found.length),
    model: stringOf(body['modelVersion']) ?? null,
  }
}

function usageOf(body: JsonObject, task: DrawTask, count: number): Usage {
  return {
    ...allOfKind(usageOfReply(body), 'outputImage'),
    units: { image: count },
    pictures: madeAs(task, { size: undefined, quality: undefined }),
  }
}

type FoundPicture = Picture & { readonly data: string; readonly format: string }

function pictureIn(part: JsonObject): FoundPicture[] {
  const inline = objectOf(part['inlineData'] ?? part['inline_data'])
  const type = stringOf(inline['mimeType'] ?? inline['mime_type'])
  const data = stringOf(inline['data'])
  if (type === undefined || data === undefined || !type.startsWith('image/')) return []
  return [{ data, url: null, revisedPrompt: null, format: type.slice('image/'.length) }]
}

/** Collects pictures until the end, which has their usage. */
class GeminiPictureReader implements MediaReader {
  model: string | null = null
  private readonly task: DrawTask
  private readonly pictures: FoundPicture[] = []
  private last: JsonObject = {}
  private hasEnded = false

  constructor(task: DrawTask) {
    this.task = task
  }

  frame(body: JsonObject): readonly MediaEvent[] {
    if (isObject(body['error'])) return [{ type: 'error', error: decodeStreamError(body['error']) }]
    this.model = stringOf(body['modelVersion']) ?? this.model
    this.pictures.push(...partsOfReply(body).flatMap(pictureIn))
    if (body['usageMetadata'] !== undefined) this.last = body
    this.hasEnded ||= endOfReply(body) !== null
    const refusal = this.pictures.length === 0 ? refusalOf(body) : null
    return refusal === null ? [] : [{ type: 'error', error: refusal }]
  }

  end(): readonly MediaEvent[] {
    if (!this.hasEnded || this.pictures.length === 0) return []
    const usage = usageOf(this.last, this.task, this.pictures.length)
    const messages = this.pictures.map(({ data, format }): MediaEvent => ({
      type: 'picture',
      data,
      format,
      usage,
    }))
    return [...messages, { type: 'done', usage }]
  }
}
