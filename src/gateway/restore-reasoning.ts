/**
 * Keeps reasoning state between turns: restores stored state in the history that the upstream gets, and
 * stores the state of its reply before the client gets the end.
 */
import type { Reply } from '../formats/chat/fold.js'
import type { ChatRequest } from '../formats/chat/request.js'
import type { ClientCodec } from '../formats/dialect.js'
import type { Escrow, Scope } from './reasoning/escrow.js'
import { inTurns } from './streams/in-turns.js'
import { LARGE_BYTES } from './streams/join-chunks.js'
import { observedFormat } from './streams/observe-reply.js'
import type { RequestContext } from './client-exchange.js'
import type { Candidate } from './phases/choose-route.js'
import type { Call } from './phases/receive.js'

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
  { generation }: Pick<RequestContext, 'generation'>,
): Call | Promise<Call> {
  if (target.wire === call.wire || !escrow.enabled) return call
  if (call.request.embedding !== undefined) return call
  const family = target.upstreamCodec.stateOrigin ?? target.dialect
  // Claude's signatures are valid at all clouds, whose ids of a model differ.
  const name = family === 'anthropic' ? generation.facts(model).id : model
  const scope: Scope = { accountId, family, model: name }
  const keep = (reply: Reply): void => {
    const written = escrow.keep(call.request, reply, scope)
    if (written !== null) hold?.(written)
  }
  const clientCodec =
    hold === null ? call.clientCodec : observedFormat(call.clientCodec, { onReply: keep })
  const turns = call.raw.length > LARGE_BYTES ? escrow.turnsOf(call.request, scope) : null
  const request =
    turns === null
      ? escrow.restore(call.request, scope)
      : inTurns(turns).then((named) => escrow.restore(call.request, scope, named))
  return request instanceof Promise
    ? request.then((restored) => withHistory(call, clientCodec, restored))
    : withHistory(call, clientCodec, request)
}

function withHistory(call: Call, clientCodec: ClientCodec, request: ChatRequest): Call {
  return { ...call, clientCodec, request }
}
