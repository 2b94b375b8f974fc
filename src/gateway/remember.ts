/**
 * The tie between an exchange and the escrow: reasoning state goes into the history that the upstream
 * gets, and the state of its reply is kept before the client hears that the reply is complete.
 * Knows no store and no wire format.
 */
import type { ChatEvent } from '../chat/event.js'
import { Fold, type Reply } from '../chat/fold.js'
import type { Ingress, StreamEncoder } from '../dialects/dialect.js'
import type { Escrow, Scope } from '../reasoning/escrow.js'
import type { Exchange } from './exchange.js'
import type { Target } from './generation.js'
import type { Call } from './receive.js'

/**
 * The call as the upstream is to get it. The call itself where no state can be: on bytes that pass as
 * they are, for models that do not think, and where the escrow is off.
 */
export function remembered(
  x: Exchange,
  call: Call,
  target: Target,
  model: string,
  escrow: Escrow,
): Call | Promise<Call> {
  const { accountId } = x
  if (target.dialect === call.dialect || accountId === null || !escrow.enabled) return call
  if (x.generation.facts(model).reasoning === false) return call
  const scope: Scope = { accountId, family: target.dialect, model }
  const ingress = listening(call.ingress, (reply) => {
    x.holding = escrow.keep(call.request, reply, scope)
  })
  const request = escrow.restore(call.request, scope)
  return request instanceof Promise
    ? request.then((restored) => ({ ...call, ingress, request: restored }))
    : { ...call, ingress, request }
}

/** The client's dialect; `heard` gets the finished reply before its last words are written. */
function listening(ingress: Ingress, heard: (reply: Reply) => void): Ingress {
  return {
    ...ingress,
    encodeReply(reply, request, seed) {
      heard(reply)
      return ingress.encodeReply(reply, request, seed)
    },
    newEncoder: (request, seed) => new Listening(ingress.newEncoder(request, seed), heard),
  }
}

/** Puts a reply together while its events go by. */
class Listening implements StreamEncoder {
  private readonly encoder: StreamEncoder
  private readonly heard: (reply: Reply) => void
  private readonly fold = new Fold()

  constructor(encoder: StreamEncoder, heard: (reply: Reply) => void) {
    this.encoder = encoder
    this.heard = heard
  }

  event(event: ChatEvent): void {
    this.fold.event(event)
    if (event.type === 'finish') {
      const reply = this.fold.reply()
      if (reply !== null) this.heard(reply)
    }
    this.encoder.event(event)
  }

  take(): string {
    return this.encoder.take()
  }
}
