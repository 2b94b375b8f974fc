/**
 * A whole answer to canonical events: one chunk and the end, through the decoder of streams.
 * Knows nothing of its own, so a whole answer and a stream cannot differ.
 */
import type { EventSink } from '../../../chat/event.js'
import type { JsonValue } from '../../../chat/json.js'
import type { ChatRequest } from '../../../chat/request.js'
import { GeminiDecoder } from './decode-stream.js'

/**
 * Emits a grammatical stream whatever the body is; never throws. An array is taken as the chunks of
 * a stream, which is how Gemini answers a stream request without `alt=sse`.
 */
export function decodeReply(body: JsonValue, request: ChatRequest, sink: EventSink): void {
  const decoder = new GeminiDecoder(request, sink)
  decoder.take(body)
  decoder.end()
}
