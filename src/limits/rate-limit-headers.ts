/** The headers that tell a client how much of its limits is left. */
import type { LimitState } from '../store/ledger.js'
import { WINDOWS } from '../store/limit-arithmetic.js'
import type { LimitDemand } from './find-limits.js'
import { dollars } from './limit-refusal.js'

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
  addRemaining(headers, limitDemands, limitStates)
  return headers
}

/** `x-sluice-remaining-NAME-{usd,requests,tokens}`: the smallest rest of the limits of a dimension. */
function addRemaining(
  headers: string[],
  limitDemands: readonly LimitDemand[],
  limitStates: readonly LimitState[],
): void {
  let least: Map<string, number> | null = null
  for (const [index, { demand }] of limitDemands.entries()) {
    const { kind, subject } = demand
    const { counts } = WINDOWS[kind]
    const limitState = limitStates[index]
    if (limitState === undefined || counts === 'concurrent' || !subject.startsWith(DIMENSION)) continue
    const name = `x-sluice-remaining-${subject.slice(DIMENSION.length, subject.indexOf('='))}-${counts}`
    least ??= new Map()
    least.set(name, Math.min(least.get(name) ?? Number.POSITIVE_INFINITY, limitState.remaining))
  }
  for (const [name, amount] of least ?? []) {
    const left = Math.max(0, Math.floor(amount))
    headers.push(name, name.endsWith('-usd') ? dollars(left) : String(left))
  }
}

const DIMENSION = 'dimension:'

/** Whether fewer are left; if equal, whether the limit is smaller. */
function isTighter(one: LimitState, other: LimitState): boolean {
  if (one.remaining !== other.remaining) return one.remaining < other.remaining
  return one.limit < other.limit
}
