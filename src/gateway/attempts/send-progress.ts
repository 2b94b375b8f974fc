/** The result of sending a request so far, for the ledger entry, the metrics and the log line. */
import type { Hedging } from './hedge/start-hedge.js'
import type { Preparation } from './request/prepare-candidate.js'
import type { AttemptResult, SendResult } from './attempt-result.js'

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
