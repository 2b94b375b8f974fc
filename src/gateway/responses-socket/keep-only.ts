/**
 * Answers a turn with `generate: false`: its conversation was checked and is kept, no upstream gets a
 * request, and nothing is charged. Codex sends one before the first turn of a connection.
 */
import { objectOf } from '../../base/json.js'
import { EventEncoder } from '../../formats/openai-responses/client/encode-stream.js'
import { sendReply } from '../../http/respond.js'
import type { Exchange } from '../client-exchange.js'
import { sent } from '../phases/relay.js'
import type { Delivery } from '../phases/phase-results.js'
import { replyHeaders } from '../phases/reply-headers.js'

/** Sends `response.created` and `response.completed` without output. */
export async function answerKept(x: Exchange): Promise<Delivery> {
  const { request, clientCodec, keep } = x.call
  const id = clientCodec.envelope.idPrefix + x.id
  const createdAtSeconds = Math.floor(Date.now() / 1000)
  const encoder = new EventEncoder(request, { id, createdAtSeconds, model: request.model })
  encoder.event({ type: 'start', id, model: request.model })
  encoder.event({ type: 'usage', usage: { input: 0, output: 0 } })
  encoder.event({ type: 'finish', reason: 'stop', raw: null })
  const body = encoder.take()
  await keep?.(objectOf(JSON.parse(encoder.response ?? '{}')), null)
  const headers = ['content-type', 'text/event-stream', ...replyHeaders(x, 'whole')]
  sendReply(x.res, { status: 200, headers, body })
  return sent(Buffer.byteLength(body))
}
