/** Decides whether the process is ready: the checks of `/readyz`. */

/** Whether the process is ready, and the result of each check: `ok`, or the problem. */
export interface Readiness {
  ready: boolean
  checks: Record<string, string>
}

/** The state of a process: each text is `ok` or the problem. */
export interface Conditions {
  readonly store: string
  readonly isLimiterAway: boolean
  readonly ledger: string
  readonly upstreams: string
  readonly overload: string
  /** Null if another process monitors canaries. */
  readonly canaries: string | null
  readonly fleet: string
  readonly isDraining: boolean
}

/**
 * Failing upstreams, overload and gateways with another configuration are shown but do not make the gateway
 * unready: it still serves.
 */
export function readinessOf(conditions: Conditions): Readiness {
  const { store, isLimiterAway, ledger, upstreams, overload, canaries, fleet, isDraining } =
    conditions
  const checks = {
    config: 'ok',
    store,
    limits: isLimiterAway ? 'kept by each process alone' : 'ok',
    ledger,
    upstreams,
    overload,
    ...(canaries === null ? {} : { canaries }),
    fleet,
    drain: isDraining ? 'draining' : 'ok',
  }
  return { ready: store === 'ok' && !isDraining, checks }
}
