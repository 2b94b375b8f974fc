/** Passes what is read of replies to those who observe them, before the client gets the end. */
import type { WireError } from '../errors.js'
import type { ChatEvent, EventSink } from './chat/event.js'
import { Fold, type Reply } from './chat/fold.js'
import { objectOf, type JsonObject } from '../base/json.js'
import type { Vectors } from './chat/request.js'
import type { TaskResult } from './chat/task.js'
import type { ClientCodec, StreamEncoder } from './dialect.js'
import type { SizedText } from './wire/frames/sized-text.js'

/** A reply that was read whole; `bytes`: about the size of the body of a task's. */
export type ReadWhole =
  | { readonly kind: 'chat'; readonly reply: Reply }
  | { readonly kind: 'vectors'; readonly vectors: Vectors }
  | { readonly kind: 'task'; readonly result: TaskResult; readonly bytes: number }

/** Gets what is read of the replies to one request, in the order of a list of observers. */
export interface ReplyObserver {
  /** A stream, or a body that passes unchanged, begins: gets its events, each before the client does. */
  readonly events?: () => EventSink
  /** A whole reply, before it is encoded; a stream without `events`, before its end is. */
  readonly whole?: (read: ReadWhole) => void
  /** The name of each tool that the model calls, as the name arrives. */
  readonly tool?: (name: string) => void
  /**
   * The complete reply in the client's format, before its last bytes are written; `upstream`: the name of the
   * one whose own bytes it is, null if the gateway encoded it.
   */
  readonly end?: (reply: JsonObject, upstream: string | null) => void
}

/** The client's format; calls the observers. */
export function observedFormat(clientCodec: ClientCodec, all: readonly ReplyObserver[]): ClientCodec {
  if (all.length === 0) return clientCodec
  const observers = all.filter(({ events, whole, end }) => (events ?? whole ?? end) !== undefined)
  if (observers.length === 0) return clientCodec
  const read = (reply: Reply): void => {
    for (const observer of observers) observer.whole?.({ kind: 'chat', reply })
  }
  const report = (body: SizedText): SizedText => {
    reportEnd(observers, body.text)
    return body
  }
  return {
    ...clientCodec,
    encodeReply: (reply, request, seed) => {
      read(reply)
      return report(clientCodec.encodeReply(reply, request, seed))
    },
    encodeChoices: (choices, request, seed) => {
      for (const { reply } of choices) read(reply)
      return report(clientCodec.encodeChoices(choices, request, seed))
    },
    newEncoder: (request, seed, position) =>
      new ObservedEncoder(clientCodec.newEncoder(request, seed, position), observers),
  }
}

/** Gets the names of the tools that the model calls; undefined: no observer needs them. */
export function toolOf(all: readonly ReplyObserver[]): ReplyObserver['tool'] {
  if (all.length === 0) return undefined
  const observers = all.filter(({ tool }) => tool !== undefined)
  if (observers.length === 0) return undefined
  return (name) => {
    for (const observer of observers) observer.tool?.(name)
  }
}

function reportEnd(observers: readonly ReplyObserver[], text: string | null): void {
  if (text === null || !observers.some(({ end }) => end !== undefined)) return
  const reply = objectOf(JSON.parse(text))
  for (const observer of observers) observer.end?.(reply, null)
}

/** Reports the events and the reply of a stream. */
class ObservedEncoder implements StreamEncoder {
  private readonly encoder: StreamEncoder
  private readonly observers: readonly ReplyObserver[]
  private readonly sinks: readonly EventSink[]

  constructor(encoder: StreamEncoder, observers: readonly ReplyObserver[]) {
    this.encoder = encoder
    this.observers = observers
    this.sinks = observers.flatMap((observer) => sinkOf(observer) ?? [])
  }

  get response(): string | null {
    return this.encoder.response ?? null
  }

  event(event: ChatEvent): void {
    for (const sink of this.sinks) sink.event(event)
    this.encoder.event(event)
    if (event.type === 'finish') reportEnd(this.observers, this.response)
  }

  take(): string {
    return this.encoder.take()
  }

  failed(error: WireError): string | null {
    return this.encoder.failed?.(error) ?? null
  }
}

/** The receiver of the events of a stream; null if the observer needs none. */
function sinkOf(observer: ReplyObserver): EventSink | null {
  if (observer.events !== undefined) return observer.events()
  if (observer.whole === undefined) return null
  const fold = new Fold()
  return {
    event: (event) => {
      fold.event(event)
      const reply = event.type === 'finish' ? fold.reply() : null
      if (reply !== null) observer.whole?.({ kind: 'chat', reply })
    },
  }
}
