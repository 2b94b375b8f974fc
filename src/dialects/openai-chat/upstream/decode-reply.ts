/** Decodes whole replies. */
import type { EventSink } from '../../../chat/event.js'
import type { JsonObject } from '../../../chat/json.js'
import type { ChatRequest } from '../../../chat/request.js'
import { ChunkDecoder } from './decode-stream.js'

/** Emits the events that a stream of the same reply would. Never throws. */
export function decodeReply(body: JsonObject, request: ChatRequest, sink: EventSink): void {
  new ChunkDecoder(request, sink).whole(body)
}
