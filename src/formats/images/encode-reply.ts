/** Pictures to clients of OpenAI's format: a whole reply, or events. */
import { stringOf, type JsonObject } from '../../base/json.js'
import type { MediaEvent, MediaWriter } from '../chat/media-event.js'
import type { ChatRequest } from '../chat/request.js'
import type { TaskResult } from '../chat/task.js'
import type { Usage } from '../chat/usage.js'
import type { EncodedTask, Seed } from '../dialect.js'

/** The whole reply; null if the result has no pictures. */
export function encodePictures(
  result: TaskResult,
  { stream, task }: ChatRequest,
  { createdAtSeconds }: Seed,
): EncodedTask | null {
  if (result.kind !== 'images') return null
  const { pictures, format, usage } = result
  const created = result.createdAtSeconds ?? createdAtSeconds
  const counts = usageBody(usage)
  if (stream) {
    const events = pictures.map(({ data }) =>
      completedEvent({ data: data ?? '', format, usage }, { task, created }),
    )
    return { body: events.map(eventText).join(''), type: null }
  }
  const data = pictures.map(({ data: base64, url, revisedPrompt }) => ({
    ...(base64 !== null && { b64_json: base64 }),
    ...(url !== null && { url }),
    ...(revisedPrompt !== null && { revised_prompt: revisedPrompt }),
  }))
  const body = {
    created,
    data,
    ...(format !== null && { output_format: format }),
    ...(counts !== null && { usage: counts }),
  }
  return { body: JSON.stringify(body) }
}

/** A picture of a stream. */
interface StreamedPicture {
  /** Base64. */
  readonly data: string
  readonly format: string | null
  readonly usage: Usage
}

function completedEvent(
  { data, format, usage }: StreamedPicture,
  { task, created }: { readonly task: ChatRequest['task'] | undefined; readonly created: number },
): JsonObject {
  const counts = usageBody(usage)
  return {
    type: task?.kind === 'image_edits' ? 'image_edit.completed' : 'image_generation.completed',
    b64_json: data,
    created_at: created,
    ...(format !== null && { output_format: format }),
    ...(counts !== null && { usage: counts }),
  }
}

/** The usage by kind of token; thoughts are text. Null if the upstream counts no tokens. */
function usageBody(usage: Usage): JsonObject | null {
  const { input, output, inputImage = 0, outputImage = 0 } = usage
  if (input === undefined || output === undefined) return null
  return {
    input_tokens: input,
    input_tokens_details: { text_tokens: Math.max(0, input - inputImage), image_tokens: inputImage },
    output_tokens: output,
    output_tokens_details: { text_tokens: Math.max(0, output - outputImage), image_tokens: outputImage },
    total_tokens: input + output,
  }
}

/** The writer of the client's stream. */
export function newPictureWriter({ task }: ChatRequest, { createdAtSeconds: created }: Seed): MediaWriter {
  const event = (event: MediaEvent): string => {
    if (event.type === 'message') return eventText(event.body)
    return event.type === 'picture' ? eventText(completedEvent(event, { task, created })) : ''
  }
  return { type: 'text/event-stream; charset=utf-8', isBytes: false, event }
}

function eventText(body: JsonObject): string {
  return `event: ${stringOf(body['type']) ?? 'message'}\ndata: ${JSON.stringify(body)}\n\n`
}
