/**
 * Operations for administrators: the health of upstreams, the configuration, and recent failures.
 */
import { isConfigured, type UpstreamConfig } from '../../../config/config.js'
import { causeOf, isOutcome, type Cause } from '../../../errors.js'
import type { LedgerEntry } from '../../../ledger/entry.js'
import type { GatewayStatus } from '../gateway-status.js'
import { rowViews } from '../request-rows.js'
import { signedRoute, type Reply, type Route } from '../routing/route.js'
import * as schema from '../schema/schema.js'
import type { Services } from '../services.js'

/** The period of rates. */
const RECENT_MS = 5 * 60_000
/**
 * Maximum number of entries read of this period. If there are more, rates refer to the period that they span.
 */
const MAX_ROWS = 1_000
const FAILED_ROWS = 25
/** The period searched for recent failures. */
const FAILED_MS = 7 * 86_400_000

/** The routes. */
export function operationRoutes(services: Services): Route[] {
  return [
    signedRoute('GET', '/operations', {
      credential: 'read gateway',
      reply: schema.operationsReply,
      handle: () => operations(services),
    }),
  ]
}

async function operations(services: Services): Promise<Reply> {
  const { ledger, now, gatewayStatus } = services
  const { config, generation, loadedAtMs, fileHash, changes } = services.snapshot()
  const nowMs = now()
  const fromMs = nowMs - RECENT_MS
  const [recent, failed, view] = await Promise.all([
    ledger.entries({ accountId: null, fromMs, after: null, limit: MAX_ROWS }),
    ledger.entries({
      accountId: null,
      failed: true,
      fromMs: nowMs - FAILED_MS,
      after: null,
      limit: FAILED_ROWS,
    }),
    gatewayStatus(),
  ])
  const oldest = recent.entries.at(-1)?.atMs ?? fromMs
  const minutes = (recent.next === null ? RECENT_MS : Math.max(1_000, nowMs - oldest)) / 60_000
  const refused = view?.refused ?? null
  const healths = upstreamHealth(recent.entries)
  const json: schema.OperationsReply = {
    nowMs,
    upstreams: Object.values(config.upstreams).map((upstream) => {
      const rows = recent.entries.filter((row) => row.upstream === upstream.name)
      return upstreamView({
        upstream,
        rows,
        minutes,
        gatewayStatus: view,
        health: healths.get(upstream.name),
        credentials: credentialsOf(upstream, Object.values(config.upstreams), view),
      })
    }),
    config: {
      generation,
      loadedAtMs,
      fileHash,
      changes: [...changes],
      refused: refused === null ? null : { ...refused, problems: [...refused.problems] },
    },
    failed: await rowViews(services, failed.entries),
  }
  return { status: 200, json }
}

interface UpstreamData {
  readonly upstream: UpstreamConfig
  /** Entries of requests to the upstream. */
  readonly rows: readonly LedgerEntry[]
  /** The period that the entries span. */
  readonly minutes: number
  readonly gatewayStatus: GatewayStatus | null
  /** Undefined if no request used the upstream. */
  readonly health: UpstreamHealth | undefined
  readonly credentials: schema.UpstreamState['credentials']
}

function upstreamView({
  upstream,
  rows,
  minutes,
  gatewayStatus,
  health,
  credentials,
}: UpstreamData): schema.UpstreamState {
  const { attempts = 0, failures = NO_FAILURES, retries = NEVER, fallbacks = NEVER } = health ?? {}
  const times = firstContentTimes(rows)
  return {
    name: upstream.name,
    dialect: upstream.dialect,
    preset: upstream.preset,
    platform: upstream.platform?.name ?? null,
    credentials,
    origin: new URL(upstream.baseUrl).origin,
    configured: isConfigured(upstream),
    apiKeySource: upstream.apiKeySource,
    inFlight: gatewayStatus === null ? null : (gatewayStatus.inFlight[upstream.name] ?? 0),
    attemptsPerMinute: attempts / minutes,
    failures: { ...failures },
    failureShare: failures.provider / Math.max(attempts, 1),
    health: healthOf(attempts, failures.provider),
    errors: errorsOf(health),
    retries: { ...retries },
    fallbacks: { ...fallbacks },
    firstTokenP50Ms: quantileOf(times, 0.5),
    firstTokenP95Ms: quantileOf(times, 0.95),
    breaker: gatewayStatus?.breakers[upstream.name] ?? null,
    breakerChangedAtMs: gatewayStatus?.breakersChangedMs[upstream.name] ?? null,
  }
}

/** Upstreams with the same identity share its credentials, which the first of them reports. */
function credentialsOf(
  { auth }: UpstreamConfig,
  upstreams: readonly UpstreamConfig[],
  status: GatewayStatus | null,
): schema.UpstreamState['credentials'] {
  if (auth === null) return null
  const same = (other: UpstreamConfig): boolean =>
    JSON.stringify(other.auth) === JSON.stringify(auth)
  const first = upstreams.find(same)?.name ?? ''
  const expiresAtMs = status?.credentialsExpireMs?.[first]
  if (expiresAtMs === undefined) return null
  if (expiresAtMs <= Date.now()) return 'invalid'
  return status?.credentialsFailing?.[first] === 1 ? 'failing' : 'valid'
}

const NO_FAILURES = { client: 0, limits: 0, gateway: 0, provider: 0 } as const
const NEVER = { count: 0, lastAtMs: null } as const

/** The most frequent kinds. */
function errorsOf(health: UpstreamHealth | undefined): schema.UpstreamState['errors'] {
  return [...(health?.kinds ?? [])]
    .map(([kind, seen]) => ({ kind, ...seen }))
    .sort((a, b) => b.count - a.count)
    .slice(0, 5)
}

/** In order. */
function firstContentTimes(rows: readonly LedgerEntry[]): number[] {
  return rows.flatMap(({ hops }) => hops.firstContent ?? []).sort((a, b) => a - b)
}

/** A quantile of sorted times, interpolated between the two nearest; null without times. */
function quantileOf(sorted: readonly number[], share: number): number | null {
  const at = share * (sorted.length - 1)
  const [before, after] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]]
  if (before === undefined || after === undefined) return null
  return Math.round(before + (after - before) * (at - Math.floor(at)))
}

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
export interface EventCount {
  count: number
  lastAtMs: number | null
}

/** The health of an upstream in recent requests. */
interface UpstreamHealth {
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
 * The health of each upstream that the entries name.
 *
 * A request counts for every upstream that it was attempted at. If a fallback succeeds, the first upstream
 * still has a failure, although the outcome of the entry is `ok`.
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
    return { upstream: text.slice(0, end), outcome: text.slice(end + 1) }
  })
}

/** Counts a failure. Returns false for `ok` and for a hedge that lost. */
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
