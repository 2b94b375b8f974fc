/** Comparison of upstreams and their models for administrators, with canaries and shadows. */
import { HOUR_MS } from '../../../base/time-units.js'
import type { LedgerEntry } from '../../../ledger/entry.js'
import { ComparedUpstream } from '../compare-upstreams.js'
import { PROPERTY_MARK, type UsageSum } from '../../../store/usage-queries.js'
import { signedRoute, type Reply, type Route, type SignedInRequest } from '../routing/route.js'
import * as schema from '../schema/schema.js'
import { type AskedRange, type UsageRange } from '../../../usage/ranges.js'
import { usageIn, type Services } from '../../services.js'
import { figuresOf, pointsOf } from '../usage-figures.js'

const PAGE_ROWS = 1_000
/** Up to this number of requests, figures are those of the entries: exact, and of each attempt. */
const MOST_EXACT = 2_000
/** Maximum number of pages of entries in which copies are paired. */
const MAX_PAGES = 10

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
  const { snapshot, now } = services
  const usage = await usageIn(services, askedRange(query, now()))
  const { nowMs, fromMs, toMs, stepMs, starts } = usage.range
  const [sums, copies, gatewayStatus] = await Promise.all([
    usage.sums({ accountId: null, property: 'upstream' }),
    usage.sums({ accountId: null, property: 'shadow' }),
    services.gatewayStatus(),
  ])
  const isExact = figuresOf(sums).requests <= MOST_EXACT
  const rows = isExact || copies.length > 0 ? await newestRows(services, { fromMs, toMs }) : []
  const json: schema.Sent<typeof schema.providersReply> = {
    ...{ nowMs, fromMs, toMs, stepMs, starts: [...starts.values()] },
    canaries: gatewayStatus === null ? null : gatewayStatus.canaries.map((canary) => ({ ...canary })),
    upstreams: Object.keys(snapshot().config.upstreams).map((name) => {
      const own = ofProperty(sums, 'upstream', name)
      const points = pointsOf(own).map(({ startMs: at, firstTokenP50Ms, firstTokenP95Ms, ...point }) => {
        return { startMs: at, requests: point.requests, firstTokenP50Ms, firstTokenP95Ms }
      })
      const sides = isExact
        ? sidesOfRows(name, rows)
        : sidesOfSums(name, own, ofProperty(copies, 'shadow', name))
      return { ...sides, points }
    }),
    compared: comparedModels(query.compare ?? '', sums),
    shadows: shadowsOf(rows),
  }
  return { status: 200, json }
}

function ofProperty(sums: readonly UsageSum[], property: string, value: string): UsageSum[] {
  return sums.filter(({ keyId }) => keyId === `${PROPERTY_MARK}${property}=${value}`)
}

/** The models of `MODEL UPSTREAM,MODEL UPSTREAM` over time. */
function comparedModels(
  asked: string,
  sums: readonly UsageSum[],
): schema.Sent<typeof schema.comparedModel>[] {
  const pairs = asked.split(',').filter((text) => text.includes(' '))
  return pairs.map((text) => {
    const [model, upstream] = [text.slice(0, text.lastIndexOf(' ')), text.slice(text.lastIndexOf(' ') + 1)]
    const own = ofProperty(sums, 'upstream', upstream).filter((sum) => sum.model === model)
    const points = pointsOf(own).map((figures) => {
      const { startMs, firstTokenP95Ms } = figures
      return { startMs, firstTokenP95Ms, requestNanoUsd: costOfRequest(figures) }
    })
    return { upstream, model, points }
  })
}

/** The mean cost of the requests that succeeded and have a known price; null without any. */
function costOfRequest({
  requests,
  failed,
  unpricedRequests,
  costNanoUsd,
}: schema.Sent<typeof schema.figures>): number | null {
  const priced = requests - failed - unpricedRequests
  return priced <= 0 ? null : Math.round(Number(costNanoUsd) / priced)
}

/** By default the last hour; `hours` is the former name of a range that ends now. */
function askedRange(
  { hours, ...asked }: ReturnType<(typeof schema.providersQuery)['parse']>,
  nowMs: number,
): AskedRange {
  if (hours !== undefined) {
    return { fromMs: nowMs - hours * HOUR_MS, toMs: nowMs, by: hours === 1 ? 'minute' : 'hour' }
  }
  const hasTimes = asked.fromMs !== undefined || asked.toMs !== undefined
  return hasTimes ? asked : { range: '1h', ...asked }
}

type Sides = Omit<schema.Sent<typeof schema.comparedUpstream>, 'points'>

function sidesOfRows(upstream: string, rows: readonly LedgerEntry[]): Sides {
  const own = rows.filter((row) => row.upstream === upstream)
  const models = [...new Set(own.map(({ model }) => model))].map((model) => {
    return {
      model,
      ...sideOf(
        upstream,
        own.filter((row) => row.model === model),
      ),
    }
  })
  return { ...sideOf(upstream, rows), models: models.sort(byRequests) }
}

function sidesOfSums(upstream: string, sums: readonly UsageSum[], copies: readonly UsageSum[]): Sides {
  const models = [...new Set(sums.map(({ model }) => model))].map((model) => {
    const own = (all: readonly UsageSum[]): UsageSum[] => all.filter((sum) => sum.model === model)
    return { model, ...sideOfSums(upstream, own(sums), own(copies)) }
  })
  return { ...sideOfSums(upstream, sums, copies), models: models.sort(byRequests) }
}

function byRequests(a: Sides['models'][number], b: Sides['models'][number]): number {
  return b.requests - a.requests || (a.model < b.model ? -1 : 1)
}

function sideOfSums(
  upstream: string,
  sums: readonly UsageSum[],
  copies: readonly UsageSum[],
): schema.Sent<typeof schema.providerSide> {
  const figures = figuresOf(sums)
  const { requests, byCause, costNanoUsd, unpricedRequests } = figures
  return {
    upstream,
    requests,
    shadowRequests: figuresOf(copies).requests,
    failures: byCause.provider,
    failureShare: requests === 0 ? null : byCause.provider / requests,
    rejected: byCause.client,
    firstTokenP50Ms: figures.firstTokenP50Ms,
    firstTokenP95Ms: figures.firstTokenP95Ms,
    inputTokens: figures.inputTokens,
    outputTokens: figures.outputTokens,
    costNanoUsd,
    requestNanoUsd: costOfRequest(figures),
    unpricedRequests,
  }
}

async function newestRows(
  { ledger }: Services,
  { fromMs, toMs }: Pick<UsageRange, 'fromMs' | 'toMs'>,
): Promise<readonly LedgerEntry[]> {
  const rows: LedgerEntry[] = []
  let after: string | null = null
  for (let pages = 0; pages < MAX_PAGES; pages += 1) {
    const page = await ledger.entries({ accountId: null, fromMs, toMs, after, limit: PAGE_ROWS })
    rows.push(...page.entries)
    if (page.next === null) break
    after = page.next
  }
  return rows
}

/** One comparison per pair of upstreams, over the requests that were copied from one to the other. */
function shadowsOf(rows: readonly LedgerEntry[]): schema.Sent<typeof schema.providersReply>['shadows'] {
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

function sideOf(upstream: string, rows: readonly LedgerEntry[]): schema.Sent<typeof schema.providerSide> {
  const side = new ComparedUpstream(upstream, Math.random)
  for (const row of rows) side.add(row)
  const figures = side.figures()
  return {
    upstream,
    requests: figures.requests,
    shadowRequests: figures.shadowRequests,
    failures: figures.failures,
    failureShare: figures.failureShare,
    rejected: figures.rejected,
    firstTokenP50Ms: rounded(figures.firstContentP50Ms),
    firstTokenP95Ms: rounded(figures.firstContentP95Ms),
    inputTokens: figures.inputTokens,
    outputTokens: figures.outputTokens,
    costNanoUsd: figures.costNanoUsd,
    requestNanoUsd: figures.costPerRequestNanoUsd,
    unpricedRequests: figures.unpriced,
  }
}

function rounded(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms)
}
