/**
 * How upstreams have done in recent requests, from ledger entries. Pure.
 *
 * A request counts for every upstream that it was attempted at: one that failed and was rescued by a fallback is a
 * failure of the first upstream, although its entry ends well.
 */
import { causeOf, isOutcome, type Cause } from '../../error-cause.js'
import type { UsageRow } from '../../ledger/row.js'

/** How often something happened, and when it last did (ms since 1970). */
export interface Happened {
  count: number
  lastAtMs: number | null
}

/** What recent requests say of an upstream. */
export interface UpstreamHealth {
  /** Retries included. */
  attempts: number
  readonly failures: Record<Cause, number>
  /** Failures of the provider by kind. */
  readonly kinds: Map<string, { count: number; lastAtMs: number }>
  /** Attempts that were repeated at this upstream after a failure. */
  readonly retries: Happened
  /** Moves to another upstream after a failure at this one. */
  readonly fallbacks: Happened
}

interface Attempt {
  readonly upstream: string
  readonly outcome: string
}

/** The health of each upstream that the entries name. */
export function upstreamHealth(rows: Iterable<UsageRow>): Map<string, UpstreamHealth> {
  const all = new Map<string, UpstreamHealth>()
  const of = (upstream: string): UpstreamHealth => {
    const known = all.get(upstream)
    if (known !== undefined) return known
    const made = newHealth()
    all.set(upstream, made)
    return made
  }
  for (const row of rows) {
    const attempts = attemptsOf(row)
    if (attempts.length === 0 && row.upstream !== null) {
      fail(of(row.upstream), row.outcome, row.atMs)
    }
    attempts.forEach(({ upstream, outcome }, at) => {
      const health = of(upstream)
      health.attempts += 1
      const next = attempts[at + 1]
      if (!fail(health, outcome, row.atMs) || next === undefined) return
      happen(next.upstream === upstream ? health.retries : health.fallbacks, row.atMs)
    })
  }
  return all
}

function newHealth(): UpstreamHealth {
  return {
    attempts: 0,
    failures: { client: 0, limits: 0, gateway: 0, provider: 0 },
    kinds: new Map(),
    retries: { count: 0, lastAtMs: null },
    fallbacks: { count: 0, lastAtMs: null },
  }
}

/** `upstream:outcome`, with `, ` between; entries of earlier versions have only the number of attempts. */
function attemptsOf({ attempted, attempts, upstream, outcome }: UsageRow): Attempt[] {
  if (attempted === null) return attempts > 0 && upstream !== null ? [{ upstream, outcome }] : []
  return attempted.split(', ').map((text) => {
    const end = text.lastIndexOf(':')
    return { upstream: text.slice(0, end), outcome: text.slice(end + 1) }
  })
}

/** Counts a failure; false if it is none (`ok`, or a hedge that lost). */
function fail(health: UpstreamHealth, outcome: string, atMs: number): boolean {
  const cause = isOutcome(outcome) ? causeOf(outcome) : null
  if (cause === null) return false
  health.failures[cause] += 1
  if (cause === 'provider') {
    const known = health.kinds.get(outcome)
    if (known === undefined) health.kinds.set(outcome, { count: 1, lastAtMs: atMs })
    else {
      known.count += 1
      known.lastAtMs = Math.max(known.lastAtMs, atMs)
    }
  }
  return true
}

function happen(what: Happened, atMs: number): void {
  what.count += 1
  what.lastAtMs = Math.max(what.lastAtMs ?? 0, atMs)
}
