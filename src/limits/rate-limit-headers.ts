/** The headers that tell a client how much of its limits is left. */
import type { LimitState } from '../store/ledger.js'
import type { LimitDemand } from './find-limits.js'

/**
 * Name, value, …: `x-ratelimit-{limit,remaining,reset}-{requests,tokens}` of the tightest limit of each,
 * with the reset in OpenAI's form (`12s`); empty if no such limit applies.
 */
export function rateLimitHeaders(
  limitDemands: readonly LimitDemand[],
  limitStates: readonly LimitState[],
): string[] {
  const headers: string[] = []
  for (const kind of ['requests', 'tokens'] as const) {
    let tightest: LimitState | null = null
    for (const [index, { demand }] of limitDemands.entries()) {
      const limitState = limitStates[index]
      if (demand.kind !== kind || limitState === undefined) continue
      if (tightest === null || isTighter(limitState, tightest)) tightest = limitState
    }
    if (tightest === null) continue
    const { limit, remaining, resetMs } = tightest
    headers.push(`x-ratelimit-limit-${kind}`, String(limit))
    headers.push(`x-ratelimit-remaining-${kind}`, String(Math.max(0, Math.floor(remaining))))
    headers.push(`x-ratelimit-reset-${kind}`, `${Math.max(0, Math.ceil(resetMs / 1_000))}s`)
  }
  return headers
}

/** Whether fewer are left; if equal, whether the limit is smaller. */
function isTighter(one: LimitState, other: LimitState): boolean {
  if (one.remaining !== other.remaining) return one.remaining < other.remaining
  return one.limit < other.limit
}
