/** Passes complete replies to the stores that need them, before the client gets the end. */
import type { WireError } from '../errors.js'
import type { ChatEvent, EventSink } from './chat/event.js'
import { Fold, type Reply } from './chat/fold.js'
import { objectOf, type JsonObject } from '../base/json.js'
import type { ClientCodec, StreamEncoder } from './dialect.js'
import type { SizedText } from './wire/frames/sized-text.js'

/** Gets each complete reply of one request. */
interface ReplyObserver {
  /** The canonical reply, before its end is encoded. */
  readonly onReply?: (reply: Reply) => void
  /** Creates a receiver of a stream's events, which gets each before it is encoded, instead of `onReply`. */
  readonly newSink?: () => EventSink
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

/** Reports the events and the reply of a stream. */
class ObservedEncoder implements StreamEncoder {
  private readonly encoder: StreamEncoder
  /** Null if the canonical reply is not needed. */
  private readonly sink: EventSink | null
  private readonly onEncoded: ReplyObserver['onEncoded']

  constructor(encoder: StreamEncoder, { onReply, newSink, onEncoded }: ReplyObserver) {
    this.encoder = encoder
    this.sink = newSink?.() ?? (onReply === undefined ? null : foldInto(onReply))
    this.onEncoded = onEncoded
  }

  get response(): string | null {
    return this.encoder.response ?? null
  }

  event(event: ChatEvent): void {
    this.sink?.event(event)
    this.encoder.event(event)
    if (event.type !== 'finish' || this.onEncoded === undefined) return
    const { response } = this
    if (response !== null) this.onEncoded(objectOf(JSON.parse(response)))
  }

  take(): string {
    return this.encoder.take()
  }

  failed(error: WireError): string | null {
    return this.encoder.failed?.(error) ?? null
  }
}

/** Calls `onReply` with the reply when it is complete. */
function foldInto(onReply: (reply: Reply) => void): EventSink {
  const fold = new Fold()
  return {
    event: (event) => {
      fold.event(event)
      const reply = event.type === 'finish' ? fold.reply() : null
      if (reply !== null) onReply(reply)
    },
  }
}
