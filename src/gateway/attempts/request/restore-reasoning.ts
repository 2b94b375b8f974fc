/**
 * Reasoning state between turns: what the escrow holds goes into the history that the upstream gets, and the state of
 * its reply is kept before the client gets the end of it.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { ChatEvent } from '../../../chat/event.js'
import { Fold, type Reply } from '../../../chat/reply/fold.js'
import type { JsonObject } from '../../../chat/json.js'
import type { ChatRequest } from '../../../chat/request.js'
import type {
  Choice,
  Endpoint,
  Envelope,
  Ingress,
  ChoicePosition,
  Seed,
  StreamEncoder,
} from '../../../dialects/dialect.js'
import type { WireError } from '../../../errors.js'
import type { Escrow, Scope } from '../../../reasoning/escrow.js'
import type { SizedText } from '../../../wire/frames/sized-text.js'
import type { Generation } from '../../generation/generation.js'
import type { Candidate } from '../../phases/choose.js'
import type { Call } from '../../phases/receive.js'

/** Whose reasoning state it is, and where that of the reply is reported on its way to the store. */
export interface Memory {
  readonly escrow: Escrow
  readonly accountId: string
  /** Null: the state of the reply is not kept. */
  readonly hold: ((kept: Promise<void>) => void) | null
}

/**
 * The call with the history as the candidate gets it. The call itself if there can be no state: the client's own bytes
 * pass, the model does not think, or the escrow is off.
 */
export function withRestoredReasoning(
  call: Call,
  { target, model }: Candidate,
  generation: Generation,
  { escrow, accountId, hold }: Memory,
): Call | Promise<Call> {
  if (target.wire === call.wire || !escrow.enabled) return call
  if (call.request.embedding !== undefined) return call
  if (generation.facts(model).reasoning === false) return call
  const scope: Scope = { accountId, family: target.dialect, model }
  const keep = (reply: Reply): void => {
    const kept = escrow.keep(call.request, reply, scope)
    if (kept !== null) hold?.(kept)
  }
  const ingress = hold === null ? call.ingress : new ReplyObservingIngress(call.ingress, keep)
  const request = escrow.restore(call.request, scope)
  return request instanceof Promise
    ? request.then((restored) => withHistory(call, ingress, restored))
    : withHistory(call, ingress, request)
}

function withHistory(call: Call, ingress: Ingress, request: ChatRequest): Call {
  return { ...call, ingress, request }
}

/** The client's dialect; `onReply` gets the finished reply before its last words are written. */
class ReplyObservingIngress implements Ingress {
  readonly envelope: Envelope
  private readonly ingress: Ingress
  private readonly onReply: (reply: Reply) => void

  constructor(ingress: Ingress, onReply: (reply: Reply) => void) {
    this.ingress = ingress
    this.onReply = onReply
    this.envelope = ingress.envelope
  }

  encodeReply(reply: Reply, request: ChatRequest, seed: Seed): SizedText {
    this.onReply(reply)
    return this.ingress.encodeReply(reply, request, seed)
  }

  encodeChoices(choices: readonly Choice[], request: ChatRequest, seed: Seed): SizedText {
    for (const { reply } of choices) this.onReply(reply)
    return this.ingress.encodeChoices(choices, request, seed)
  }

  newEncoder(request: ChatRequest, seed: Seed, place?: ChoicePosition): StreamEncoder {
    return new ReplyObservingEncoder(this.ingress.newEncoder(request, seed, place), this.onReply)
  }

  peek(body: JsonObject, endpoint: Endpoint): { model: string; stream: boolean } {
    return this.ingress.peek(body, endpoint)
  }

  decodeRequest(body: JsonObject, endpoint: Endpoint, headers?: IncomingHttpHeaders): ChatRequest {
    return this.ingress.decodeRequest(body, endpoint, headers)
  }

  lossOf(event: ChatEvent): string | null {
    return this.ingress.lossOf(event)
  }

  fieldName(path: string): string {
    return this.ingress.fieldName?.(path) ?? path
  }

  encodeError(error: WireError, requestId?: string): { status: number; body: string } {
    return this.ingress.encodeError(error, requestId)
  }

  encodeStreamError(error: WireError, requestId?: string): string {
    return this.ingress.encodeStreamError(error, requestId)
  }
}

/** Puts a reply together while its events go by. */
class ReplyObservingEncoder implements StreamEncoder {
  private readonly encoder: StreamEncoder
  private readonly onReply: (reply: Reply) => void
  private readonly fold = new Fold()

  constructor(encoder: StreamEncoder, onReply: (reply: Reply) => void) {
    this.encoder = encoder
    this.onReply = onReply
  }

  event(event: ChatEvent): void {
    this.fold.event(event)
    if (event.type === 'finish') {
      const reply = this.fold.reply()
      if (reply !== null) this.onReply(reply)
    }
    this.encoder.event(event)
  }

  take(): string {
    return this.encoder.take()
  }

  failed(error: WireError): string | null {
    return this.encoder.failed?.(error) ?? null
  }
}
