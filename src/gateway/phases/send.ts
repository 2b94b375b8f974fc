/** Sends an admitted request to its upstreams, in order, until one begins a reply. */
import { headerOf, type HttpRequest } from '../../http/message.js'
import type { Escrow } from '../../reasoning/escrow.js'
import { Candidates } from '../attempts/try-candidates.js'
import { Hedging } from '../attempts/hedge/hedging.js'
import { Preparation } from '../attempts/request/prepare-candidate.js'
import type { SendOptions } from '../attempts/send-options.js'
import { SendProgress } from '../attempts/send-progress.js'
import { withKeptReply } from '../stored-responses/stored-responses.js'
import type { Route } from './choose-route.js'
import type { Call } from './receive.js'

/** The services for sending requests. */
export interface SendServices extends Pick<SendOptions, 'deadlines' | 'drainedReplySlots'> {
  readonly escrow: Escrow
}

/** An admitted request. */
export interface Outbound extends Pick<
  SendOptions,
  'exchange' | 'held' | 'states' | 'reservation'
> {
  readonly call: Call
  readonly route: Pick<Route, 'candidates' | 'handling'>
  readonly terms: ClientTerms
  readonly reasoning: ReasoningUse
}

/** The settings that the client sends in headers. */
export interface ClientTerms extends Pick<SendOptions, 'timeoutMs'> {
  /** The value of `idempotency-key`; null if the client sent none. */
  readonly idempotencyKey: string | null
}

/**
 * The account whose reasoning state of earlier turns is used, and whether the state of the reply is stored.
 */
export interface ReasoningUse {
  readonly accountId: string
  readonly isKept: boolean
}

const KEY_CHARS = 256

/**
 * Starts the candidate loop. Its `reply` resolves at the first content. The loop handles the reply until it
 * ends, and calls `ending` before the client gets the end.
 */
export function send(
  { exchange, call, route, held, states, reservation, terms, reasoning }: Outbound,
  ending: () => Promise<void> | null,
  { deadlines, drainedReplySlots, escrow }: SendServices,
): Candidates {
  const { candidates, handling } = route
  const { timeoutMs, idempotencyKey } = terms
  const { accountId, isKept } = reasoning
  const hedging = Hedging.of({ request: call.request, candidates, handling }, exchange.generation)
  const hold = (written: Promise<void>): void => sent.hold(written)
  const memory = { escrow, accountId, hold: isKept ? hold : null }
  const keepingCall = withKeptReply(call, hold)
  const preparation = new Preparation({ exchange, call: keepingCall, held, memory, idempotencyKey })
  const sent = new SendProgress(preparation, hedging)
  const sending = new Candidates({
    exchange,
    held,
    deadlines,
    drainedReplySlots,
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
  sending.start()
  return sending
}

/** Reads the client's settings from the headers of the request. */
export function termsOf(req: HttpRequest): ClientTerms {
  const key = headerOf(req, 'idempotency-key')?.slice(0, KEY_CHARS) ?? ''
  const timeoutMs = timeoutOf(headerOf(req, 'x-request-timeout-ms'))
  return { timeoutMs, idempotencyKey: key === '' ? null : key }
}

/** The client's deadline in ms; infinite if the header is absent or not a positive integer. */
function timeoutOf(header: string | undefined): number {
  const ms = header !== undefined && /^\d{1,9}$/.test(header) ? Number(header) : 0
  return ms > 0 ? ms : Number.POSITIVE_INFINITY
}
