/**
 * OpenAI's legacy completions at upstreams. Replies and chunks are converted to those of chat completions,
 * which they resemble, and decoded as such.
 */
import type { EventSink } from '../../../chat/event.js'
import { arrayOf, isObject, type JsonObject, objectOf } from '../../../chat/json.js'
import type { ChatRequest } from '../../../chat/request.js'
import type { Edit } from '../../../wire/json/splice.js'
import type { Losses, StreamDecoder, StreamTap, TapRequest, TapResult } from '../../dialect.js'
import { decodeReply } from '../upstream/decode-reply.js'
import { ChunkDecoder } from '../upstream/decode-stream.js'
import { tapReply, ChunkTap } from '../passthrough/watch-stream.js'
import { withheldEdits } from '../../../wire/withheld-fields.js'

/** Edits of a client's own body: the model's name, and a stream that ends with its usage. */
export function completionEdits(body: JsonObject, model: string, losses: Losses): Edit[] {
  const edits: Edit[] = []
  for (const key in body) if (body[key] === null) edits.push({ key, json: null })
  edits.push(...withheldEdits(body, (path) => losses.drop(path, 'no-equivalent')))
  if (body['model'] !== model) edits.push({ key: 'model', json: JSON.stringify(model) })
  const options = objectOf(body['stream_options'])
  if (body['stream'] === true && options['include_usage'] !== true) {
    edits.push({ key: 'stream_options', json: JSON.stringify({ ...options, include_usage: true }) })
  }
  return edits
}

/** A completion, or one of its chunks, as a chat completion. */
function asChat(body: JsonObject): JsonObject {
  const choices = arrayOf(body['choices']).map((choice) => {
    const { text = '', index = 0, finish_reason: reason = null } = objectOf(choice)
    return { index, finish_reason: reason, delta: text === '' ? {} : { content: text } }
  })
  const { usage, ...others } = body
  return isObject(usage) ? { ...others, choices, usage } : { ...others, choices }
}

/** Decodes a whole reply. */
export function decodeCompletionReply(
  body: JsonObject,
  request: ChatRequest,
  sink: EventSink,
): void {
  decodeReply(asChat(body), request, sink)
}

/** Usage, finish reason, error and model of a whole reply that passes through. */
export function tapCompletion(body: JsonObject): TapResult {
  return tapReply(asChat(body))
}

/** Decodes a stream. */
export class CompletionDecoder implements StreamDecoder {
  private readonly chat: ChunkDecoder

  constructor(request: ChatRequest, sink: EventSink) {
    this.chat = new ChunkDecoder(request, sink)
  }

  frame(name: string, data: string): void {
    this.chat.frame(name, chatFrame(data))
  }

  end(): void {
    this.chat.end()
  }
}

/** Watches a stream that passes through. */
export function newCompletionTap(request: TapRequest): StreamTap {
  return new ChunkTap(request, chatFrame)
}

/**
 * A frame of a completion as one of a chat; the frame itself if it is not an object. The text is bytes read
 * as Latin-1.
 */
function chatFrame(data: string): string {
  try {
    const value: unknown = JSON.parse(data)
    return isObject(value) ? JSON.stringify(asChat(value)) : data
  } catch {
    return data
  }
}
