/**
 * OpenAI's form of pictures, which Azure and hosts of open models have too. Gemini's is in
 * `gemini/images.ts`.
 *
 * Source: OpenAI API reference, "Images" and "Image streaming", read 2026-11-29.
 */
import { arrayOf, isObject, numberOf, stringOf, type JsonObject } from '../../base/json.js'
import type { MediaEvent, MediaReader } from '../chat/media-event.js'
import { drawTaskOf, madeAs, type DrawTask, type TaskResult } from '../chat/task.js'
import { addUsage, type Usage } from '../chat/usage.js'
import type { TaskForm } from '../dialect.js'
import { errorIn } from '../wire/error-text.js'
import { withFields } from '../wire/media/form-fields.js'
import { allOfKind, mediaUsage } from '../wire/media/media-usage.js'
import { decodeErrorPayload } from '../wire/openai/decode-error.js'

/** `POST /images/generations` of OpenAI. */
export const openai = openaiForm('/images/generations')

/** `POST /images/edits` of OpenAI: a form, or JSON if the client sent that. */
export const openaiEdits: TaskForm = {
  ...openaiForm('/images/edits'),
  encodeForm: (request) => {
    const { parts, prompt } = drawTaskOf(request)
    return parts === undefined ? null : withFields({ model: request.model, prompt })
  },
}

function openaiForm(path: string): TaskForm {
  return {
    path: () => path,
    basePath: (base) => base,
    encode: (request) => {
      const { prompt, fields } = drawTaskOf(request)
      return { ...fields, model: request.model, prompt }
    },
    newReader: (request) => new PictureReader(drawTaskOf(request)),
    read: ({ body }, request) => {
      if (!isObject(body)) return null
      const { data } = body
      if (!Array.isArray(data)) {
        const error = errorIn(body)
        return error === null ? null : decodeErrorPayload(error)
      }
      return resultOf(body, drawTaskOf(request))
    },
  }
}

function resultOf(body: JsonObject, task: DrawTask): TaskResult {
  const pictures = arrayOf(body['data'])
    .filter(isObject)
    .map((picture) => ({
      data: stringOf(picture['b64_json']) ?? null,
      url: stringOf(picture['url']) ?? null,
      revisedPrompt: stringOf(picture['revised_prompt']) ?? null,
    }))
  return {
    kind: 'images',
    pictures,
    createdAtSeconds: numberOf(body['created']) ?? null,
    format: stringOf(body['output_format']) ?? null,
    usage: usageOf(body, task, pictures.length),
    model: null,
  }
}

/** The tokens, and the pictures with their quality and size. */
function usageOf(body: JsonObject, task: DrawTask, count: number): Usage {
  const made = madeAs(task, { size: stringOf(body['size']), quality: stringOf(body['quality']) })
  const usage = mediaUsage(body)
  const { input, inputText, inputImage } = usage
  // The prompt of an edit is pictures, unless the upstream counts the kinds apart.
  const isOfPictures = task.kind === 'image_edits' && (inputText ?? inputImage) === undefined
  const counted = input !== undefined && isOfPictures ? { ...usage, inputImage: input } : usage
  return { ...allOfKind(counted, 'outputImage'), units: { image: count }, pictures: made }
}

/**
 * Reads `….partial_image` and `….completed`, of which each picture has one. The last one is the end, or the
 * end of the body after fewer.
 */
class PictureReader implements MediaReader {
  readonly model = null
  private readonly task: DrawTask
  private completed = 0
  private usage: Usage = {}

  constructor(task: DrawTask) {
    this.task = task
  }

  frame(body: JsonObject): readonly MediaEvent[] {
    const type = stringOf(body['type']) ?? ''
    if (type.endsWith('.partial_image')) return [{ type: 'message', body }]
    if (type.endsWith('.completed')) {
      this.completed += 1
      this.usage = addUsage(this.usage, usageOf(body, this.task, 1))
      const isLast = this.completed === this.task.count
      return [{ type: 'message', body }, ...(isLast ? this.done() : [])]
    }
    const error = errorIn(body)
    return error === null ? [] : [{ type: 'error', error: decodeErrorPayload(error) }]
  }

  end(): readonly MediaEvent[] {
    return this.completed > 0 ? this.done() : []
  }

  private done(): readonly MediaEvent[] {
    return [{ type: 'done', usage: this.usage }]
  }
}
