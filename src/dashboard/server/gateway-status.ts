/**
 * How the whole gateway stands, as far as one process has to ask another for it. Small enough to be sent
 * between processes, and loads nothing.
 */
import type { CanaryState } from '../../routing/canary.js'

const BREAKER_STATES = ['closed', 'half_open', 'open'] as const

/** As the metric `sluice_breaker_state` counts them: 0, 1, 2. */
export type BreakerState = (typeof BREAKER_STATES)[number]

/** What the process that reads the configuration knows. */
export interface GatewayStatus {
  /** Requests that are with each upstream now, all processes of this machine together. */
  readonly inFlight: Readonly<Record<string, number>>
  /** The circuit breaker of each upstream, of several processes the one that is furthest from closed. */
  readonly breakers: Readonly<Record<string, BreakerState>>
  /** When each breaker last opened or closed, ms since 1970; absent: closed since the start. */
  readonly breakersChangedMs: Readonly<Record<string, number>>
  /** The last file that was not taken, if that was after the one in force was loaded. */
  readonly refused: { readonly atMs: number; readonly problems: readonly string[] } | null
  /** Targets with `abort`, over all processes of this machine. */
  readonly canaries: readonly CanaryState[]
}

/** From all processes' metrics, in Prometheus's text format, and what became of the last file. */
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
  return {
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

/** Whether what another process sent is one. */
export function isGatewayStatus(value: unknown): value is GatewayStatus {
  return typeof value === 'object' && value !== null && 'inFlight' in value && 'refused' in value
}
