/** What follows a failed attempt: the table of `after-failure.ts` with the limits of its route, client and upstream. */
import type { WireError } from '../../../errors.js'
import type { StartedAttempt, PreparedRequest } from '../attempt/attempt-owner.js'
import type { CandidateTurn } from '../candidate-turn.js'
import type { SendOptions } from '../send-options.js'
import { isStaleConnection, reactionTo } from './classify-failure.js'

/** What follows. */
export type Step =
  /** The same target again, without the reasoning that it refused. */
  | { readonly kind: 'amended'; readonly prepared: PreparedRequest }
  /** The same target at once: on another connection, or with another credential. */
  | { readonly kind: 'at_once'; readonly prepared: PreparedRequest | null }
  /** The same target after a wait. */
  | { readonly kind: 'retry'; readonly waitMs: number }
  | { readonly kind: 'next_target' }
  /** The client gets the error. */
  | { readonly kind: 'end' }

/** No further attempt begins with less time than this before the client's deadline. */
const LEAST_MS = 500
const END: Step = { kind: 'end' }

/** Decides; takes a credential of `turn`, or a retry of its upstream's budget. Throws as `Preparation.amended`. */
export function stepAfter(
  { result, prepared }: StartedAttempt,
  error: WireError,
  turn: CandidateTurn,
  sending: Pick<
    SendOptions,
    'exchange' | 'handling' | 'isRepeatable' | 'preparation' | 'timeoutMs'
  >,
): Step {
  // The upstream has executed the parts before it.
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
  if (reaction === 'never' || leftMs < LEAST_MS) return END
  if (turn.rotate(result)) return { kind: 'at_once', prepared: null }
  const { retry } = handling
  const waitMs = reaction === 'retry' ? turn.retryInMs(retry, error) : null
  if (waitMs !== null && leftMs - waitMs >= LEAST_MS && turn.mayRetry(retry)) {
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
