/**
 * Decodes a whole Messages reply to the same events as a stream of it.
 * Tool input is serialized again as JSON; integers beyond 2^53 keep all their digits.
 */
import type { EventSink } from '../../../chat/event.js'
import { isObject, type JsonObject } from '../../../chat/json.js'
import type { ChatRequest } from '../../../chat/request.js'
import { MessageDecoder } from './reply/decode-message.js'

/** Emits a grammatical stream for any body. Never throws, except errors of the sink. */
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
