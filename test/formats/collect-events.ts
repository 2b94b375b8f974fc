/** Runs decoders behind the production grammar, for the tests of all dialects. */
import type { ChatEvent, EventSink } from '../../src/formats/chat/event.js'
import { Grammar } from '../../src/formats/chat/grammar.js'
import { Fold, type Reply } from '../../src/formats/chat/fold.js'
import { arrayOf, isObject, objectOf, stringOf } from '../../src/base/json.js'
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

/**
 * The error that a function throws, or that the request it decodes is for other vendors. Rethrows any other
 * error, and throws if there is none.
 */
export function refusalOf(run: () => unknown): WireError {
  try {
    const broken = brokenRule(run())
    if (broken !== null) return broken
  } catch (error) {
    if (error instanceof GatewayError) return error.wire
    throw error
  }
  throw new Error('the call did not throw')
}

/** The rule that a decoded request breaks, which its own vendor judges; other upstreams refuse it. */
export function brokenRule(request: unknown): WireError | null {
  for (const field of isObject(request) ? arrayOf(request['native']) : []) {
    const { isMalformed, refusal, path } = objectOf(field)
    if (isMalformed !== true) continue
    return { kind: 'malformed_request', message: stringOf(refusal) ?? '', param: stringOf(path) ?? '' }
  }
  return null
}
