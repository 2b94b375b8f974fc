/** The health of upstreams, by the attempts in recent requests: healthy, degraded, failing or idle. */
import { causeOf, isOutcome, type Cause } from '../../errors.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import type * as schema from './schema/schema.js'

/** Attempts of which a share is a state of the upstream: a single failure of two is none. */
const LEAST_FAILURES = { failing: 5, degraded: 3 } as const
const LEAST_SHARE = { failing: 0.25, degraded: 0.05 } as const

/** The health of an upstream by the failures of the provider among its attempts. */
export function healthOf(attempts: number, failures: number): schema.UpstreamState['health'] {
  if (attempts === 0) return 'idle'
  for (const state of ['failing', 'degraded'] as const) {
    if (failures >= LEAST_FAILURES[state] && failures / attempts >= LEAST_SHARE[state]) return state
  }
  return 'healthy'
}

/** A number of events, and the time of the last one (ms since 1970). */
interface EventCount {
  count: number
  lastAtMs: number | null
}

/** The health of an upstream in recent requests. */
export interface UpstreamHealth {
  /** Retries included. */
  attempts: number
  readonly failures: Record<Cause, number>
  /** Failures of the provider by kind. */
  readonly kinds: Map<string, { count: number; lastAtMs: number }>
  /** Retries at this upstream after a failure. */
  readonly retries: EventCount
  /** Fallbacks to another upstream after a failure at this one. */
  readonly fallbacks: EventCount
}

interface Attempt {
  readonly upstream: string
  readonly outcome: string
}

/**
 * The health of each upstream that the entries name. A request counts for every upstream that it was
 * attempted at: if a fallback succeeds, the first upstream still has a failure, although the outcome of the
 * entry is `ok`.
 */
export function upstreamHealth(rows: Iterable<LedgerEntry>): Map<string, UpstreamHealth> {
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
      countEvent(next.upstream === upstream ? health.retries : health.fallbacks, row.atMs)
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

/**
 * Parses `upstream:outcome` items, separated by `, `. Entries of earlier versions have only the number of
 * attempts.
 */
function attemptsOf({ attempted, attempts, upstream, outcome }: LedgerEntry): Attempt[] {
  if (attempted === null) return attempts > 0 && upstream !== null ? [{ upstream, outcome }] : []
  return attempted.split(', ').map((text) => {
    const end = text.lastIndexOf(':')
    const word = text.slice(end + 1)
    // A hedge that lost is no failure; as the outcome of an entry, the word is that of a batch.
    return { upstream: text.slice(0, end), outcome: word === 'cancelled' ? 'ok' : word }
  })
}

/** Counts a failure. Returns false for `ok`. */
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

function countEvent(what: EventCount, atMs: number): void {
  what.count += 1
  what.lastAtMs = Math.max(what.lastAtMs ?? 0, atMs)
}
