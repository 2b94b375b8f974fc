/**
 * Decides what follows a failed attempt: the class of the failure within the limits of route, client and
 * upstream.
 */
import type { WireError } from '../../../errors.js'
import type { StartedAttempt, PreparedRequest } from '../attempt/attempt-owner.js'
import type { CandidateTurn } from '../candidate-turn.js'
import type { SendOptions } from '../send-options.js'
import { isStaleConnection, reactionTo } from './classify-failure.js'

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
