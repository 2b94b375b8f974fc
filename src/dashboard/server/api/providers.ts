/** Comparison of upstreams for administrators, with canaries and shadows. */
import type { LedgerEntry } from '../../../ledger/entry.js'
import { ComparedUpstream } from '../../../ledger/compare-upstreams.js'
import { signedRoute, type Reply, type Route, type SignedInRequest } from '../routing/route.js'
import * as schema from '../schema/schema.js'
import type { Services } from '../services.js'

const HOUR_MS = 3_600_000
const PAGE_ROWS = 1_000
/** Maximum number of pages of entries per reply; `fromMs` of the reply is the time of the oldest one. */
const MAX_PAGES = 10

/** The routes. */
export function providerRoutes(services: Services): Route[] {
  return [
    signedRoute('GET', '/providers', {
      credential: 'read gateway',
      query: schema.providersQuery,
      reply: schema.providersReply,
      handle: (request) => providers(services, request),
    }),
  ]
}

async function providers(
  services: Services,
  { query }: SignedInRequest<ReturnType<(typeof schema.providersQuery)['parse']>, undefined>,
): Promise<Reply> {
  const nowMs = services.now()
  const [read, gatewayStatus] = await Promise.all([
    newestRows(services, nowMs - (query.hours ?? 1) * HOUR_MS),
    services.gatewayStatus(),
  ])
  const { rows, fromMs } = read
  const { upstreams } = services.snapshot().config
  const json: schema.ProvidersReply = {
    nowMs,
    fromMs,
    canaries:
      gatewayStatus === null ? null : gatewayStatus.canaries.map((canary) => ({ ...canary })),
    upstreams: Object.keys(upstreams).map((name) => sideOf(name, rows)),
    shadows: shadowsOf(rows),
  }
  return { status: 200, json }
}

async function newestRows(
  { ledger }: Services,
  sinceMs: number,
): Promise<{ readonly rows: readonly LedgerEntry[]; readonly fromMs: number }> {
  const rows: LedgerEntry[] = []
  let after: string | null = null
  for (let pages = 0; pages < MAX_PAGES; pages += 1) {
    const page = await ledger.entries({ accountId: null, fromMs: sinceMs, after, limit: PAGE_ROWS })
    rows.push(...page.entries)
    if (page.next === null) return { rows, fromMs: sinceMs }
    after = page.next
  }
  return { rows, fromMs: rows.at(-1)?.atMs ?? sinceMs }
}

/** One comparison per pair of upstreams, over the requests that were copied from one to the other. */
function shadowsOf(rows: readonly LedgerEntry[]): schema.ProvidersReply['shadows'] {
  const byId = new Map(rows.map((row) => [row.requestId, row]))
  const pairs = new Map<string, { primary: LedgerEntry[]; shadow: LedgerEntry[] }>()
  for (const copy of rows) {
    const original = copy.shadowOf === null ? undefined : byId.get(copy.shadowOf)
    if (original === undefined || original.upstream === null || copy.upstream === null) continue
    const name = JSON.stringify([original.upstream, copy.upstream])
    const pair = pairs.get(name) ?? { primary: [], shadow: [] }
    pairs.set(name, pair)
    pair.primary.push(original)
    pair.shadow.push(copy)
  }
  return [...pairs.values()].map(({ primary, shadow }) => ({
    primary: sideOf(primary[0]?.upstream ?? '', primary),
    shadow: sideOf(shadow[0]?.upstream ?? '', shadow),
  }))
}

function sideOf(upstream: string, rows: readonly LedgerEntry[]): schema.ProviderSide {
  const side = new ComparedUpstream({ upstream, model: null }, Math.random)
  for (const row of rows) side.add(row)
  const figures = side.figures()
  return {
    upstream,
    requests: figures.requests,
    shadowRequests: figures.shadowRequests,
    errors: figures.errors,
    errorRate: figures.errorRate,
    rejected: figures.rejected,
    firstTokenP50Ms: rounded(figures.firstContentP50Ms),
    firstTokenP95Ms: rounded(figures.firstContentP95Ms),
    inputTokens: figures.inputTokens,
    outputTokens: figures.outputTokens,
    spendNanoUsd: figures.costNanoUsd,
    requestNanoUsd: figures.costPerRequestNanoUsd,
    unpricedRequests: figures.unpriced,
  }
}

function rounded(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms)
}
