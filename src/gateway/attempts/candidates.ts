/**
 * The candidate loop: sends a request to the upstreams that may serve it, in order, until one has something to give the
 * client. The only place that starts an attempt. A 200 counts for nothing until its first content, so an upstream that
 * answers 200 and dies is an ordinary failed attempt, and the client still gets a real status.
 */
import type { Identity } from '../../accounts/account.js'
import type { JsonObject } from '../../chat/json.js'
import { gatewayError, GatewayError } from '../../errors.js'
import { headerOf } from '../../http/message.js'
import type { Escrow } from '../../reasoning/escrow.js'
import type { Holding } from '../bodies/body-budget.js'
import type { Deadlines } from '../under-way/deadlines.js'
import type { Drains } from '../under-way/drains.js'
import type { Exchange } from '../exchange.js'
import { UNFORESEEN } from '../fault.js'
import type { Candidate, Handling, Route } from '../phases/choose.js'
import type { Call } from '../phases/receive.js'
import { keptBy } from '../stored-responses/stored-responses.js'
import { isStaleConnection, reactionTo } from './retry/after-failure.js'
import { Attempt } from './attempt/attempt.js'
import { CandidateQueue } from './candidate-queue.js'
import { Hedging } from './hedge/hedging.js'
import { Leg } from './leg.js'
import type { AttemptOwner, Made, Prepared } from './attempt/owner.js'
import { Preparation } from './request/prepare-request.js'
import { NO_PARTS, type BegunReply, type EarlierParts } from './reply/begun-reply.js'
import { AttemptResult, type Occasion, type Sent } from './result.js'
import type { UpstreamState } from './health/upstream-state.js'

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
  readonly route: Pick<Route, 'candidates' | 'handling'>
  /** The memory that its bodies take. */
  readonly held: Holding
}

/** An attempt, and the turn of its candidate that it belongs to. */
interface Running {
  readonly attempt: Attempt
  readonly leg: Leg
}

/** How long the head of a stream is held for its first content; then proxies want to see a status. */
const HEAD_HOLD_MS = 1000
/** The same if another attempt could follow, which is possible only before the head. Proxies wait for 60 s. */
const LONG_HEAD_HOLD_MS = 30_000

/** No further attempt begins with less time than this before the client's deadline. */
const LEAST_MS = 500
const KEY_CHARS = 256

/** One request on its way to its upstreams and back. */
export class Candidates implements AttemptOwner, Sent {
  readonly exchange: Exchange
  readonly held: Holding
  readonly deadlines: Deadlines
  readonly drains: Drains
  readonly timeoutMs: number
  readonly headHoldMs: number
  readonly attempts: AttemptResult[] = []
  /** Resolves when there is something to give the client; rejects with `GatewayError`. */
  readonly reply: Promise<BegunReply>
  holding: Promise<void> | null = null
  drained: Promise<void> | null = null
  failure: unknown = null
  backOffMs = 0
  private replyMs = 0
  private readonly onEnding: () => Promise<void> | null
  private readonly handling: Handling
  private readonly queue: CandidateQueue<Candidate>
  private readonly isRepeatable: boolean
  private readonly preparation: Preparation
  private readonly hedging: Hedging | null
  /** Attempts that have not ended; two only while a hedge runs. */
  private running: Running[] = []
  private winner: AttemptResult | null = null
  private timer: NodeJS.Timeout | null = null
  private isSettled = false
  private lastError: GatewayError | null = null
  private resolve: (reply: BegunReply) => void = () => undefined
  private reject: (error: GatewayError) => void = () => undefined

  /** `ending` is called before the client gets the end of a stream; see `ReplyOwner`. */
  constructor(outbound: Outbound, ending: () => Promise<void> | null, means: Means) {
    const { exchange, identity, call, route, held } = outbound
    const { candidates, handling } = route
    const { req, generation } = exchange
    this.exchange = exchange
    this.held = held
    this.deadlines = means.deadlines
    this.drains = means.drains
    this.onEnding = ending
    this.handling = handling
    this.timeoutMs = timeoutOf(headerOf(req, 'x-request-timeout-ms'))
    const key = headerOf(req, 'idempotency-key')?.slice(0, KEY_CHARS) ?? ''
    const idempotencyKey = key === '' ? null : key
    this.isRepeatable = idempotencyKey !== null || handling.retry.nonIdempotent
    this.queue = new CandidateQueue(candidates, (each) => this.stateOf(each).breaker)
    this.hedging = Hedging.of({ request: call.request, candidates, handling }, generation)
    const isOnly = candidates.length === 1 && handling.retry.attempts === 1 && this.hedging === null
    this.headHoldMs = isOnly ? HEAD_HOLD_MS : LONG_HEAD_HOLD_MS
    const hold = (kept: Promise<void>): void => this.hold(kept)
    const memory = { escrow: means.escrow, accountId: identity.accountId, hold }
    const kept = keptBy(call, hold)
    this.preparation = new Preparation({ exchange, call: kept, held, memory, idempotencyKey })
    this.reply = new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
    })
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

  /** Begins with the first candidate. */
  start(): void {
    this.next('first')
  }

  /** Goes on with the next candidate that its breaker allows; ends if there is none. */
  private next(occasion: Occasion): void {
    const candidate = this.queue.take()
    if (candidate === null) {
      this.end(this.lastError)
      return
    }
    this.attempt(this.legOn(candidate), occasion)
  }

  private legOn(candidate: Candidate, beside: Leg | null = null): Leg {
    const { clock } = this.exchange.generation.states
    const { stickyKey } = this.handling
    return new Leg({ candidate, state: this.stateOf(candidate), clock, stickyKey, beside })
  }

  private stateOf({ target }: Candidate): UpstreamState {
    return this.exchange.generation.states.of(target.upstream.config.name)
  }

  /** Prepares an attempt and sends it. */
  private attempt(leg: Leg, occasion: Occasion): void {
    const { exchange, preparation } = this
    try {
      exchange.cancellation.check()
      const prepared = preparation.of(leg.candidate, leg.credential)
      if (prepared instanceof Promise) {
        prepared
          .then((ready) => this.launch(leg, ready, occasion))
          .catch((cause: unknown) => this.unprepared(cause))
      } else this.launch(leg, prepared, occasion)
    } catch (cause) {
      this.unprepared(cause)
    }
  }

  /** A candidate that cannot take the request is passed over, unless it is the first. */
  private unprepared(cause: unknown): void {
    // A hedge that cannot be sent changes nothing.
    if (this.running.length > 0) return
    const isFirst = this.lastError === null || this.exchange.cancellation.reason !== null
    if (isFirst || !(cause instanceof GatewayError)) this.end(cause)
    else this.next('fallback')
  }

  private launch(leg: Leg, prepared: Prepared, occasion: Occasion, parts = NO_PARTS): void {
    // Its preparation took so long that another attempt won, or the client left.
    if (occasion === 'hedge' && this.isSettled) return
    const after = this.lastError?.kind ?? null
    const losses = this.preparation.losses
    const result = new AttemptResult(leg.candidate, losses, occasion, after)
    result.verdict = parts.stream?.translation ?? null
    this.attempts.push(result)
    if (this.winner !== null) this.winner = result
    const attempt = new Attempt(this, result, prepared, parts)
    leg.begin()
    this.running.push({ attempt, leg })
    if (occasion === 'first') this.hedging?.start(() => this.hedge())
    attempt.send()
    this.exchange.cancellation.onCancel((reason) => this.cancelled(reason))
  }

  private cancelled(reason: GatewayError): void {
    this.stopTimers()
    const { running } = this
    if (running.length === 0) this.end(reason)
    for (const { attempt } of [...running]) attempt.cancel(reason)
  }

  /** The first content is late: a second attempt, beside the one that runs. */
  private hedge(): void {
    const [late] = this.running
    if (late === undefined || this.isSettled) return
    const target = this.hedging?.target(late.leg.candidate) ?? null
    if (target === null) return
    this.queue.remove(target)
    this.attempt(this.legOn(target, late.leg), 'hedge')
  }

  begun(made: Made, reply: BegunReply): void {
    const own = this.running.find(({ attempt }) => attempt === made)
    // The client has left.
    if (own === undefined) return
    if (!this.isSettled) this.win(own)
    this.resolve(reply)
  }

  /** A short stream ends before it is known to have begun. */
  ending(made: Made): Promise<void> | null {
    const own = this.running.find(({ attempt }) => attempt === made) ?? this.running[0]
    if (own !== undefined && !this.isSettled) this.win(own)
    return this.onEnding()
  }

  /** The client gets the reply of this attempt; another one is cancelled. */
  private win(own: Running): void {
    this.stopTimers()
    this.isSettled = true
    this.winner = own.attempt.result
    own.leg.succeeded()
    for (const { attempt, leg } of this.running) {
      if (attempt === own.attempt) continue
      leg.abandoned()
      attempt.supersede()
    }
    this.running = [own]
  }

  failed(made: Made, error: GatewayError): void {
    const own = this.ended(made)
    if (own === null) return
    own.leg.failed(error.wire, made.result)
    const [other] = this.running
    if (this.exchange.cancellation.reason !== null) {
      if (other === undefined) this.end(error)
      return
    }
    this.lastError = error
    if (other !== undefined) other.attempt.countWait()
    else this.react(own.leg, made, error)
  }

  /** Takes the attempt from those that run; null if it is none of them. */
  private ended(made: Made): Running | null {
    const own = this.running.find(({ attempt }) => attempt === made) ?? null
    this.running = this.running.filter((each) => each !== own)
    return own
  }

  private react(leg: Leg, { result, prepared }: Made, error: GatewayError): void {
    // The upstream has executed the parts before it.
    if (result.occasion === 'rest') return this.end(error)
    try {
      const { candidate } = leg
      const amended =
        result.occasion === 'amended'
          ? null
          : this.preparation.amended(prepared, candidate.target, error.wire)
      if (amended !== null) return this.launch(leg, amended, 'amended')
      const reaction = reactionTo(error.wire, result)
      if (isStaleConnection(error.wire, result) && prepared.onFreshConnection !== true) {
        return this.launch(leg, { ...prepared, onFreshConnection: true }, 'retry')
      }
      if (reaction === 'never' || !this.hasTime(candidate, 0)) return this.end(error)
      if (leg.rotate(result)) return this.attempt(leg, 'retry')
      const waitMs = reaction === 'retry' ? leg.retryInMs(this.handling.retry, error.wire) : null
      if (waitMs !== null && this.hasTime(candidate, waitMs) && leg.mayRetry(this.handling.retry)) {
        return this.retryIn(waitMs, leg)
      }
      if (reaction === 'if_repeatable' && !this.isRepeatable) return this.end(error)
      this.next('fallback')
    } catch (cause) {
      this.end(cause)
    }
  }

  private retryIn(waitMs: number, leg: Leg): void {
    const beganMs = performance.now()
    this.timer = setTimeout(() => {
      this.timer = null
      this.backOffMs += performance.now() - beganMs
      this.attempt(leg, 'retry')
    }, waitMs)
  }

  /** Whether an attempt that begins in `waitMs` has enough time before the deadline. */
  private hasTime({ target }: Candidate, waitMs: number): boolean {
    const { totalMs } = target.upstream.config.timeouts
    const endMs = this.exchange.startedMs + Math.min(this.timeoutMs, totalMs)
    return endMs - performance.now() - waitMs >= LEAST_MS
  }

  paused(made: Made, parts: EarlierParts, resume: JsonObject): void {
    const own = this.ended(made)
    if (own === null) return
    own.leg.succeeded()
    const { call, outgoing } = made.prepared
    const rest = outgoing.next?.(resume)
    if (rest === undefined) this.end(gatewayError(UNFORESEEN))
    else this.launch(own.leg, { call, outgoing: rest }, 'rest', parts)
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

  private stopTimers(): void {
    this.hedging?.stop()
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
  }

  private end(cause: unknown): void {
    this.stopTimers()
    this.isSettled = true
    this.reject(cause instanceof GatewayError ? cause : gatewayError(UNFORESEEN, cause))
  }
}

/** The client's deadline in ms; infinite if the header is absent or no positive integer. */
function timeoutOf(header: string | undefined): number {
  const ms = header !== undefined && /^\d{1,9}$/.test(header) ? Number(header) : 0
  return ms > 0 ? ms : Number.POSITIVE_INFINITY
}
