/**
 * The candidate loop: sends a request to the upstreams that may serve it, in order, until one begins a reply.
 * The only module that starts attempts. A reply begins with its first content, not with its status: an
 * upstream that replies 200 and then fails is an ordinary failed attempt, and the client still gets a real
 * status.
 */
import type { JsonObject } from '../../formats/chat/json.js'
import { gatewayError, GatewayError } from '../../errors.js'
import type { HeldMemory } from '../body-memory.js'
import type { RequestContext } from '../client-exchange.js'
import { UNEXPECTED_FAILURE } from '../transport-errors.js'
import type { Deadlines } from '../deadlines.js'
import type { DrainedReplySlots } from '../in-flight-list.js'
import { Attempt } from './attempt.js'
import {
  NO_PARTS,
  type AttemptOwner,
  type Payer,
  type StartedAttempt,
  type PreparedRequest,
  type StartedReply,
  type EarlierParts,
} from './attempt-owner.js'
import { CandidateTurns, type CandidateTurn } from './candidate-turns.js'
import { AttemptResult, type Occasion } from './attempt-result.js'
import { stepAfter, type Step } from './retry-or-fallback.js'
import type { SendOptions, SendProgress } from './send-options.js'

/** A running attempt and the turn that it belongs to. */
interface Running {
  readonly attempt: Attempt
  readonly turn: CandidateTurn
}

/** A prepared attempt. */
interface Launch {
  readonly prepared: PreparedRequest
  readonly occasion: Occasion
  /** The parts of the reply that earlier attempts read; absent if there are none. */
  readonly parts?: EarlierParts
}

/** Maximum time for which the head of a stream is held for its first content; then proxies need a status. */
const HEAD_HOLD_MS = 1000
/** The same if another attempt could follow, which is possible only before the head. Proxies wait 60 s. */
const LONG_HEAD_HOLD_MS = 30_000

/** The candidate loop of one request. */
export class Candidates implements AttemptOwner {
  readonly exchange: RequestContext
  readonly held: HeldMemory
  readonly deadlines: Deadlines
  readonly drainedReplySlots: DrainedReplySlots
  readonly payer: Payer
  readonly timeoutMs: number
  readonly headHoldMs: number
  /** The attempts so far and their results. */
  readonly sent: SendProgress
  /** Resolves when the reply to the client can begin; rejects with `GatewayError`. */
  readonly reply: Promise<StartedReply>
  private readonly sending: SendOptions
  private readonly turns: CandidateTurns
  /** Attempts that have not ended; two only while a hedge runs. */
  private running: Running[] = []
  private timer: NodeJS.Timeout | null = null
  private isSettled = false
  private lastError: GatewayError | null = null
  private resolve: (reply: StartedReply) => void = () => undefined
  private reject: (error: GatewayError) => void = () => undefined

  constructor(sending: SendOptions) {
    const { exchange, candidates, handling, hedging } = sending
    this.sending = sending
    this.exchange = exchange
    this.held = sending.held
    this.deadlines = sending.deadlines
    this.drainedReplySlots = sending.drainedReplySlots
    this.payer = sending.payer
    this.timeoutMs = sending.timeoutMs
    this.sent = sending.sent
    this.turns = new CandidateTurns(candidates, sending.states, handling.stickyKey)
    const isOnly = candidates.length === 1 && handling.retry.attempts === 1 && hedging === null
    this.headHoldMs = isOnly ? HEAD_HOLD_MS : LONG_HEAD_HOLD_MS
    this.reply = new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
    })
  }

  /** Starts with the first candidate. */
  start(): void {
    this.next('first')
  }

  /** Tries the next candidate that its breaker allows; ends the loop if there is none. */
  private next(occasion: Occasion): void {
    const turn = this.turns.next()
    if (turn === null) this.end(this.lastError)
    else this.attempt(turn, occasion)
  }

  /**
   * Makes an attempt if the limits of the request allow one more; `ready` is its request if it is prepared
   * already.
   */
  private attempt(
    turn: CandidateTurn,
    occasion: Occasion,
    ready: PreparedRequest | null = null,
  ): void {
    // The reservation of the admission covers the first attempt.
    const { reservation } = this.sending
    if (occasion === 'first' || reservation === null) return this.prepare(turn, occasion, ready)
    const isCovered = reservation.cover(turn.candidate, this.sent.attempts)
    if (isCovered === true) return this.prepare(turn, occasion, ready)
    isCovered
      .then((isRaised) => {
        if (isRaised) this.prepare(turn, occasion, ready)
        else this.skipUnaffordable(turn, occasion)
      })
      .catch((cause: unknown) => this.skipUnprepared(turn, cause))
  }

  /**
   * The limits do not allow another attempt that may be billed: the client gets the error of the earlier
   * ones.
   */
  private skipUnaffordable(turn: CandidateTurn, occasion: Occasion): void {
    this.abandon(turn)
    if (occasion === 'hedge') this.sending.hedging?.deny(turn.candidate)
    else this.end(this.lastError)
  }

  /** Prepares an attempt and sends it. */
  private prepare(turn: CandidateTurn, occasion: Occasion, ready: PreparedRequest | null): void {
    try {
      this.exchange.cancellation.check()
      const prepared = ready ?? this.sending.preparation.of(turn.candidate, turn.credential)
      if (prepared instanceof Promise) {
        prepared
          .then((ready) => this.launch(turn, { prepared: ready, occasion }))
          .catch((cause: unknown) => this.skipUnprepared(turn, cause))
      } else this.launch(turn, { prepared, occasion })
    } catch (cause) {
      this.skipUnprepared(turn, cause)
    }
  }

  /** Skips a candidate that cannot take the request, unless it is the first one. */
  private skipUnprepared(turn: CandidateTurn, cause: unknown): void {
    this.abandon(turn)
    // A hedge that cannot be sent changes nothing.
    if (this.running.length > 0) return
    const isFirst = this.lastError === null || this.exchange.cancellation.reason !== null
    if (isFirst || !(cause instanceof GatewayError)) this.end(cause)
    else this.next('fallback')
  }

  /** Ends the turn before anything is sent. */
  private abandon(turn: CandidateTurn): void {
    turn.abandoned()
    this.sending.reservation?.decided(turn.candidate)
  }

  private launch(turn: CandidateTurn, { prepared, occasion, parts = NO_PARTS }: Launch): void {
    // While the hedge was prepared, another attempt won or the client left.
    if (occasion === 'hedge' && this.isSettled) return this.abandon(turn)
    const { hedging, preparation } = this.sending
    const after = this.lastError?.kind ?? null
    const { losses } = preparation
    const result = new AttemptResult(turn.candidate, losses, { occasion, after })
    result.call = prepared.call
    result.replyResult = parts.stream?.translation ?? null
    result.earlierUsage =
      parts.stream?.translation.usage ?? parts.whole?.usage ?? result.earlierUsage
    this.sent.began(result)
    this.sending.reservation?.decided(turn.candidate)
    const attempt = new Attempt(this, { result, prepared }, parts)
    turn.begin()
    this.running.push({ attempt, turn })
    if (occasion === 'first') hedging?.start(() => this.hedge())
    attempt.send()
    this.exchange.cancellation.onCancel((reason) => this.cancelled(reason))
  }

  private cancelled(reason: GatewayError): void {
    this.stopTimers()
    const { running } = this
    if (running.length === 0) this.end(reason)
    for (const { attempt } of [...running]) attempt.cancel(reason)
  }

  /** The first content is late: starts a second attempt beside the running one. */
  private hedge(): void {
    const [late] = this.running
    if (late === undefined || this.isSettled) return
    const { hedging } = this.sending
    const turn = hedging === null ? null : this.turns.beside(late.turn, hedging)
    if (turn !== null) this.attempt(turn, 'hedge')
  }

  begun(started: StartedAttempt, reply: StartedReply): void {
    const own = this.running.find(({ attempt }) => attempt === started)
    // The client has left.
    if (own === undefined) return
    if (!this.isSettled) this.win(own)
    this.resolve(reply)
  }

  /** Called before `begun` for a stream that ends with its first content. */
  ending(started: StartedAttempt): Promise<void> | null {
    const own = this.running.find(({ attempt }) => attempt === started) ?? this.running[0]
    if (own !== undefined && !this.isSettled) this.win(own)
    return this.sending.ending()
  }

  /** The client gets the reply of this attempt; the other one is cancelled. */
  private win(own: Running): void {
    this.stopTimers()
    this.isSettled = true
    this.sent.won(own.attempt.result)
    own.turn.succeeded()
    for (const { attempt, turn } of this.running) {
      if (attempt === own.attempt) continue
      turn.abandoned()
      attempt.supersede()
    }
    this.running = [own]
  }

  failed(started: StartedAttempt, error: GatewayError): void {
    const own = this.ended(started)
    if (own === null) return
    own.turn.failed(error.wire, started.result)
    const [other] = this.running
    if (this.exchange.cancellation.reason !== null) {
      if (other === undefined) this.end(error)
      return
    }
    this.lastError = error
    if (other !== undefined) other.attempt.countWait()
    else this.react(own.turn, started, error)
  }

  /** Removes the attempt from the running ones; null if it is not among them. */
  private ended(started: StartedAttempt): Running | null {
    const own = this.running.find(({ attempt }) => attempt === started) ?? null
    this.running = this.running.filter((running) => running !== own)
    return own
  }

  private react(turn: CandidateTurn, started: StartedAttempt, error: GatewayError): void {
    let step: Step
    try {
      step = stepAfter({ attempt: started, error: error.wire }, turn, this.sending)
    } catch (cause) {
      return this.end(cause)
    }
    switch (step.kind) {
      case 'amended':
        return this.attempt(turn, 'amended', step.prepared)
      case 'at_once':
        return this.attempt(turn, 'retry', step.prepared)
      case 'retry':
        return this.retryIn(step.waitMs, turn)
      case 'next_target':
        return this.next('fallback')
      case 'end':
        return this.end(error)
      default:
        step satisfies never
    }
  }

  private retryIn(waitMs: number, turn: CandidateTurn): void {
    const beganMs = performance.now()
    this.timer = setTimeout(() => {
      this.timer = null
      this.sent.backOffMs += performance.now() - beganMs
      // Failures of other requests may have opened the breaker meanwhile.
      if (turn.isAllowed) this.attempt(turn, 'retry')
      else this.next('fallback')
    }, waitMs)
  }

  paused(started: StartedAttempt, parts: EarlierParts, resume: JsonObject): void {
    const own = this.ended(started)
    if (own === null) return
    own.turn.succeeded()
    const { call, outgoing } = started.prepared
    const rest = outgoing.next?.(resume)
    if (rest === undefined) return this.end(gatewayError(UNEXPECTED_FAILURE))
    started.result.isContinued = true
    this.launch(own.turn, { prepared: { call, outgoing: rest }, occasion: 'rest', parts })
  }

  draining(ended: Promise<void>): void {
    this.sent.drain(ended)
  }

  threw(cause: unknown): void {
    this.sent.failure = cause
  }

  translated(ms: number): void {
    this.sent.translated(ms)
  }

  private stopTimers(): void {
    this.sending.hedging?.stop()
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
  }

  private end(cause: unknown): void {
    this.stopTimers()
    this.isSettled = true
    this.reject(cause instanceof GatewayError ? cause : gatewayError(UNEXPECTED_FAILURE, cause))
  }
}
