/** Sends an admitted request to its upstreams, in order, until one begins a reply. */
import { headerOf, type HttpRequest } from '../../http/message.js'
import { Preparation, type Request } from '../attempts/prepare-candidate.js'
import type { StartedReply } from '../attempts/attempt.js'
import { sharedIdempotencyKey } from '../native/native-headers.js'
import { Hedging } from '../attempts/start-hedge.js'
import { Candidates, type SendOptions } from '../attempts/try-candidates.js'
import { SendResult, type ReplyListener } from '../attempts/attempt-result.js'
import type { Escrow } from '../reasoning/escrow.js'
import type { ServedRequest } from '../served-request.js'

/** The services for sending requests. */
export interface SendServices extends Pick<SendOptions, 'timeouts' | 'drainedReplySlots'> {
  readonly escrow: Escrow
}

/** How a request is sent, beside its route. */
export interface Outbound {
  readonly states: SendOptions['states']
  readonly terms: ClientTerms
  readonly reasoning: ReasoningUse
  /** Marks prompts for the providers' caches; null if the route does not. */
  readonly mark: Request['mark']
  /** Get what each attempt sends and receives, in this order. */
  readonly listeners: readonly ReplyListener[]
}

/**
 * The account whose reasoning state of earlier turns is used, and whether the state of the reply is stored.
 */
interface ReasoningUse {
  readonly accountId: string
  readonly isKept: boolean
}

/**
 * Sends the request, and fills its slot of attempts. Resolves at the first content of a reply; rejects with
 * `GatewayError`. The reply is handled until it ends, and `x.ending` is called before the client gets the
 * end.
 */
export function send(
  x: ServedRequest,
  { states, terms, reasoning, mark, listeners }: Outbound,
  { timeouts, drainedReplySlots, escrow }: SendServices,
): Promise<StartedReply> {
  const sent = new SendResult(listeners)
  x.attempts = sent
  const { timeoutMs, idempotencyKey } = terms
  const { accountId, isKept } = reasoning
  const delayEndUntil = (written: Promise<void>): void => sent.delayEndUntil(written)
  const memory = { escrow, accountId, delayEndUntil: isKept ? delayEndUntil : null }
  const hedging = Hedging.of(x)
  const preparation = new Preparation({ x, memory, idempotencyKey, sent, mark })
  const candidateLoop = new Candidates({
    x,
    sent,
    timeouts,
    drainedReplySlots,
    states,
    preparation,
    hedging,
    timeoutMs,
    isRepeatable: idempotencyKey !== null || x.route.handling.retry.nonIdempotent,
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

/** Stores the reply if it must be stored, which the end of the reply waits for; null if it is not. */
export function keeper(x: ServedRequest): ReplyListener | null {
  const { keep } = x.call
  if (keep === undefined) return null
  return { end: (reply, upstream) => x.attempts?.delayEndUntil(keep(reply, upstream)) }
}
