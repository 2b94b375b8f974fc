/**
 * A whole Messages reply to the events that a stream of the same answer would have made.
 * Tool input is written again as JSON, integers beyond 2^53 with all their digits.
 */
import type { EventSink } from '../../../chat/event.js'
import { isObject, type JsonObject } from '../../../chat/json.js'
import type { ChatRequest } from '../../../chat/request.js'
import { Answer } from './reply/decode-message.js'

/** Emits a grammatical stream whatever the body is; never throws, save what the sink throws. */
export function decodeReply(body: JsonObject, request: ChatRequest, sink: EventSink): void {
  const answer = new Answer(request, sink)
  if (body.type === 'error' || isObject(body.error)) return answer.error(body)
  if (!Array.isArray(body.content)) return answer.malformed('the reply has no content')
  answer.begin(body)
  body.content.forEach((block, at) => {
    answer.blockStart(at, block)
    answer.blockStop(at)
  })
  answer.messageDelta(body, undefined)
  answer.finish(body.content)
}
