/** Decodes whole responses. */
import type { EventSink } from '../../../chat/event.js'
import type { JsonObject } from '../../../chat/json.js'
import type { ChatRequest } from '../../../chat/request.js'
import { EventDecoder } from './decode-stream.js'

/** Emits the events that a stream of the same response would. Never throws. */
export function decodeReply(body: JsonObject, request: ChatRequest, sink: EventSink): void {
  new EventDecoder(request, sink).whole(body)
}
