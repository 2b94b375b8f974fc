/** Runs decoders behind the production grammar, for the tests of all dialects. */
import type { ChatEvent, EventSink } from '../../src/formats/chat/event.js'
import { Grammar } from '../../src/formats/chat/grammar.js'
import { Fold, type Reply } from '../../src/formats/chat/fold.js'
import { GatewayError, type WireError } from '../../src/errors.js'

/** The output of a decoder. */
export interface Decoded {
  readonly events: ChatEvent[]
  /** The rule of the grammar that the decoder broke; null if it broke none. */
  readonly breach: string | null
  /** The folded reply; null if it ended in an error. */
  readonly reply: Reply | null
  readonly error: WireError | null
  readonly usage: Reply['usage']
}

/** Collects copies of the events that `run` emits, made when they are emitted. */
export function collectEvents(run: (sink: EventSink) => void): Decoded {
  const events: ChatEvent[] = []
  const fold = new Fold()
  const grammar = new Grammar({
    event(event) {
      events.push(structuredClone(event))
      fold.event(event)
    },
  })
  run(grammar)
  return {
    events,
    breach: grammar.breach,
    reply: fold.reply(),
    error: fold.error,
    usage: fold.partialUsage(),
  }
}

/** The `GatewayError` that a function throws. Rethrows any other error, and throws if there is none. */
export function refusalOf(run: () => unknown): WireError {
  try {
    run()
  } catch (error) {
    if (error instanceof GatewayError) return error.wire
    throw error
  }
  throw new Error('the call did not throw')
}
