/**
 * What follows a failed attempt, within the limits of route, client and upstream (the table of failures in
 * `docs/how-to/fallback-and-retries.md` is generated from it); and the turn of one candidate, with its
 * credentials and retries.
 */
import type { RetryConfig } from '../../config/config.js'
import { isProviderFailure, type WireError } from '../../errors.js'
import type { ServedRequest } from '../served-request.js'
import type { Candidate } from '../phases/route.js'
import type { Clock } from '../../base/rolling-sums.js'
import type { AttemptResult } from './attempt-result.js'
import type { BreakerAttempt } from './breaker.js'
import type { UpstreamState, UpstreamStates } from './upstream-state.js'
import type { PreparedRequest, Preparation } from './prepare-candidate.js'

/** The next step of the candidate loop. */
type Step =
  /** The same target, without the reasoning that it refused. */
  | { readonly kind: 'amended'; readonly prepared: PreparedRequest }
  /** The same target at once: on another connection, or with another credential. */
  | { readonly kind: 'at_once'; readonly prepared: PreparedRequest | null }
  /** The same target after a wait. */
  | { readonly kind: 'retry'; readonly waitMs: number }
  | { readonly kind: 'next_target' }
  /** The client gets the error. */
  | { readonly kind: 'end' }

/** No further attempt begins if less time than this is left before the client's deadline. */
const MIN_LEFT_MS = 500
const END: Step = { kind: 'end' }

/** An attempt that failed before the reply to the client began. */
interface FailedAttempt {
  readonly result: AttemptResult
  readonly prepared: PreparedRequest
  readonly error: WireError
}

/** The request whose attempt failed. */
export interface RetriedRequest {
  readonly x: Pick<ServedRequest, 'startedMs' | 'route'>
  readonly preparation: Preparation
  /** The client's deadline for the whole reply, in ms from its request; infinite if it sent none. */
  readonly timeoutMs: number
  /** The request may be executed twice. */
  readonly isRepeatable: boolean
}

/**
 * Decides, and takes a credential or a retry from the budget for the next attempt. Throws as
 * `Preparation.amended`.
 */
export function stepAfter(
  { result, prepared, error }: FailedAttempt,
  turn: CandidateTurn,
  request: RetriedRequest,
): Step {
  // The upstream has executed the earlier parts.
  if (result.occasion === 'rest' || prepared.outgoing.streamed !== undefined) return END
  if (result.occasion !== 'amended') {
    const amended = request.preparation.amended(prepared, turn.candidate.target, error)
    if (amended !== null) return { kind: 'amended', prepared: amended }
  }
  if (isStaleConnection(error, result) && prepared.onFreshConnection !== true) {
    return { kind: 'at_once', prepared: { ...prepared, onFreshConnection: true } }
  }
  const { isRepeatable } = request
  const reaction = reactionTo(error, result)
  const leftMs = timeLeftMs(turn, request)
  if (reaction === 'never' || leftMs < MIN_LEFT_MS) return END
  if (turn.rotate(result)) return { kind: 'at_once', prepared: null }
  const { retry } = request.x.route.handling
  const waitMs = reaction === 'retry' ? turn.retryInMs(retry, error) : null
  if (waitMs !== null && leftMs - waitMs >= MIN_LEFT_MS && turn.mayRetry(retry)) {
    return { kind: 'retry', waitMs }
  }
  return reaction === 'if_repeatable' && !isRepeatable ? END : { kind: 'next_target' }
}

/** Until the deadline of the client, or of the upstream. */
function timeLeftMs({ candidate }: CandidateTurn, { x, timeoutMs }: RetriedRequest): number {
  const { totalMs } = candidate.target.upstream.config.timeouts
  return x.startedMs + Math.min(timeoutMs, totalMs) - performance.now()
}

/**
 * `retry`: the same target, then the next one. `next`: the next target. `if_repeatable`: the upstream may
 * have executed the request, so the next target only if the request may be repeated. `never`: the client gets
 * the error.
 */
export type Reaction = 'retry' | 'next' | 'if_repeatable' | 'never'

/** The properties of an attempt that ended before its first content. */
export type Failure = Pick<AttemptResult, 'status' | 'wasSent' | 'wasFullySent' | 'hasReplied' | 'isStreamed'>

/** Statuses of a provider that fails or throttles. Other 5xx, of proxies before it, count as well. */
function isTransient(status: number): boolean {
  return status === 408 || status === 429 || status >= 500
}

/** The reaction to an error that the upstream caused; `never` for every other one. Pure. */
export function reactionTo(error: WireError, failure: Failure): Reaction {
  const reaction = reactionOf(error, failure)
  return reaction === 'retry' && error.retryable === false ? 'next' : reaction
}

function reactionOf(
  error: WireError,
  { status, wasSent, wasFullySent, hasReplied, isStreamed }: Failure,
): Reaction {
  switch (error.kind) {
    case 'upstream_unreachable':
      return 'retry'
    case 'upstream_denied':
    case 'upstream_misconfigured':
      return 'next'
    case 'upstream_busy':
      return status === null || status === 200 || isTransient(status) ? 'retry' : 'next'
    case 'upstream_credential':
      // The identity retries in the background.
      return 'next'
    case 'overloaded':
      // All connections are in use, or no more can be opened: nothing was sent.
      return wasSent ? 'never' : 'next'
    case 'upstream_timeout':
      if (!wasSent || (status !== null && status !== 200)) return 'retry'
      return 'if_repeatable'
    case 'upstream_failed':
      // Without a status the connection was lost.
      if (status === null) {
        return wasSent && (wasFullySent || hasReplied) ? 'if_repeatable' : 'retry'
      }
      return status === 200 || isTransient(status) ? 'retry' : 'next'
    case 'upstream_truncated':
      return isStreamed ? 'retry' : 'if_repeatable'
    case 'upstream_malformed':
      return isStreamed ? 'next' : 'if_repeatable'
    default:
      return 'never'
  }
}

/** A reused connection that closes within this time after sending was closing before. */
const STALE_MS = 1000

/**
 * Whether the upstream closed an idle connection while the request was being sent, and so did not read it. A
 * reply that was cut within its head proves that it did.
 */
function isStaleConnection(
  { kind }: WireError,
  {
    status,
    isReused,
    hasReplied,
    firstByteMs,
  }: Pick<AttemptResult, 'status' | 'isReused' | 'hasReplied' | 'firstByteMs'>,
): boolean {
  if (kind !== 'upstream_failed' || status !== null || hasReplied) return false
  return isReused && (firstByteMs ?? 0) < STALE_MS
}

/** The settings of the turns of a request. */
export interface TurnSettings {
  /** The state of the upstreams between requests. */
  readonly states: Pick<UpstreamStates, 'of' | 'clock'>
  /** Requests with the same key prefer the same credential; null: no preference. */
  readonly stickyKey: string | null
}

/**
 * The attempts of a request on one candidate: chooses the credential, decides whether a retry may follow, and
 * reports each attempt to the circuit breaker and the latency average of the upstream.
 */
export class CandidateTurn {
  readonly candidate: Candidate
  /** The index of the credential to use. */
  credential: number
  private readonly state: UpstreamState
  private readonly clock: Clock
  private readonly stickyKey: string | null
  private readonly tried = new Set<number>()
  private tries = 0
  /** The breaker's record of the attempt that is prepared or runs; null between two attempts. */
  private breakerAttempt: BreakerAttempt | null
  private ended: ((nowMs: number, hasContent: boolean) => void) | null = null

  /**
   * Claims the test request of a half-open breaker at once, because preparing an attempt may take a while;
   * `abandoned` releases it if nothing is sent. `beside`: the turn that this one hedges, whose credential is
   * avoided.
   */
  constructor(
    candidate: Candidate,
    { states, stickyKey }: TurnSettings,
    beside: CandidateTurn | null = null,
  ) {
    const state = states.of(candidate.target.upstream.config.name)
    this.candidate = candidate
    this.state = state
    this.clock = states.clock
    this.stickyKey = stickyKey
    this.breakerAttempt = state.breaker.begin()
    const { credentials } = state
    const isSame = beside !== null && beside.candidate.target.upstream === candidate.target.upstream
    const other = isSame ? credentials.next(new Set([beside.credential]), stickyKey) : null
    this.credential = (other ?? credentials.next(this.tried, stickyKey))?.index ?? 0
  }

  /** Records that an attempt is being sent. */
  begin(): void {
    const { state, clock, candidate } = this
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
    this.ended?.(this.clock.now(), true)
  }

  /** The attempt was cancelled, or was never sent. */
  abandoned(): void {
    this.breakerAttempt?.abandoned()
    this.breakerAttempt = null
    this.ended?.(this.clock.now(), false)
  }

  /** The attempt failed. A refused credential rests. */
  failed(error: WireError, { status }: AttemptResult): void {
    const { state, clock } = this
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
    const { state, stickyKey } = this
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
    const { random } = this.clock
    const retryAfterMs = waitOf(error)
    return backOffMs({ retry: this.tries, retryAfterMs, maxWaitMs, random: random() })
  }

  /** Takes a retry of the upstream's retry budget, if one is left and the breaker allows requests. */
  mayRetry({ budget }: RetryConfig): boolean {
    return this.isAllowed && this.state.retries.tryRetry(budget)
  }

  /** Whether the breaker allows another attempt: retries do not test an upstream that is failing. */
  get isAllowed(): boolean {
    const { breaker } = this.state
    return breaker.state === 'closed' || breaker.allows()
  }
}

function refusesCredential(status: number | null): status is 401 | 403 | 429 {
  return status === 401 || status === 403 || status === 429
}

function waitOf({ retryAfterSeconds }: WireError): number | null {
  return retryAfterSeconds === undefined ? null : retryAfterSeconds * 1000
}

const FIRST_MS = 250
/** `Retry-After` is exceeded by up to this share, so that not all clients return at the same time. */
const JITTER = 0.1

/** The values that a wait depends on. */
interface BackOff {
  /** 1 for the first retry on a target. */
  readonly retry: number
  /** Null: the upstream sent no `Retry-After`. */
  readonly retryAfterMs: number | null
  readonly maxWaitMs: number
  /** From 0 to below 1. */
  readonly random: number
}

/**
 * The wait before a retry, in ms: the upstream's `Retry-After`, else exponential back-off with full jitter.
 * Null if `Retry-After` exceeds `maxWaitMs`, so that the next target should be tried. Pure.
 */
export function backOffMs({ retry, retryAfterMs, maxWaitMs, random }: BackOff): number | null {
  if (retryAfterMs !== null) {
    if (retryAfterMs > maxWaitMs) return null
    return Math.min(maxWaitMs, retryAfterMs * (1 + JITTER * random))
  }
  const longestMs = Math.min(maxWaitMs, FIRST_MS * 2 ** (retry - 1))
  return longestMs * random
}
