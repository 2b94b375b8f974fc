/**
 * The tie between an exchange and the escrow: reasoning state goes into the history that the upstream
 * gets, and the state of its reply is kept before the client hears that the reply is complete.
 * Knows no store and no wire format.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { ChatEvent } from '../chat/event.js'
import { Fold, type Reply } from '../chat/fold.js'
import type { JsonObject } from '../chat/json.js'
import type { ChatRequest } from '../chat/request.js'
import type {
  Choice,
  Endpoint,
  Envelope,
  Ingress,
  Place,
  Seed,
  StreamEncoder,
} from '../dialects/dialect.js'
import type { WireError } from '../errors.js'
import type { Escrow, Scope } from '../reasoning/escrow.js'
import type { Sized } from '../wire/sized.js'
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
  const ingress = new ListeningIngress(call.ingress, (reply) => {
    x.holding = together(x.holding, escrow.keep(call.request, reply, scope))
  })
  const request = escrow.restore(call.request, scope)
  return request instanceof Promise
    ? request.then((restored) => withHistory(call, ingress, restored))
    : withHistory(call, ingress, request)
}

/** Of several answers to one request each has its own state. */
function together(one: Promise<void> | null, other: Promise<void> | null): Promise<void> | null {
  if (one === null || other === null) return one ?? other
  return Promise.all([one, other]).then(() => undefined)
}

function withHistory(call: Call, ingress: Ingress, request: ChatRequest): Call {
  return { ...call, ingress, request }
}

/** The client's dialect; `heard` gets the finished reply before its last words are written. */
class ListeningIngress implements Ingress {
  readonly envelope: Envelope
  private readonly ingress: Ingress
  private readonly heard: (reply: Reply) => void

  constructor(ingress: Ingress, heard: (reply: Reply) => void) {
    this.ingress = ingress
    this.heard = heard
    this.envelope = ingress.envelope
  }

  encodeReply(reply: Reply, request: ChatRequest, seed: Seed): Sized {
    this.heard(reply)
    return this.ingress.encodeReply(reply, request, seed)
  }

  encodeChoices(choices: readonly Choice[], request: ChatRequest, seed: Seed): Sized {
    for (const { reply } of choices) this.heard(reply)
    return this.ingress.encodeChoices(choices, request, seed)
  }

  newEncoder(request: ChatRequest, seed: Seed, place?: Place): StreamEncoder {
    return new Listening(this.ingress.newEncoder(request, seed, place), this.heard)
  }

  peek(body: JsonObject, endpoint: Endpoint): { model: string; stream: boolean } {
    return this.ingress.peek(body, endpoint)
  }

  decodeRequest(body: JsonObject, endpoint: Endpoint, headers?: IncomingHttpHeaders): ChatRequest {
    return this.ingress.decodeRequest(body, endpoint, headers)
  }

  unsaid(event: ChatEvent): string | null {
    return this.ingress.unsaid(event)
  }

  encodeError(error: WireError, requestId?: string): { status: number; body: string } {
    return this.ingress.encodeError(error, requestId)
  }

  encodeStreamError(error: WireError, requestId?: string): string {
    return this.ingress.encodeStreamError(error, requestId)
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
