/** Operations for administrators: upstreams, the configuration, recent failures. */
import { isConfigured, type UpstreamConfig } from '../../../config/config.js'
import type { LedgerEntry } from '../../../ledger/entry.js'
import { FIRST_CONTENT_BOUNDS_MS } from '../../../store/usage-queries.js'
import { quantile } from '../usage-figures.js'
import type { GatewayStatus } from '../gateway-status.js'
import { signedRoute, type Reply, type Route } from '../routing/route.js'
import { rowViews } from '../request-rows.js'
import * as schema from '../schema/schema.js'
import type { Services } from '../services.js'
import { upstreamHealth, type UpstreamHealth } from '../upstream-health.js'

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
      credential: 'admin',
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
}

function upstreamView({
  upstream,
  rows,
  minutes,
  gatewayStatus,
  health,
}: UpstreamData): schema.UpstreamState {
  const { attempts = 0, failures = NO_FAILURES, retries = NEVER, fallbacks = NEVER } = health ?? {}
  const counts = firstContentCounts(rows)
  return {
    name: upstream.name,
    dialect: upstream.dialect,
    preset: upstream.preset,
    origin: new URL(upstream.baseUrl).origin,
    configured: isConfigured(upstream),
    apiKeySource: upstream.apiKeySource,
    inFlight: gatewayStatus === null ? null : (gatewayStatus.inFlight[upstream.name] ?? 0),
    attemptsPerMinute: attempts / minutes,
    failures: { ...failures },
    failureShare: failures.provider / Math.max(attempts, 1),
    errors: errorsOf(health),
    retries: { ...retries },
    fallbacks: { ...fallbacks },
    firstTokenP50Ms: quantile(counts, 0.5),
    firstTokenP95Ms: quantile(counts, 0.95),
    breaker: gatewayStatus?.breakers[upstream.name] ?? null,
    breakerChangedAtMs: gatewayStatus?.breakersChangedMs[upstream.name] ?? null,
  }
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

function firstContentCounts(rows: readonly LedgerEntry[]): number[] {
  const counts = FIRST_CONTENT_BOUNDS_MS.map(() => 0).concat(0)
  for (const { hops } of rows) {
    const { firstContent } = hops
    if (firstContent === undefined) continue
    const at = FIRST_CONTENT_BOUNDS_MS.findIndex((bound) => firstContent <= bound)
    const place = at === -1 ? counts.length - 1 : at
    counts[place] = (counts[place] ?? 0) + 1
  }
  return counts
}
