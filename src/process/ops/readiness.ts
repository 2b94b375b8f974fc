/** Decides whether the process can serve requests: `/readyz`. */

/** Whether the process can serve requests, and the result of each check: `ok`, or the problem. */
export interface Readiness {
  ready: boolean
  /** Failed checks that do not stop requests with known keys; `/readyz?strict` is 503 for them. */
  degraded: string[]
  checks: Record<string, string>
}

/** The state of a process: each text is `ok` or the problem. */
interface Conditions {
  readonly store: string
  /** The store has not answered for longer than keys are served without it (`auth.stale_seconds`). */
  readonly isStoreAwayTooLong: boolean
  readonly isLimiterAway: boolean
  readonly ledger: string
  /** Requests are refused because their ledger entries could be recorded nowhere. */
  readonly isLedgerRefusing: boolean
  readonly upstreams: string
  readonly overload: string
  /** Null if the gateway has no identity at a cloud. */
  readonly credentials: string | null
  /** Null if another process monitors canaries. */
  readonly canaries: string | null
  readonly fleet: string
  readonly isDraining: boolean
}

/**
 * An unavailable store makes the process degraded, not unready: known keys are served for
 * `auth.stale_seconds`. Credentials of a cloud that cannot be refreshed make it
 * degraded too. Failing upstreams, overload and gateways with another configuration are shown only.
 */
export function readinessOf(conditions: Conditions): Readiness {
  const { store, ledger, upstreams, overload, credentials, canaries, fleet } = conditions
  const { isDraining } = conditions
  const limits = conditions.isLimiterAway ? 'kept by each process alone' : 'ok'
  const checks = {
    config: 'ok',
    store,
    limits,
    ledger,
    upstreams,
    overload,
    ...(credentials === null ? {} : { credentials }),
    ...(canaries === null ? {} : { canaries }),
    fleet,
    drain: isDraining ? 'draining' : 'ok',
  }
  const isUnready =
    isDraining || conditions.isLedgerRefusing || (store !== 'ok' && conditions.isStoreAwayTooLong)
  const degraded = degradedOf({ store, limits, ledger })
  if (credentials !== null && credentials !== 'ok') degraded.push('credentials')
  return { ready: !isUnready, degraded, checks }
}

/** Limits and the ledger fail with the store, which is then the only cause. */
function degradedOf(states: Readonly<Record<'store' | 'limits' | 'ledger', string>>): string[] {
  if (states.store !== 'ok') return ['store']
  return (['limits', 'ledger'] as const).filter((name) => states[name] !== 'ok')
}
