/**
 * The candidate loop: sends a request to the upstreams that may serve it, in order, until one begins a reply.
 * The only module that starts attempts. A reply begins with its first content, not with its status: an
 * upstream that replies 200 and then fails is an ordinary failed attempt, and the client still gets a real
 * status.
 */
import { gatewayError, GatewayError } from '../../errors.js'
import type { JsonObject } from '../../base/json.js'
import type { Reservation } from '../charges/reservation.js'
import type { Candidate } from '../phases/route.js'
import { UNEXPECTED_FAILURE } from '../transport-errors.js'
import {
  Attempt,
  NO_PARTS,
  type AttemptLoop,
  type AttemptRequest,
  type EarlierParts,
  type StartedReply,
} from './attempt.js'
import { AttemptResult, type Occasion } from './attempt-result.js'
import { headWaitMs } from './hold-head.js'
import type { PreparedRequest } from './prepare-candidate.js'
import { CandidateTurn, stepAfter, type RetriedRequest, type TurnSettings } from './retry-or-fallback.js'
import { CandidateQueue } from './skip-open-breakers.js'
import type { Hedging } from './start-hedge.js'

/** An admitted request, and the services that sending it uses. */
export interface SendOptions extends AttemptRequest, Omit<RetriedRequest, 'x'> {
  readonly states: TurnSettings['states']
  /** Null if the route does not hedge. */
  readonly hedging: Hedging | null
}

/** The attempt that the loop makes next. */
interface NextAttempt {
  readonly turn: CandidateTurn
  readonly occasion: Occasion
  /** Its request if it is prepared already. */
  readonly ready: PreparedRequest | null
}

/** The end of the attempts that ran at the same time: a reply, or the failure of the last of them. */
type Ended =
  | { readonly kind: 'begun'; readonly reply: StartedReply }
  | { readonly kind: 'failed'; readonly attempt: Attempt; readonly error: GatewayError }

/** The candidate loop of one request. */
export class Candidates implements AttemptLoop {
  readonly headWaitMs: number
  private readonly sending: SendOptions
  /** Null if no limit on tokens or money applies. */
  private readonly reservation: Reservation | null
  private readonly queue: CandidateQueue<Candidate>
  private readonly turnSettings: TurnSettings
  /** Attempts that have not ended; two only while a hedge runs. */
  private running: Attempt[] = []
  private lastError: GatewayError | null = null
  /** The client gets the reply of an attempt, or the loop has ended without one. */
  private isSettled = false
  /** Ends the loop's wait for the running attempts. */
  private resolve: (ended: Ended) => void = () => undefined

  constructor(sending: SendOptions) {
    const { x, hedging, states } = sending
    const { candidates, handling } = x.route
    const { admitted } = x
    this.sending = sending
    this.reservation = admitted?.kind === 'admitted' ? admitted.reservation : null
    this.turnSettings = { states, stickyKey: handling.stickyKey }
    this.queue = new CandidateQueue(candidates, ({ target }) => {
      return states.of(target.upstream.config.name).breaker
    })
    const isOnly = candidates.length === 1 && handling.retry.attempts === 1 && hedging === null
    this.headWaitMs = headWaitMs({ isOnly })
  }

  /** Resolves when the reply to the client can begin; rejects with `GatewayError`. Called once. */
  async send(): Promise<StartedReply> {
    try {
      let next = this.nextTarget('first')
      while (next !== null) {
        const prepared = await this.prepare(next)
        if (prepared === null) {
          next = this.nextTarget('fallback')
          continue
        }
        const ended = await this.run(next, prepared)
        if (ended.kind === 'begun') return ended.reply
        next = await this.after(ended.attempt, ended.error)
      }
      throw this.lastError ?? gatewayError(UNEXPECTED_FAILURE)
    } catch (cause) {
      throw cause instanceof GatewayError ? cause : gatewayError(UNEXPECTED_FAILURE, cause)
    } finally {
      this.isSettled = true
      this.sending.hedging?.stop()
    }
  }

  /** The first attempt on the next candidate that its breaker allows; null if there is none. */
  private nextTarget(occasion: 'first' | 'fallback'): NextAttempt | null {
    const candidate = this.queue.take()
    if (candidate === null) return null
    return { turn: new CandidateTurn(candidate, this.turnSettings), occasion, ready: null }
  }

  /**
   * The request of the attempt; null if the candidate cannot take it and is skipped, unless it is the first
   * one. Throws what ends the loop: if the limits do not allow another attempt that may be billed, the client
   * gets the error of the earlier ones.
   */
  private async prepare(next: NextAttempt): Promise<PreparedRequest | null> {
    const { turn, occasion, ready } = next
    const { x, preparation } = this.sending
    try {
      // The reservation of the admission covers the first attempt.
      const isCovered = occasion === 'first' || (await this.isCovered(turn))
      x.cancellation.check()
      if (isCovered) return ready ?? (await preparation.of(turn.candidate, turn.credential))
    } catch (cause) {
      this.abandon(turn)
      const isFirst = this.lastError === null || x.cancellation.reason !== null
      if (isFirst || !(cause instanceof GatewayError)) throw cause
      return null
    }
    this.abandon(turn)
    throw this.lastError ?? gatewayError(UNEXPECTED_FAILURE)
  }

  /** Whether the limits of the request allow one more attempt, for which its reservation is raised. */
  private isCovered(turn: CandidateTurn): boolean | Promise<boolean> {
    return this.reservation?.cover(turn.candidate, this.sending.sent.list) ?? true
  }

  /** Ends the turn before anything is sent. */
  private abandon(turn: CandidateTurn): void {
    turn.abandoned()
    this.reservation?.decided(turn.candidate)
  }

  /** Sends the attempt. Resolves when a reply begins, or when no attempt is running any more. */
  private run({ turn, occasion }: NextAttempt, prepared: PreparedRequest): Promise<Ended> {
    return new Promise((resolve) => {
      this.resolve = resolve
      this.launch(turn, prepared, occasion)
    })
  }

  private launch(
    turn: CandidateTurn,
    prepared: PreparedRequest,
    occasion: Occasion,
    earlier: EarlierParts = NO_PARTS,
  ): void {
    const { sent, hedging, x } = this.sending
    const after = this.lastError?.kind ?? null
    const result = new AttemptResult(turn.candidate, sent.preparedLosses, { occasion, after })
    result.call = prepared.call
    result.cacheMarks = sent.preparedMarks
    result.replyResult = earlier.stream?.translation ?? null
    result.earlierUsage = earlier.stream?.translation.usage ?? earlier.whole?.usage ?? result.earlierUsage
    sent.began(result)
    this.reservation?.decided(turn.candidate)
    const attempt = new Attempt(this.sending, this, { turn, result, prepared, earlier })
    turn.begin()
    this.running.push(attempt)
    if (occasion === 'first') hedging?.start(() => void this.hedge())
    attempt.send()
    x.cancellation.onCancel((reason) => {
      hedging?.stop()
      for (const each of [...this.running]) each.cancel(reason)
    })
  }

  /** The attempt after a failed one; null if there is none. Throws what the client gets. */
  private async after(failed: Attempt, error: GatewayError): Promise<NextAttempt | null> {
    const { x } = this.sending
    const { turn, result, prepared } = failed
    if (x.cancellation.reason !== null) throw error
    const step = stepAfter({ result, prepared, error: error.wire }, turn, this.sending)
    switch (step.kind) {
      case 'amended':
        return { turn, occasion: 'amended', ready: step.prepared }
      case 'at_once':
        return { turn, occasion: 'retry', ready: step.prepared }
      case 'retry':
        await this.backOff(step.waitMs)
        // Failures of other requests may have opened the breaker meanwhile.
        if (turn.isAllowed) return { turn, occasion: 'retry', ready: null }
        return this.nextTarget('fallback')
      case 'next_target':
        return this.nextTarget('fallback')
      case 'end':
        throw error
    }
  }

  private async backOff(waitMs: number): Promise<void> {
    const { x, sent } = this.sending
    const beganMs = performance.now()
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(resolve, waitMs)
      x.cancellation.onCancel((reason) => {
        clearTimeout(timer)
        reject(reason)
      })
    })
    sent.backOffMs += performance.now() - beganMs
  }

  /** The first content is late: starts a second attempt beside the running one. */
  private async hedge(): Promise<void> {
    const { hedging, sent, x, preparation } = this.sending
    const late = this.isSettled ? undefined : this.running[0]
    if (hedging === null || late === undefined) return
    const { candidate, isAllowed } = hedging.target(late.turn.candidate)
    const { name } = candidate.target.upstream.config
    if (!isAllowed) {
      sent.hedgeDenied = name
      return
    }
    this.queue.remove(candidate)
    const turn = new CandidateTurn(candidate, this.turnSettings, late.turn)
    try {
      const isCovered = await this.isCovered(turn)
      if (!isCovered) sent.hedgeDenied = name
      x.cancellation.check()
      const prepared = isCovered ? await preparation.of(candidate, turn.credential) : null
      // Meanwhile the other attempt may have ended, or the client may have left.
      if (prepared === null || this.isSettled || this.running.length === 0) this.abandon(turn)
      else this.launch(turn, prepared, 'hedge')
    } catch {
      // A hedge that cannot be sent changes nothing.
      this.abandon(turn)
    }
  }

  begun(attempt: Attempt, reply: StartedReply): void {
    // The client has left.
    if (!this.running.includes(attempt)) return
    this.win(attempt)
    this.resolve({ kind: 'begun', reply })
  }

  /** Called before `begun` for a stream that ends with its first content. */
  ending({ stream }: Attempt): Promise<void> | null {
    // Only the attempt that opened the stream has it: the attempt that continues a paused reply does not.
    const own = this.running.find((attempt) => attempt.stream === stream)
    if (own !== undefined) this.win(own)
    return this.sending.x.ending()
  }

  /** The client gets the reply of this attempt; the other one is cancelled. */
  private win(own: Attempt): void {
    if (this.isSettled) return
    this.isSettled = true
    this.sending.hedging?.stop()
    this.sending.sent.won(own.result)
    own.turn.succeeded()
    this.remove(own)
    this.endOthers()
    this.running = [own]
  }

  /** Cancels the running attempts. */
  private endOthers(): void {
    for (const attempt of this.running.splice(0)) {
      attempt.turn.abandoned()
      attempt.supersede()
    }
  }

  failed(attempt: Attempt, error: GatewayError): void {
    if (!this.remove(attempt)) return
    attempt.turn.failed(error.wire, attempt.result)
    this.lastError = error
    // Another upstream must not get around a verdict.
    if (error.wire.guardrail !== undefined) this.endOthers()
    const [other] = this.running
    if (other === undefined) this.resolve({ kind: 'failed', attempt, error })
    else other.countWaits()
  }

  paused(attempt: Attempt, parts: EarlierParts, resume: JsonObject): void {
    if (!this.remove(attempt)) return
    const { turn, result, prepared } = attempt
    const { call, outgoing } = prepared
    turn.succeeded()
    const rest = outgoing.next?.(resume)
    if (rest === undefined) {
      this.resolve({ kind: 'failed', attempt, error: gatewayError(UNEXPECTED_FAILURE) })
      return
    }
    result.isContinued = true
    this.launch(turn, { call, outgoing: rest }, 'rest', parts)
  }

  /** Removes the attempt from the running ones; false if it is not among them. */
  private remove(attempt: Attempt): boolean {
    const index = this.running.indexOf(attempt)
    if (index >= 0) this.running.splice(index, 1)
    return index >= 0
  }
}
