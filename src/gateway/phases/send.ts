/** Sends an admitted request to its upstreams, in order, until one begins a reply. */
import type { Identity } from '../../accounts/account.js'
import { observedFormat } from '../../formats/observed-format.js'
import { headerOf, type HttpRequest } from '../../http/message.js'
import { Preparation, type Request } from '../attempts/prepare-candidate.js'
import type { StartedReply } from '../attempts/attempt.js'
import { sharedIdempotencyKey } from '../native/native-headers.js'
import { Hedging } from '../attempts/start-hedge.js'
import { Candidates, type SendOptions } from '../attempts/try-candidates.js'
import type { Escrow } from '../reasoning/escrow.js'
import type { Route } from './choose-route.js'
import type { Call, KeepReply } from './call.js'

/** The services for sending requests. */
export interface SendServices extends Pick<SendOptions, 'timeouts' | 'drainedReplySlots'> {
  readonly escrow: Escrow
}

/** An admitted request. */
export interface Outbound extends Pick<SendOptions, 'exchange' | 'held' | 'states' | 'reservation' | 'sent'> {
  /** The key that the request is charged to. */
  readonly identity: Pick<Identity, 'accountId' | 'keyId'>
  readonly call: Call
  readonly route: Pick<Route, 'candidates' | 'handling'>
  readonly terms: ClientTerms
  readonly reasoning: ReasoningUse
  /** Marks prompts for the providers' caches; null if the route does not. */
  readonly mark: Request['mark']
}

/**
 * The account whose reasoning state of earlier turns is used, and whether the state of the reply is stored.
 */
interface ReasoningUse {
  readonly accountId: string
  readonly isKept: boolean
}

/**
 * Sends the request. Resolves at the first content of a reply; rejects with `GatewayError`. The reply is
 * handled until it ends, and `ending` is called before the client gets the end.
 */
export function send(
  outbound: Outbound,
  ending: () => Promise<void> | null,
  { timeouts, drainedReplySlots, escrow }: SendServices,
): Promise<StartedReply> {
  const { exchange, call, route, held, states, reservation, sent, terms, reasoning, mark } = outbound
  const { candidates, handling } = route
  const { timeoutMs, idempotencyKey } = terms
  const { accountId, isKept } = reasoning
  const hedging = Hedging.of({ request: call.request, candidates, handling }, exchange.generation)
  const delayEndUntil = (written: Promise<void>): void => sent.delayEndUntil(written)
  const memory = { escrow, accountId, delayEndUntil: isKept ? delayEndUntil : null }
  const keepingCall = withKeptReply(call, delayEndUntil)
  const request = { exchange, call: keepingCall, held, memory, idempotencyKey, sent, mark }
  const preparation = new Preparation(request)
  const { identity } = outbound
  const candidateLoop = new Candidates({
    exchange,
    held,
    timeouts,
    drainedReplySlots,
    payer: {
      accountId: identity.accountId,
      keyId: identity.keyId,
      hasBudget: reservation?.hasBudget ?? false,
    },
    candidates,
    handling,
    states,
    preparation,
    hedging,
    reservation,
    sent,
    timeoutMs,
    isRepeatable: idempotencyKey !== null || handling.retry.nonIdempotent,
    ending,
  })
  return candidateLoop.send()
}

/** The settings that the client sends in headers. */
interface ClientTerms extends Pick<SendOptions, 'timeoutMs'> {
  /** The `idempotency-key` for upstreams; null if the client sent none. */
  readonly idempotencyKey: string | null
}

/** Of a request that no client waits for. */
export const NO_TERMS: ClientTerms = { timeoutMs: Number.POSITIVE_INFINITY, idempotencyKey: null }

/**
 * Reads the client's deadline (`x-request-timeout-ms`) and `idempotency-key` from the headers. A request with
 * a key may be sent again after an attempt whose outcome is unknown.
 */
export function termsOf(req: HttpRequest, accountId: string): ClientTerms {
  const key = headerOf(req, 'idempotency-key') ?? ''
  const timeoutMs = timeoutOf(headerOf(req, 'x-request-timeout-ms'))
  return { timeoutMs, idempotencyKey: key === '' ? null : sharedIdempotencyKey(key, accountId) }
}

/** The client's deadline in ms; infinite if the header is absent or not a positive integer. */
function timeoutOf(header: string | undefined): number {
  const ms = header !== undefined && /^\d{1,9}$/.test(header) ? Number(header) : 0
  return ms > 0 ? ms : Number.POSITIVE_INFINITY
}

/**
 * The call, with its reply passed to `keep` if it must be stored. `delayEndUntil` is called with the promise
 * that the end of the reply waits for.
 */
export function withKeptReply(call: Call, delayEndUntil: (written: Promise<void>) => void): Call {
  const { keep } = call
  if (keep === undefined) return call
  const keepAndDelay: KeepReply = (reply, upstream) => {
    const written = keep(reply, upstream)
    delayEndUntil(written)
    return written
  }
  const clientCodec = observedFormat(call.clientCodec, {
    onEncoded: (reply) => void keepAndDelay(reply, null),
  })
  return { ...call, keep: keepAndDelay, clientCodec }
}
