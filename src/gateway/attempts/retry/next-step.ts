/** What follows a failed attempt: the table of `after-failure.ts` with the limits of its route, client and upstream. */
import type { WireError } from '../../../errors.js'
import type { Made, Prepared } from '../attempt/attempt-owner.js'
import type { Leg } from '../candidate-turn.js'
import type { Sending } from '../send-options.js'
import { isStaleConnection, reactionTo } from './classify-failure.js'

/** What follows. */
export type Step =
  /** The same target again, without the reasoning that it refused. */
  | { readonly kind: 'amended'; readonly prepared: Prepared }
  /** The same target at once: on another connection, or with another credential. */
  | { readonly kind: 'at_once'; readonly prepared: Prepared | null }
  /** The same target after a wait. */
  | { readonly kind: 'retry'; readonly waitMs: number }
  | { readonly kind: 'next_target' }
  /** The client gets the error. */
  | { readonly kind: 'end' }

/** No further attempt begins with less time than this before the client's deadline. */
const LEAST_MS = 500
const END: Step = { kind: 'end' }

/** Decides; takes a credential of `leg`, or a retry of its upstream's budget. Throws as `Preparation.amended`. */
export function stepAfter(
  { result, prepared }: Made,
  error: WireError,
  leg: Leg,
  sending: Pick<Sending, 'exchange' | 'handling' | 'isRepeatable' | 'preparation' | 'timeoutMs'>,
): Step {
  // The upstream has executed the parts before it.
  if (result.occasion === 'rest') return END
  if (result.occasion !== 'amended') {
    const amended = sending.preparation.amended(prepared, leg.candidate.target, error)
    if (amended !== null) return { kind: 'amended', prepared: amended }
  }
  if (isStaleConnection(error, result) && prepared.onFreshConnection !== true) {
    return { kind: 'at_once', prepared: { ...prepared, onFreshConnection: true } }
  }
  const { isRepeatable, handling } = sending
  const reaction = reactionTo(error, result)
  const leftMs = timeLeftMs(leg, sending)
  if (reaction === 'never' || leftMs < LEAST_MS) return END
  if (leg.rotate(result)) return { kind: 'at_once', prepared: null }
  const { retry } = handling
  const waitMs = reaction === 'retry' ? leg.retryInMs(retry, error) : null
  if (waitMs !== null && leftMs - waitMs >= LEAST_MS && leg.mayRetry(retry)) {
    return { kind: 'retry', waitMs }
  }
  return reaction === 'if_repeatable' && !isRepeatable ? END : { kind: 'next_target' }
}

/** Until the deadline of the client, or of the upstream. */
function timeLeftMs(
  { candidate }: Leg,
  { exchange, timeoutMs }: Pick<Sending, 'exchange' | 'timeoutMs'>,
): number {
  const { totalMs } = candidate.target.upstream.config.timeouts
  return exchange.startedMs + Math.min(timeoutMs, totalMs) - performance.now()
}
