/**
 * The attempts of a request on one candidate: chooses the credential, decides whether a retry may follow, and
 * reports each attempt to the circuit breaker and the latency average of the upstream.
 */
import type { RetryConfig } from '../../config/routes/route.js'
import { isProviderFailure, type WireError } from '../../errors.js'
import type { Candidate } from '../phases/choose-route.js'
import { backOffMs } from './retry/back-off.js'
import type { BreakerAttempt } from './health/breaker.js'
import type { Clock } from './clock.js'
import type { AttemptResult } from './attempt-result.js'
import type { UpstreamState } from './health/upstream-state.js'

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

/** The turn of one candidate. */
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
