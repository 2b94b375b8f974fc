/** Usage: sums over time, single requests, their CSV file, and the latest requests. */
import type { Writable } from 'node:stream'
import { createGzip } from 'node:zlib'
import { GatewayError } from '../../../errors.js'
import { headerOf, type HttpResponse } from '../../../http/message.js'
import { beginReply, isClosed, sendReply } from '../../../http/respond.js'
import {
  matchesEntry,
  type EntryFilter,
  type EntryPage,
  type EntryQuery,
  type SumQuery,
  type UsageSum,
} from '../../../store/usage-queries.js'
import { accountReport, isReportGrouping, reportCsv, type Report } from '../account-reports.js'
import { accepts } from '../compress.js'
import { figuresOf, groupsOf, MAX_GROUPS, pointsOf, remainingSums } from '../usage-figures.js'
import {
  signedRoute,
  SELF_REPLIED,
  type HandlerResult,
  type Reply,
  type Route,
  type SignedInRequest,
} from '../routing/route.js'
import { notFound } from '../routing/access.js'
import { csvHead, csvLine, rowViews } from '../request-rows.js'
import * as schema from '../schema/schema.js'
import { PLAYGROUND, scopeOf, type Services } from '../services.js'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** The longest range of a reply. */
const LONGEST_MS = { hour: 31 * DAY_MS, day: 400 * DAY_MS } as const
const LIVE_ROWS = 25
/** The period searched for the newest entries, on each poll. */
const LIVE_MS = DAY_MS
const MAX_CSV_ROWS = 100_000
const CSV_PAGE = 1_000

type Query<S extends { parse: (value: unknown) => unknown }> = ReturnType<S['parse']>

/** The routes. */
export function usageRoutes(services: Services): Route[] {
  return [
    signedRoute('GET', '/usage', {
      credential: 'usage',
      query: schema.usageQuery,
      reply: schema.usageReply,
      handle: (request) => usage(services, request),
    }),
    signedRoute('GET', '/requests', {
      credential: 'usage',
      query: schema.requestsQuery,
      reply: schema.requestsReply,
      handle: (request) => requests(services, request),
    }),
    signedRoute('GET', '/requests.csv', {
      credential: 'usage',
      query: schema.requestsCsvQuery,
      reply: null,
      handle: (request) => csv(services, request),
    }),
    signedRoute('GET', '/requests/{id}', {
      credential: 'usage',
      query: schema.requestQuery,
      reply: schema.requestReply,
      handle: (request) => requestById(services, request),
    }),
    signedRoute('GET', '/live', {
      credential: 'usage',
      query: schema.liveQuery,
      reply: schema.liveReply,
      passive: true,
      handle: (request) => live(services, request),
    }),
  ]
}

async function usage(
  services: Services,
  request: SignedInRequest<Query<typeof schema.usageQuery>, undefined>,
): Promise<HandlerResult> {
  const { session, query } = request
  const accountId = scopeOf(session)
  const { by, group = 'none' } = query
  const stepMs = by === 'hour' ? HOUR_MS : DAY_MS
  const fromMs = Math.floor(query.fromMs / stepMs) * stepMs
  const toMs = Math.ceil(query.toMs / stepMs) * stepMs
  if (toMs <= fromMs) throw badRange('The field toMs must be later than fromMs.')
  if (query.toMs - query.fromMs > LONGEST_MS[by]) {
    throw badRange(
      `The range is longer than ${LONGEST_MS[by] / DAY_MS} days. Choose a shorter one, or usage by day.`,
    )
  }
  const { keyId, model } = query
  const isGroup = group === 'none' || group === 'model' || group === 'key'
  const report =
    query.format === undefined && isGroup
      ? null
      : await reportOf(services, accountId, { by: group, fromMs, toMs })
  if (report !== null && query.format === 'csv') return sendCsv(services, request, report)
  const sumQuery: SumQuery = {
    ...{ accountId, by, fromMs },
    // The store's query includes the bucket of `toMs`.
    toMs: toMs - 1,
    ...(model === undefined ? {} : { model }),
    ...(keyId === undefined ? { per: 'model' } : { keyId }),
  }
  const sums = await services.ledger.sums(sumQuery)
  const json: schema.UsageReply = {
    by,
    fromMs,
    toMs,
    nowMs: services.now(),
    total: figuresOf(sums),
    points: pointsOf(sums),
    groups: isGroup ? await groups(services, { sumQuery, sums }, group) : [],
    ...(report === null ? {} : { report: report.rows }),
  }
  return { status: 200, json }
}

/** Sums under the tree of accounts at the time of each request. */
async function reportOf(
  { store }: Services,
  accountId: string | null,
  { by, fromMs, toMs }: { readonly by: string; readonly fromMs: number; readonly toMs: number },
): Promise<Report> {
  const account = accountId === null ? null : await store.accountById(accountId)
  const grouping = isReportGrouping(by) ? by : 'month'
  const of = { account: account?.name ?? null, tree: false }
  return accountReport(store, { by: grouping, fromMs, toMs, ...of })
}

function sendCsv(
  { now }: Services,
  { res, requestId }: Pick<SignedInRequest<unknown, unknown>, 'res' | 'requestId'>,
  report: Report,
): typeof SELF_REPLIED {
  const name = `usage-${new Date(now()).toISOString().slice(0, 10)}.csv`
  const headers = [
    ...['content-type', 'text/csv; charset=utf-8', 'x-request-id', requestId],
    ...['content-disposition', `attachment; filename="${name}"`, 'cache-control', 'no-store'],
  ]
  sendReply(res, { status: 200, headers, body: reportCsv(report) })
  return SELF_REPLIED
}

async function groups(
  services: Services,
  { sumQuery, sums }: { readonly sumQuery: SumQuery; readonly sums: readonly UsageSum[] },
  by: 'none' | 'model' | 'key',
): Promise<schema.UsageGroup[]> {
  if (by === 'none') return []
  if (by === 'model') return groupsOf(sums, ({ model }) => model)
  const own = sumQuery.keyId === undefined ? await largestKeys(services, sumQuery) : sums
  const owners = new Map(own.map(({ keyId, accountId }) => [keyId, accountId]))
  const found = groupsOf([...own, ...remainingSums(sums, own)], ({ keyId }) => keyId)
  return Promise.all(
    found.map(async (group) => {
      const owner = group.id === PLAYGROUND ? undefined : owners.get(group.id)
      const key = owner === undefined ? null : await services.store.keyById(owner, group.id)
      return { ...group, label: key?.name ?? group.label }
    }),
  )
}

/** The sums of the keys with the largest usage in the period, instead of one sum per key. */
async function largestKeys({ ledger }: Services, sumQuery: SumQuery): Promise<UsageSum[]> {
  const largest = await ledger.keyUse({ ...sumQuery, most: MAX_GROUPS })
  const found = await Promise.all(
    largest.map(({ accountId, keyId }) => {
      return ledger.sums({ ...sumQuery, per: 'key', accountId, keyId })
    }),
  )
  return found.flat()
}

async function requests(
  services: Services,
  { session, query }: SignedInRequest<Query<typeof schema.requestsQuery>, undefined>,
): Promise<Reply> {
  const accountId = scopeOf(session)
  const after = query.after ?? null
  const page = await pageOf(services, query, { accountId, after, limit: query.limit ?? 50 })
  const json: schema.RequestsReply = {
    rows: await rowViews(services, page.entries),
    next: page.next,
  }
  return { status: 200, json }
}

/** A page of requests, or the request with the given id if it matches the other filters. */
async function pageOf(
  { ledger }: Services,
  query: Query<typeof schema.requestsCsvQuery>,
  page: Pick<EntryQuery, 'accountId' | 'after' | 'limit'>,
): Promise<EntryPage> {
  const { requestId, anyId, fromMs, toMs } = query
  const filter = filterOf(query)
  const named = requestId ?? anyId
  if (named !== undefined) {
    const row = await ledger.entry(page.accountId, named)
    const isMeant =
      row !== null &&
      row.atMs >= (fromMs ?? 0) &&
      row.atMs < (toMs ?? Number.POSITIVE_INFINITY) &&
      matchesEntry(row, filter)
    if (isMeant) return { entries: [row], next: null }
    if (requestId !== undefined) return { entries: [], next: null }
  }
  const span = {
    ...(fromMs === undefined ? {} : { fromMs }),
    ...(toMs === undefined ? {} : { toMs }),
    ...(anyId === undefined ? {} : { clientRequestId: anyId }),
  }
  return ledger.entries({ ...filter, ...span, ...page })
}

/** Filters that are compared for equality. */
const SAME = [
  'keyId',
  'model',
  'modelAsked',
  'upstream',
  'status',
  'clientRequestId',
  'cause',
  'ingress',
  'label',
] as const

function filterOf(query: Query<typeof schema.requestsCsvQuery>): EntryFilter {
  const { outcome } = query
  const isAnyFailure = outcome === 'failed'
  return {
    ...Object.fromEntries(
      SAME.filter((name) => query[name] !== undefined).map((name) => [name, query[name]]),
    ),
    ...(isAnyFailure ? { failed: true } : {}),
    ...(outcome === undefined || isAnyFailure ? {} : { outcome }),
  }
}

async function requestById(
  services: Services,
  { session, id }: SignedInRequest<Query<typeof schema.requestQuery>, undefined>,
): Promise<Reply> {
  const accountId = scopeOf(session)
  const row = await services.ledger.entry(accountId, id)
  if (row === null) throw notFound()
  const [view] = await rowViews(services, [row])
  return { status: 200, json: { row: view } }
}

/** Streams the file page by page, so that memory use is constant. */
async function csv(
  services: Services,
  {
    session,
    query,
    req,
    res,
    requestId,
  }: SignedInRequest<Query<typeof schema.requestsCsvQuery>, undefined>,
): Promise<HandlerResult> {
  const accountId = scopeOf(session)
  const pageAfter = (after: string | null) =>
    pageOf(services, query, { accountId, after, limit: CSV_PAGE })
  let page = await pageAfter(null)
  const name = `requests-${new Date(services.now()).toISOString().slice(0, 10)}.csv`
  const isZipped = accepts('gzip', headerOf(req, 'accept-encoding'))
  beginReply(res, 200, [
    ...['content-type', 'text/csv; charset=utf-8', 'x-request-id', requestId],
    ...['content-disposition', `attachment; filename="${name}"`],
    ...['cache-control', 'no-store', 'vary', 'accept-encoding'],
    ...(isZipped ? ['content-encoding', 'gzip'] : []),
  ])
  const zip = isZipped ? createGzip() : null
  zip?.pipe(res)
  const out = zip ?? res
  out.write(csvHead())
  for (let left = MAX_CSV_ROWS; ;) {
    const views = await rowViews(services, page.entries.slice(0, left))
    if (!out.write(views.map(csvLine).join(''))) await drained(out, res)
    left -= views.length
    if (page.next === null || left === 0 || isClosed(res)) break
    page = await pageAfter(page.next)
  }
  out.end()
  return SELF_REPLIED
}

/** Resolves when the client has read enough, or has disconnected. */
function drained(out: Writable, res: HttpResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      out.off('drain', done)
      res.off('close', done)
      resolve()
    }
    if (isClosed(res)) resolve()
    else {
      out.once('drain', done)
      res.once('close', done)
    }
  })
}

async function live(
  services: Services,
  { session }: SignedInRequest<Query<typeof schema.liveQuery>, undefined>,
): Promise<Reply> {
  const accountId = scopeOf(session)
  const nowMs = services.now()
  const startMs = Math.floor(nowMs / HOUR_MS) * HOUR_MS
  const [page, sums] = await Promise.all([
    services.ledger.entries({ accountId, fromMs: nowMs - LIVE_MS, after: null, limit: LIVE_ROWS }),
    services.ledger.sums({ accountId, by: 'hour', fromMs: startMs, toMs: startMs, per: 'model' }),
  ])
  const json: schema.LiveReply = {
    rows: await rowViews(services, page.entries),
    hour: { startMs, ...figuresOf(sums) },
    models: groupsOf(sums, ({ model }) => model).map(({ id, total }) => {
      return { id, hour: { startMs, ...total } }
    }),
    generation: services.snapshot().generation,
  }
  return { status: 200, json, etag: true }
}

function badRange(message: string): GatewayError {
  return new GatewayError('malformed_request', message, { param: 'toMs' })
}
