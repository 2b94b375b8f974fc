/**
 * The candidate loop: sends a request to the upstreams that may serve it, in order, until one has something to give the
 * client. The only place that starts an attempt. A 200 counts for nothing until its first content, so an upstream that
 * answers 200 and dies is an ordinary failed attempt, and the client still gets a real status.
 */
import type { Identity } from '../../accounts/account.js'
import type { JsonObject } from '../../chat/json.js'
import { gatewayError, GatewayError } from '../../errors.js'
import type { Escrow } from '../../reasoning/escrow.js'
import type { Holding } from '../body-budget.js'
import type { Deadlines } from '../deadlines.js'
import type { Drains } from '../drains.js'
import type { Exchange } from '../exchange.js'
import { UNFORESEEN } from '../fault.js'
import type { Candidate } from '../phases/choose.js'
import type { Call } from '../phases/receive.js'
import { keptBy } from '../stored-responses.js'
import { Attempt } from './attempt.js'
import type { AttemptOwner, Made, Prepared } from './owner.js'
import { Preparation } from './prepare.js'
import { NO_PARTS, type BegunReply, type EarlierParts } from './reply.js'
import { AttemptResult, type Sent } from './result.js'

/** What requests are sent with. */
export interface Means {
  readonly deadlines: Deadlines
  readonly drains: Drains
  readonly escrow: Escrow
}

/** An admitted request. */
export interface Outbound {
  readonly exchange: Exchange
  readonly identity: Identity
  readonly call: Call
  readonly candidates: readonly [Candidate, ...Candidate[]]
  /** The memory that its bodies take. */
  readonly held: Holding
}

/** One request on its way to its upstreams and back. */
export class Candidates implements AttemptOwner, Sent {
  readonly exchange: Exchange
  readonly held: Holding
  readonly deadlines: Deadlines
  readonly drains: Drains
  readonly ending: () => Promise<void> | null
  readonly attempts: AttemptResult[] = []
  /** Resolves when there is something to give the client; rejects with `GatewayError`. */
  readonly reply: Promise<BegunReply>
  holding: Promise<void> | null = null
  drained: Promise<void> | null = null
  failure: unknown = null
  private replyMs = 0
  private readonly candidates: readonly [Candidate, ...Candidate[]]
  private readonly preparation: Preparation
  private running: Attempt | null = null
  private resolve: (reply: BegunReply) => void = () => undefined
  private reject: (error: GatewayError) => void = () => undefined

  /** `ending` is called before the client gets the end of a stream; see `ReplyOwner`. */
  constructor(outbound: Outbound, ending: () => Promise<void> | null, means: Means) {
    const { exchange, identity, call, candidates, held } = outbound
    this.exchange = exchange
    this.held = held
    this.deadlines = means.deadlines
    this.drains = means.drains
    this.ending = ending
    this.candidates = candidates
    const hold = (kept: Promise<void>): void => this.hold(kept)
    const memory = { escrow: means.escrow, accountId: identity.accountId, hold }
    this.preparation = new Preparation({ exchange, call: keptBy(call, hold), held, memory })
    this.reply = new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
    })
  }

  get losses(): readonly string[] {
    return this.preparation.losses
  }

  get translateMs(): number {
    return this.preparation.translateMs + this.replyMs
  }

  get fetchMs(): number {
    return this.preparation.fetchMs
  }

  /** Begins with the first candidate. */
  start(): void {
    this.attempt(this.candidates[0])
  }

  private attempt(candidate: Candidate): void {
    try {
      this.exchange.cancellation.check()
      const prepared = this.preparation.of(candidate)
      if (prepared instanceof Promise) {
        prepared
          .then((ready) => this.launch(candidate, ready))
          .catch((cause: unknown) => this.end(cause))
      } else this.launch(candidate, prepared)
    } catch (cause) {
      this.end(cause)
    }
  }

  private launch(candidate: Candidate, prepared: Prepared, parts = NO_PARTS): AttemptResult {
    const result = new AttemptResult(candidate, this.losses)
    result.verdict = parts.stream?.translation ?? null
    this.attempts.push(result)
    const attempt = new Attempt(this, result, prepared, parts)
    this.running = attempt
    this.exchange.cancellation.onCancel((reason) => this.running?.cancel(reason))
    attempt.send()
    return result
  }

  begun(_attempt: Made, reply: BegunReply): void {
    this.resolve(reply)
  }

  failed({ result, prepared }: Made, error: GatewayError): void {
    if (this.exchange.cancellation.reason !== null) {
      this.reject(error)
      return
    }
    try {
      const { target } = result.candidate
      const amended = result.isAmended
        ? null
        : this.preparation.amended(prepared, target, error.wire)
      if (amended === null) this.reject(error)
      else this.launch(result.candidate, amended).isAmended = true
    } catch (cause) {
      this.end(cause)
    }
  }

  paused({ result, prepared }: Made, parts: EarlierParts, resume: JsonObject): void {
    const outgoing = prepared.outgoing.next?.(resume)
    if (outgoing === undefined) {
      this.end(gatewayError(UNFORESEEN))
      return
    }
    this.launch(result.candidate, { call: prepared.call, outgoing }, parts)
  }

  draining(ended: Promise<void>): void {
    this.drained = ended
  }

  threw(cause: unknown): void {
    this.failure = cause
  }

  translated(ms: number): void {
    this.replyMs += ms
  }

  /** Of several replies to one request each has its own state. */
  private hold(kept: Promise<void>): void {
    const { holding } = this
    this.holding = holding === null ? kept : Promise.all([holding, kept]).then(() => undefined)
  }

  private end(cause: unknown): void {
    this.reject(cause instanceof GatewayError ? cause : gatewayError(UNFORESEEN, cause))
  }
}
