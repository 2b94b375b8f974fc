/** The inputs of the candidate loop. */
import type { HeldMemory } from '../bodies/body-memory.js'
import type { RequestContext } from '../client-exchange.js'
import type { Candidate, Handling } from '../phases/choose-route.js'
import type { Reservation } from '../reservation/raise-reservation.js'
import type { Deadlines } from '../in-flight/timeout-timer.js'
import type { DrainedReplySlots } from '../in-flight/drained-reply-slots.js'
import type { Payer } from './attempt/attempt-owner.js'
import type { UpstreamStates } from './health/upstream-state.js'
import type { Hedging } from './hedge/start-hedge.js'
import type { Preparation } from './request/prepare-candidate.js'
import type { SendProgress } from './send-progress.js'

/** An admitted request, and the services that sending it uses. */
export interface SendOptions {
  readonly exchange: RequestContext
  /** Counts the memory of its bodies. */
  readonly held: HeldMemory
  readonly deadlines: Deadlines
  readonly drainedReplySlots: DrainedReplySlots
  readonly payer: Payer
  /** In the order in which they are tried. */
  readonly candidates: readonly Candidate[]
  readonly handling: Handling
  /** The state of the upstreams between requests. */
  readonly states: Pick<UpstreamStates, 'of' | 'clock'>
  readonly preparation: Preparation
  /** Null if the route does not hedge. */
  readonly hedging: Hedging | null
  /** Null if no limit on tokens or money applies. */
  readonly reservation: Reservation | null
  readonly sent: SendProgress
  /** The client's deadline for the whole reply, in ms from its request; infinite if it sent none. */
  readonly timeoutMs: number
  /** The request may be executed twice. */
  readonly isRepeatable: boolean
  /** Called before the client gets the end of a stream; see `ReplyOwner`. */
  readonly ending: () => Promise<void> | null
}
