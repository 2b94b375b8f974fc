/**
 * Decodes a whole reply to canonical events, as a stream of one chunk.
 */
import type { EventSink } from '../../../chat/event.js'
import type { JsonValue } from '../../../chat/json.js'
import type { ChatRequest } from '../../../chat/request.js'
import { GeminiDecoder } from './decode-stream.js'

/**
 * Emits a grammatical stream for any body. Never throws, except errors of the sink. An array is decoded as
 * the chunks of a stream, which is Gemini's stream format without `alt=sse`.
 */
export function decodeReply(body: JsonValue, request: ChatRequest, sink: EventSink): void {
  const decoder = new GeminiDecoder(request, sink)
  decoder.take(body)
  decoder.end()
}
