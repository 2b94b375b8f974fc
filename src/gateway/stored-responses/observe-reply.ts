/** Passes the reply that a client gets to the store of responses, for whole replies and streams. */
import type { ChatEvent } from '../../chat/event.js'
import { objectOf, type JsonObject } from '../../chat/json.js'
import type { Ingress, StreamEncoder } from '../../dialects/dialect.js'
import type { WireError } from '../../errors.js'
import type { SizedText } from '../../wire/frames/sized-text.js'
import type { Call, KeepReply } from '../phases/receive.js'

/**
 * The call, with its reply passed to `keep` if it must be stored. `hold` is called with the promise that the
 * end of the reply waits for.
 */
export function withKeptReply(call: Call, hold: (written: Promise<void>) => void): Call {
  const { keep } = call
  if (keep === undefined) return call
  const keepAndHold: KeepReply = (reply, upstream) => {
    const written = keep(reply, upstream)
    hold(written)
    return written
  }
  const ingress = replyObservingIngress(call.ingress, (reply) => void keepAndHold(reply, null))
  return { ...call, keep: keepAndHold, ingress }
}

/** The client's format; calls `onReply` with the client's reply before the last bytes of it are written. */
function replyObservingIngress(ingress: Ingress, onReply: (reply: JsonObject) => void): Ingress {
  const report = (body: SizedText): SizedText => {
    onReply(objectOf(JSON.parse(body.text)))
    return body
  }
  return {
    ...ingress,
    encodeReply: (...args) => report(ingress.encodeReply(...args)),
    encodeChoices: (...args) => report(ingress.encodeChoices(...args)),
    newEncoder: (...args) => new ReplyObservingEncoder(ingress.newEncoder(...args), onReply),
  }
}

/** Calls `onReply` with the whole reply when the stream is complete. */
class ReplyObservingEncoder implements StreamEncoder {
  private readonly encoder: StreamEncoder
  private readonly onReply: (reply: JsonObject) => void

  constructor(encoder: StreamEncoder, onReply: (reply: JsonObject) => void) {
    this.encoder = encoder
    this.onReply = onReply
  }

  event(event: ChatEvent): void {
    this.encoder.event(event)
    if (event.type !== 'finish') return
    const { response = null } = this.encoder
    if (response !== null) this.onReply(objectOf(JSON.parse(response)))
  }

  take(): string {
    return this.encoder.take()
  }

  failed(error: WireError): string | null {
    return this.encoder.failed?.(error) ?? null
  }
}
