/** The inputs of the candidate loop, and its progress. */
import type { HeldMemory } from '../body-memory.js'
import type { Reservation } from '../charges/reservation.js'
import type { RequestContext } from '../client-exchange.js'
import type { Deadlines } from '../deadlines.js'
import type { DrainedReplySlots } from '../in-flight-list.js'
import type { Candidate, Handling } from '../phases/choose-route.js'
import type { Payer } from './attempt-owner.js'
import type { AttemptResult, SendResult } from './attempt-result.js'
import type { UpstreamStates } from './health/upstream-state.js'
import type { Preparation } from './prepare-candidate.js'
import type { Hedging } from './start-hedge.js'

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

/** Filled in by the candidate loop and its attempts. */
export class SendProgress implements SendResult {
  readonly attempts: AttemptResult[] = []
  pendingWrites: Promise<void> | null = null
  drained: Promise<void> | null = null
  failure: unknown = null
  backOffMs = 0
  private replyMs = 0
  private winner: AttemptResult | null = null
  private readonly preparation: Preparation
  private readonly hedging: Hedging | null

  constructor(preparation: Preparation, hedging: Hedging | null) {
    this.preparation = preparation
    this.hedging = hedging
  }

  get final(): AttemptResult | null {
    return this.winner ?? this.attempts.at(-1) ?? null
  }

  get losses(): readonly string[] {
    return this.final?.losses ?? this.preparation.losses
  }

  get translateMs(): number {
    return this.preparation.translateMs + this.replyMs
  }

  get fetchMs(): number {
    return this.preparation.fetchMs
  }

  get hedgeDenied(): string | null {
    return this.hedging?.denied ?? null
  }

  /** An attempt begins; after `won` it continues the reply of the winner. */
  began(result: AttemptResult): void {
    this.attempts.push(result)
    if (this.winner !== null) this.winner = result
  }

  /** The client gets the reply of this attempt. */
  won(result: AttemptResult): void {
    this.winner = result
  }

  /** The rest of a reply is read until `ended`; with a hedge, there are two. */
  drain(ended: Promise<void>): void {
    this.drained = together(this.drained, ended)
  }

  /** Adds the time of one step of translating the reply. */
  translated(ms: number): void {
    this.replyMs += ms
  }

  /**
   * Makes the end of the reply wait for `kept` too; each of several replies to one request adds its own
   * promise.
   */
  hold(written: Promise<void>): void {
    this.pendingWrites = together(this.pendingWrites, written)
  }
}

function together(one: Promise<void> | null, other: Promise<void>): Promise<void> {
  return one === null ? other : Promise.all([one, other]).then(() => undefined)
}
