/** Sends an admitted request to its upstreams, in order, until one begins a reply. */
import type { Identity } from '../../accounts/account.js'
import type { Escrow } from '../../reasoning/escrow.js'
import { Candidates } from '../attempts/try-candidates.js'
import { Hedging } from '../attempts/hedge/start-hedge.js'
import { Preparation } from '../attempts/request/prepare-candidate.js'
import type { SendOptions } from '../attempts/send-options.js'
import { SendProgress } from '../attempts/send-progress.js'
import { withKeptReply } from '../stored-responses/observe-reply.js'
import type { Route } from './choose-route.js'
import type { Call } from './receive.js'
import type { ClientTerms } from './timeout-and-idempotency.js'

/** The services for sending requests. */
export interface SendServices extends Pick<SendOptions, 'deadlines' | 'drainedReplySlots'> {
  readonly escrow: Escrow
}

/** An admitted request. */
export interface Outbound extends Pick<
  SendOptions,
  'exchange' | 'held' | 'states' | 'reservation'
> {
  /** The key that the request is charged to. */
  readonly identity: Pick<Identity, 'accountId' | 'keyId'>
  readonly call: Call
  readonly route: Pick<Route, 'candidates' | 'handling'>
  readonly terms: ClientTerms
  readonly reasoning: ReasoningUse
}

/**
 * The account whose reasoning state of earlier turns is used, and whether the state of the reply is stored.
 */
export interface ReasoningUse {
  readonly accountId: string
  readonly isKept: boolean
}

/**
 * Starts the candidate loop. Its `reply` resolves at the first content. The loop handles the reply until it
 * ends, and calls `ending` before the client gets the end.
 */
export function send(
  { exchange, call, route, held, states, reservation, terms, reasoning, identity }: Outbound,
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
  sending.start()
  return sending
}
