/**
 * A whole Messages reply to the events that a stream of the same answer would have made.
 * Tool input is written again as JSON, integers beyond 2^53 with all their digits.
 */
import type { EventSink } from '../../../chat/event.js'
import { isObject, type JsonObject } from '../../../chat/json.js'
import type { ChatRequest } from '../../../chat/request.js'
import { MessageDecoder } from './reply/decode-message.js'

/** Emits a grammatical stream whatever the body is; never throws, save what the sink throws. */
export function decodeReply(body: JsonObject, request: ChatRequest, sink: EventSink): void {
  const message = new MessageDecoder(request, sink)
  if (body.type === 'error' || isObject(body.error)) return message.error(body)
  if (!Array.isArray(body.content)) return message.malformed('the reply has no content')
  message.begin(body)
  body.content.forEach((block, at) => {
    message.blockStart(at, block)
    message.blockStop(at)
  })
  message.messageDelta(body, undefined)
  message.finish(body.content)
}
