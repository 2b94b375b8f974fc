/**
 * Decides what follows a failed attempt: the class of the failure within the limits of route, client and
 * upstream.
 */
import type { WireError } from '../../errors.js'
import type { StartedAttempt, PreparedRequest } from './attempt-owner.js'
import type { AttemptResult } from './attempt-result.js'
import type { CandidateTurn } from './candidate-turns.js'
import type { SendOptions } from './send-options.js'

/** The next step of the candidate loop. */
export type Step =
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
export interface FailedAttempt {
  readonly attempt: StartedAttempt
  readonly error: WireError
}

/**
 * Decides, and takes a credential or a retry from the budget for the next attempt. Throws as
 * `Preparation.amended`.
 */
export function stepAfter(
  { attempt, error }: FailedAttempt,
  turn: CandidateTurn,
  sending: Pick<
    SendOptions,
    'exchange' | 'handling' | 'isRepeatable' | 'preparation' | 'timeoutMs'
  >,
): Step {
  const { result, prepared } = attempt
  // The upstream has executed the earlier parts.
  if (result.occasion === 'rest') return END
  if (result.occasion !== 'amended') {
    const amended = sending.preparation.amended(prepared, turn.candidate.target, error)
    if (amended !== null) return { kind: 'amended', prepared: amended }
  }
  if (isStaleConnection(error, result) && prepared.onFreshConnection !== true) {
    return { kind: 'at_once', prepared: { ...prepared, onFreshConnection: true } }
  }
  const { isRepeatable, handling } = sending
  const reaction = reactionTo(error, result)
  const leftMs = timeLeftMs(turn, sending)
  if (reaction === 'never' || leftMs < MIN_LEFT_MS) return END
  if (turn.rotate(result)) return { kind: 'at_once', prepared: null }
  const { retry } = handling
  const waitMs = reaction === 'retry' ? turn.retryInMs(retry, error) : null
  if (waitMs !== null && leftMs - waitMs >= MIN_LEFT_MS && turn.mayRetry(retry)) {
    return { kind: 'retry', waitMs }
  }
  return reaction === 'if_repeatable' && !isRepeatable ? END : { kind: 'next_target' }
}

/** Until the deadline of the client, or of the upstream. */
function timeLeftMs(
  { candidate }: CandidateTurn,
  { exchange, timeoutMs }: Pick<SendOptions, 'exchange' | 'timeoutMs'>,
): number {
  const { totalMs } = candidate.target.upstream.config.timeouts
  return exchange.startedMs + Math.min(timeoutMs, totalMs) - performance.now()
}

/**
 * `retry`: the same target, then the next one. `next`: the next target. `if_repeatable`: the upstream may
 * have executed the request, so the next target only if the request may be repeated. `never`: the client gets
 * the error.
 */
export type Reaction = 'retry' | 'next' | 'if_repeatable' | 'never'

/** The properties of an attempt that ended before its first content. */
export type Failure = Pick<
  AttemptResult,
  'status' | 'wasSent' | 'wasFullySent' | 'hasReplied' | 'isStreamed'
>

/** Statuses of a provider that fails or throttles. Other 5xx, of proxies before it, count as well. */
function isTransient(status: number): boolean {
  return status === 408 || status === 429 || status >= 500
}

/**
 * The reaction to an error that the upstream caused; `never` for every other one.
 *
 * Decides whether a failed attempt may be retried: the table of failures in
 * `docs/how-to/fallback-and-retries.md`. Pure.
 */
function reactionTo(error: WireError, failure: Failure): Reaction {
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
