/** What the candidate loop sends an admitted request with. */
import type { Holding } from '../bodies/body-budget.js'
import type { RequestContext } from '../exchange.js'
import type { Candidate, Handling } from '../phases/choose.js'
import type { Reservation } from '../reservation/reservation.js'
import type { Deadlines } from '../in-flight/deadlines.js'
import type { DrainSlots } from '../in-flight/drain-slots.js'
import type { UpstreamStates } from './health/upstream-state.js'
import type { Hedging } from './hedge/hedging.js'
import type { Preparation } from './request/prepare-request.js'
import type { SendProgress } from './send-progress.js'

/** An admitted request. */
export interface SendOptions {
  readonly exchange: RequestContext
  /** The memory that its bodies take. */
  readonly held: Holding
  readonly deadlines: Deadlines
  readonly drainSlots: DrainSlots
  /** In the order in which they are tried. */
  readonly candidates: readonly Candidate[]
  readonly handling: Handling
  /** What is withRestoredReasoning of the upstreams. */
  readonly states: Pick<UpstreamStates, 'of' | 'clock'>
  readonly preparation: Preparation
  /** Null if the route does not hedge. */
  readonly hedging: Hedging | null
  /** Null if no limit on tokens or money applies. */
  readonly reservation: Reservation | null
  readonly sent: SendProgress
  /** How long the client waits for the whole reply, in ms from its request; infinite if it does not say. */
  readonly timeoutMs: number
  /** A second execution does no harm. */
  readonly isRepeatable: boolean
  /** Called before the client gets the end of a stream; see `ReplyOwner`. */
  readonly ending: () => Promise<void> | null
}
