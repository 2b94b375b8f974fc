/**
 * Keeps reasoning state between turns: restores stored state in the history that the upstream gets, and
 * stores the state of its reply before the client gets the end.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { ChatEvent } from '../../formats/chat/event.js'
import { Fold, type Reply } from '../../formats/chat/fold.js'
import type { JsonObject } from '../../formats/chat/json.js'
import type { ChatRequest } from '../../formats/chat/request.js'
import type {
  Choice,
  Endpoint,
  Envelope,
  Ingress,
  ChoicePosition,
  Seed,
  StreamEncoder,
} from '../../formats/dialect.js'
import type { WireError } from '../../errors.js'
import type { Escrow, Scope } from '../reasoning/escrow.js'
import type { SizedText } from '../../formats/wire/frames/sized-text.js'
import { inTurns } from '../streams/in-turns.js'
import { LARGE_BYTES } from '../streams/join-chunks.js'
import type { Candidate } from '../phases/choose-route.js'
import type { Call } from '../phases/receive.js'

/** The account that the reasoning state belongs to, and the store for the state of the reply. */
export interface Memory {
  readonly escrow: Escrow
  readonly accountId: string
  /** Gets the promise of each write; null: the state of the reply is not stored. */
  readonly hold: ((written: Promise<void>) => void) | null
}

/**
 * The call with restored state in its history. Returns the call itself if there can be no state: the client's
 * own bytes pass, or the store of reasoning state is off.
 */
export function withRestoredReasoning(
  call: Call,
  { target, model }: Candidate,
  { escrow, accountId, hold }: Memory,
): Call | Promise<Call> {
  if (target.wire === call.wire || !escrow.enabled) return call
  if (call.request.embedding !== undefined) return call
  const family = target.egress.stateOrigin ?? target.dialect
  const scope: Scope = { accountId, family, model }
  const keep = (reply: Reply): void => {
    const written = escrow.keep(call.request, reply, scope)
    if (written !== null) hold?.(written)
  }
  const ingress = hold === null ? call.ingress : new ReplyObservingIngress(call.ingress, keep)
  const turns = call.raw.length > LARGE_BYTES ? escrow.turnsOf(call.request, scope) : null
  const request =
    turns === null
      ? escrow.restore(call.request, scope)
      : inTurns(turns).then((named) => escrow.restore(call.request, scope, named))
  return request instanceof Promise
    ? request.then((restored) => withHistory(call, ingress, restored))
    : withHistory(call, ingress, request)
}

function withHistory(call: Call, ingress: Ingress, request: ChatRequest): Call {
  return { ...call, ingress, request }
}

/** The client's dialect; calls `onReply` with the complete reply before its end is encoded. */
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

/** Folds the events of a stream into a reply. */
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
