/**
 * The state of all processes of the gateway, as one process reports it to another. The file imports no other
 * code, so that every process can load it.
 */
import type { CanaryState } from '../gateway/routing/router.js'

const BREAKER_STATES = ['closed', 'half_open', 'open'] as const

/** The states that the metric `sluice_breaker_state` counts as 0, 1 and 2. */
type BreakerState = (typeof BREAKER_STATES)[number]

/** The state that the process with the configuration reports. */
export interface GatewayStatus {
  /** Requests in flight per upstream, over all processes of this machine. */
  readonly inFlight: Readonly<Record<string, number>>
  /** The circuit breaker per upstream; of several processes the state furthest from closed. */
  readonly breakers: Readonly<Record<string, BreakerState>>
  /** When each breaker last opened or closed, ms since 1970; absent: closed since the start. */
  readonly breakersChangedMs: Readonly<Record<string, number>>
  /** When the credentials of an identity expire, by its first upstream, in ms; 0 without credentials. */
  readonly credentialsExpireMs?: Readonly<Record<string, number>>
  /** Whether the last refresh of the credentials of an identity failed (1), by its first upstream. */
  readonly credentialsFailing?: Readonly<Record<string, number>>
  /** The last file that was refused, if that was after the generation in force was loaded. */
  readonly refused: { readonly atMs: number; readonly problems: readonly string[] } | null
  /** Targets with `abort`, over all processes of this machine. */
  readonly canaries: readonly CanaryState[]
}

/** Reads the state from the metrics of all processes, in Prometheus's text format. */
export function gatewayStatusOf(
  metrics: string,
  refused: GatewayStatus['refused'],
  canaries: GatewayStatus['canaries'] = [],
): GatewayStatus {
  const levels = levelsOf(metrics, /^sluice_breaker_state\{[^}]*upstream="([^"]+)"[^}]*\} (\d+)/gm)
  const breakers: Record<string, BreakerState> = {}
  for (const [upstream, level] of Object.entries(levels)) {
    breakers[upstream] = BREAKER_STATES[level] ?? 'closed'
  }
  const changed = levelsOf(
    metrics,
    /^sluice_breaker_changed_timestamp_seconds\{[^}]*upstream="([^"]+)"[^}]*\} (\d+(?:\.\d+)?)/gm,
  )
  const breakersChangedMs: Record<string, number> = {}
  for (const [upstream, seconds] of Object.entries(changed)) {
    if (seconds > 0) breakersChangedMs[upstream] = Math.round(seconds * 1_000)
  }
  const expiries = levelsOf(
    metrics,
    /^sluice_credential_expiry_timestamp_seconds\{[^}]*upstream="([^"]+)"[^}]*\} (\d+(?:\.\d+)?|\+Inf)/gm,
  )
  const credentialsExpireMs: Record<string, number> = {}
  for (const [upstream, seconds] of Object.entries(expiries)) {
    // Keys that do not expire.
    credentialsExpireMs[upstream] = Number.isNaN(seconds) ? Infinity : seconds * 1_000
  }
  return {
    credentialsExpireMs,
    credentialsFailing: levelsOf(
      metrics,
      /^sluice_credential_refresh_failing\{[^}]*upstream="([^"]+)"[^}]*\} (\d+)/gm,
    ),
    inFlight: levelsOf(metrics, /^sluice_inflight\{[^}]*upstream="([^"]+)"[^}]*\} (\d+)/gm),
    breakers,
    breakersChangedMs,
    refused,
    canaries,
  }
}

function levelsOf(metrics: string, pattern: RegExp): Record<string, number> {
  const levels: Record<string, number> = {}
  for (const [, upstream = '', level] of metrics.matchAll(pattern)) levels[upstream] = Number(level)
  return levels
}

/** Whether a message of another process is a status. */
export function isGatewayStatus(value: unknown): value is GatewayStatus {
  return typeof value === 'object' && value !== null && 'inFlight' in value && 'refused' in value
}
