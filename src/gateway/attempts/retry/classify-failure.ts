/**
 * Decides whether a failed attempt may be retried: the table of failures in
 * `docs/how-to/fallback-and-retries.md`. Pure.
 */
import type { WireError } from '../../../errors.js'
import type { AttemptResult } from '../attempt-result.js'

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

/** The reaction to an error that the upstream caused; `never` for every other one. */
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
export function isStaleConnection(
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
