/** Passes complete replies to the stores that need them, before the client gets the end. */
import type { WireError } from '../../errors.js'
import type { ChatEvent } from '../../formats/chat/event.js'
import { Fold, type Reply } from '../../formats/chat/fold.js'
import { objectOf, type JsonObject } from '../../formats/chat/json.js'
import type { ClientCodec, StreamEncoder } from '../../formats/dialect.js'
import type { SizedText } from '../../formats/wire/frames/sized-text.js'

/** Gets each complete reply of one request. */
interface ReplyObserver {
  /** The canonical reply, before its end is encoded. */
  readonly onReply?: (reply: Reply) => void
  /** The reply in the client's format. */
  readonly onEncoded?: (reply: JsonObject) => void
}

/** The client's format; calls `observer` before the last bytes of a reply are written. */
export function observedFormat(clientCodec: ClientCodec, observer: ReplyObserver): ClientCodec {
  const { onReply, onEncoded } = observer
  const report = (body: SizedText): SizedText => {
    onEncoded?.(objectOf(JSON.parse(body.text)))
    return body
  }
  return {
    ...clientCodec,
    encodeReply: (reply, request, seed) => {
      onReply?.(reply)
      return report(clientCodec.encodeReply(reply, request, seed))
    },
    encodeChoices: (choices, request, seed) => {
      for (const { reply } of choices) onReply?.(reply)
      return report(clientCodec.encodeChoices(choices, request, seed))
    },
    newEncoder: (request, seed, position) =>
      new ObservedEncoder(clientCodec.newEncoder(request, seed, position), observer),
  }
}

/** Reports the reply of a stream when it is complete. */
class ObservedEncoder implements StreamEncoder {
  private readonly encoder: StreamEncoder
  private readonly observer: ReplyObserver
  /** Null if the canonical reply is not needed. */
  private readonly fold: Fold | null

  constructor(encoder: StreamEncoder, observer: ReplyObserver) {
    this.encoder = encoder
    this.observer = observer
    this.fold = observer.onReply === undefined ? null : new Fold()
  }

  event(event: ChatEvent): void {
    const { encoder, fold, observer } = this
    fold?.event(event)
    const reply = event.type === 'finish' ? (fold?.reply() ?? null) : null
    if (reply !== null) observer.onReply?.(reply)
    encoder.event(event)
    const { response = null } = encoder
    if (event.type !== 'finish' || response === null) return
    observer.onEncoded?.(objectOf(JSON.parse(response)))
  }

  take(): string {
    return this.encoder.take()
  }

  failed(error: WireError): string | null {
    return this.encoder.failed?.(error) ?? null
  }
}
