/** Creates the turns of the candidates of one request, in order. */
import type { RetryConfig } from '../../config/config.js'
import { isProviderFailure, type WireError } from '../../errors.js'
import type { Candidate } from '../phases/choose-route.js'
import type { AttemptResult } from './attempt-result.js'
import type { BreakerAttempt, Breaker } from './health/breaker.js'
import type { Clock } from './health/rolling-sums.js'
import type { UpstreamState } from './health/upstream-state.js'
import type { SendOptions } from './send-options.js'
import type { Hedging } from './start-hedge.js'

/** Creates each turn when the loop reaches its candidate. */
export class CandidateTurns {
  private readonly queue: CandidateQueue<Candidate>
  private readonly states: SendOptions['states']
  private readonly stickyKey: string | null

  constructor(
    candidates: readonly Candidate[],
    states: SendOptions['states'],
    stickyKey: string | null,
  ) {
    this.queue = new CandidateQueue(candidates, (candidate) => this.stateOf(candidate).breaker)
    this.states = states
    this.stickyKey = stickyKey
  }

  /** The next candidate that its breaker allows; null if there is none. */
  next(): CandidateTurn | null {
    const candidate = this.queue.take()
    return candidate === null ? null : this.turnOn(candidate, null)
  }

  /** A hedge beside the attempts of `late`; null if the route's hedge budget does not allow one. */
  beside(late: CandidateTurn, hedging: Hedging): CandidateTurn | null {
    const target = hedging.target(late.candidate)
    if (target === null) return null
    this.queue.remove(target)
    return this.turnOn(target, late)
  }

  private turnOn(candidate: Candidate, beside: CandidateTurn | null): CandidateTurn {
    const { clock } = this.states
    const { stickyKey } = this
    return new CandidateTurn({
      candidate,
      state: this.stateOf(candidate),
      clock,
      stickyKey,
      beside,
    })
  }

  private stateOf({ target }: Candidate): UpstreamState {
    return this.states.of(target.upstream.config.name)
  }
}

/** The candidate of a turn, and the state of its upstream. */
export interface CandidateTurnOptions {
  readonly candidate: Candidate
  readonly state: UpstreamState
  readonly clock: Clock
  /** Requests with the same key prefer the same credential; null: no preference. */
  readonly stickyKey: string | null
  /** The turn that this one hedges: another credential is preferred. */
  readonly beside?: CandidateTurn | null
}

/**
 * The turn of one candidate.
 *
 * The attempts of a request on one candidate: chooses the credential, decides whether a retry may follow, and
 * reports each attempt to the circuit breaker and the latency average of the upstream.
 */
export class CandidateTurn {
  readonly candidate: Candidate
  /** The index of the credential to use. */
  credential: number
  private readonly options: CandidateTurnOptions
  private readonly tried = new Set<number>()
  private tries = 0
  /** The breaker's record of the attempt that is prepared or runs; null between two attempts. */
  private breakerAttempt: BreakerAttempt | null
  private ended: ((nowMs: number, hasContent: boolean) => void) | null = null

  /**
   * Claims the test request of a half-open breaker at once, because preparing an attempt may take a while;
   * `abandoned` releases it if nothing is sent.
   */
  constructor(options: CandidateTurnOptions) {
    const { candidate, state, stickyKey, beside = null } = options
    this.candidate = candidate
    this.options = options
    this.breakerAttempt = state.breaker.begin()
    const { credentials } = state
    const isSame = beside !== null && beside.candidate.target.upstream === candidate.target.upstream
    const other = isSame ? credentials.next(new Set([beside.credential]), stickyKey) : null
    this.credential = (other ?? credentials.next(this.tried, stickyKey))?.index ?? 0
  }

  /** Records that an attempt is being sent. */
  begin(): void {
    const { state, clock, candidate } = this.options
    this.breakerAttempt ??= state.breaker.begin()
    this.ended = candidate.latency?.begin(clock.now()) ?? null
    this.tried.add(this.credential)
    if (this.tries === 0) state.retries.request()
    this.tries += 1
  }

  /** The first content arrived. */
  succeeded(): void {
    this.breakerAttempt?.succeeded()
    this.breakerAttempt = null
    this.ended?.(this.options.clock.now(), true)
  }

  /** The attempt was cancelled, or was never sent. */
  abandoned(): void {
    this.breakerAttempt?.abandoned()
    this.breakerAttempt = null
    this.ended?.(this.options.clock.now(), false)
  }

  /** The attempt failed. A refused credential rests. */
  failed(error: WireError, { status }: AttemptResult): void {
    const { state, clock } = this.options
    if (isProviderFailure(error.kind)) this.breakerAttempt?.failed()
    else if (status !== null && status >= 400) this.breakerAttempt?.succeeded()
    else this.breakerAttempt?.abandoned()
    this.breakerAttempt = null
    this.ended?.(clock.now(), false)
    if (refusesCredential(status)) {
      state.credentials.refused(this.credential, status, waitOf(error))
    }
  }

  /** Takes the next credential if the provider refused or throttled this one; false if there is none. */
  rotate({ status }: AttemptResult): boolean {
    const { state, stickyKey } = this.options
    if (!refusesCredential(status) || state.credentials.size === 1) return false
    const next = state.credentials.next(this.tried, stickyKey)
    if (next === null) return false
    this.credential = next.index
    this.tries -= 1
    return true
  }

  /** The wait before a retry on the same target, in ms; null if no retry follows. */
  retryInMs({ attempts, maxWaitMs }: RetryConfig, error: WireError): number | null {
    if (this.tries >= attempts) return null
    const { random } = this.options.clock
    const retryAfterMs = waitOf(error)
    return backOffMs({ retry: this.tries, retryAfterMs, maxWaitMs, random: random() })
  }

  /** Takes a retry of the upstream's retry budget, if one is left and the breaker allows requests. */
  mayRetry({ budget }: RetryConfig): boolean {
    return this.isAllowed && this.options.state.retries.tryRetry(budget)
  }

  /** Whether the breaker allows another attempt: retries do not test an upstream that is failing. */
  get isAllowed(): boolean {
    const { breaker } = this.options.state
    return breaker.state === 'closed' || breaker.allows()
  }
}

function refusesCredential(status: number | null): status is 401 | 403 | 429 {
  return status === 401 || status === 403 || status === 429
}

function waitOf({ retryAfterSeconds }: WireError): number | null {
  return retryAfterSeconds === undefined ? null : retryAfterSeconds * 1000
}

/**
 * The candidates that were not used yet.
 *
 * The remaining candidates of a request: in order, without those whose circuit breaker is open. Breakers
 * alone never fail a request: if all are open, the candidates are tried in the order in which their breakers
 * may be tested, because each of them may have recovered. `Breaker.tryOpen` bounds the load of that.
 */
export class CandidateQueue<Candidate> {
  private remaining: Candidate[]
  private readonly breakerOf: (candidate: Candidate) => Breaker
  /** All breakers were open when the first candidate was taken; null before. */
  private allOpen: boolean | null = null

  constructor(order: readonly Candidate[], breakerOf: (candidate: Candidate) => Breaker) {
    this.remaining = [...order]
    this.breakerOf = breakerOf
  }

  /**
   * Takes the next candidate; null if no further one should be tried. A candidate whose breaker is closed but
   * refuses in its slow start comes after the others. The first call returns a candidate if there are any.
   */
  take(): Candidate | null {
    const allowed =
      this.remaining.find((candidate) => this.breakerOf(candidate).allows()) ??
      this.remaining.find((candidate) => this.breakerOf(candidate).state === 'closed') ??
      null
    const isFirst = this.allOpen === null
    this.allOpen ??= allowed === null
    const taken = allowed ?? (this.allOpen ? this.soonest(isFirst) : null)
    if (taken !== null) this.remove(taken)
    return taken
  }

  /** Removes a candidate, which is taken or used by a hedge. */
  remove(candidate: Candidate): void {
    this.remaining = this.remaining.filter((other) => other !== candidate)
  }

  /** The first of all candidates is not limited: otherwise a breaker alone would fail the request. */
  private soonest(isFirst: boolean): Candidate | null {
    const inMs = (candidate: Candidate): number => this.breakerOf(candidate).testInMs
    const inOrder = this.remaining.toSorted((one, other) => inMs(one) - inMs(other))
    if (isFirst) return inOrder[0] ?? null
    return inOrder.find((candidate) => this.breakerOf(candidate).tryOpen()) ?? null
  }
}

const FIRST_MS = 250
/** `Retry-After` is exceeded by up to this share, so that not all clients return at the same time. */
const JITTER = 0.1

/** The values that a wait depends on. */
export interface BackOff {
  /** 1 for the first retry on a target. */
  readonly retry: number
  /** Null: the upstream sent no `Retry-After`. */
  readonly retryAfterMs: number | null
  readonly maxWaitMs: number
  /** From 0 to below 1. */
  readonly random: number
}

/**
 * The wait in ms; null if `Retry-After` exceeds `maxWaitMs`, so that the next target should be tried.
 *
 * The wait before a retry: the upstream's `Retry-After`, else exponential back-off with full jitter. Pure.
 */
export function backOffMs({ retry, retryAfterMs, maxWaitMs, random }: BackOff): number | null {
  if (retryAfterMs !== null) {
    if (retryAfterMs > maxWaitMs) return null
    return Math.min(maxWaitMs, retryAfterMs * (1 + JITTER * random))
  }
  const longestMs = Math.min(maxWaitMs, FIRST_MS * 2 ** (retry - 1))
  return longestMs * random
}
