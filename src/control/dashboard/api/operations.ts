/**
 * Operations for administrators: the health of upstreams, the configuration, and the memory of the store.
 */
import { isConfigured, type UpstreamConfig } from '../../../config/config.js'
import type { LedgerEntry } from '../../../ledger/entry.js'
import type { GatewayStatus } from '../../gateway-status.js'
import { signedRoute, type Reply, type Route } from '../routing/route.js'
import * as schema from '../schema/schema.js'
import type { Services } from '../../services.js'
import { healthOf, upstreamHealth, type UpstreamHealth } from '../upstream-health.js'

/** The period of rates. */
const RECENT_MS = 5 * 60_000
/**
 * Maximum number of entries read of this period. If there are more, rates refer to the period that they span.
 */
const MAX_ROWS = 1_000

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
  const { maxMemory: max, keepDays } = config.ledger
  const [recent, view, memory, archive] = await Promise.all([
    ledger.entries({ accountId: null, fromMs, after: null, limit: MAX_ROWS }),
    gatewayStatus(),
    ledger.memory({ max, keepDays }).catch(() => null),
    config.archive === null ? null : archiveState(ledger, nowMs).catch(() => null),
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
    ledgerMemory: memory && {
      usedBytes: memory.usedBytes,
      maxBytes: memory.maxBytes && Math.round(memory.maxBytes),
      fullInMs: memory.fullInMs && Math.round(memory.fullInMs),
      oldestAtMs: memory.oldestAtMs,
    },
    archive,
  }
  return { status: 200, json }
}

/** How far the archive is behind. */
async function archiveState(
  { archive }: Services['ledger'],
  nowMs: number,
): Promise<schema.OperationsReply['archive']> {
  const [progress, waiting] = await Promise.all([archive.progress(), archive.waiting()])
  return {
    rowsWaiting: waiting.rows,
    lagMs: waiting.oldestAtMs === null ? 0 : Math.max(0, Math.round(nowMs - waiting.oldestAtMs)),
    hotFromMs: progress === null || progress.hotFromMs === 0 ? null : progress.hotFromMs,
  }
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
    kinds: kindsOf(health),
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
  const same = (other: UpstreamConfig): boolean => JSON.stringify(other.auth) === JSON.stringify(auth)
  const first = upstreams.find(same)?.name ?? ''
  const expiresAtMs = status?.credentialsExpireMs?.[first]
  if (expiresAtMs === undefined) return null
  if (expiresAtMs <= Date.now()) return 'invalid'
  return status?.credentialsFailing?.[first] === 1 ? 'failing' : 'valid'
}

const NO_FAILURES = { client: 0, limits: 0, gateway: 0, provider: 0 } as const
const NEVER = { count: 0, lastAtMs: null } as const

/** The most frequent kinds. */
function kindsOf(health: UpstreamHealth | undefined): schema.UpstreamState['kinds'] {
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
