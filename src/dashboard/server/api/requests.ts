/** Single requests: their list, its CSV file, and the latest ones. */
import type { EntryFilter, EntryPage, EntryQuery } from '../../../store/usage-queries.js'
import { matchesEntry } from '../../../store/usage-queries.js'
import { sendCsv } from '../csv-reply.js'
import { endingModels } from '../deprecated-models.js'
import { csvHead, csvLine, newRowNames, rowViews } from '../request-rows.js'
import { notFound } from '../routing/access.js'
import {
  signedRoute,
  type HandlerResult,
  type Reply,
  type Route,
  type SignedInRequest,
} from '../routing/route.js'
import * as schema from '../schema/schema.js'
import { scopeOf, type Services } from '../services.js'
import { figuresOf, groupsOf } from '../usage-figures.js'
import { modelIn } from '../usage-groups.js'

const HOUR_MS = 3_600_000
const LIVE_ROWS = 25
/** The period searched for the newest entries, on each poll. */
const LIVE_MS = 24 * HOUR_MS
/** Entries of one part of the file. */
const CSV_PAGE = 500

type Query<S extends { parse: (value: unknown) => unknown }> = ReturnType<S['parse']>

/** The routes. */
export function requestRoutes(services: Services): Route[] {
  return [
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
  { ledger, snapshot }: Services,
  query: Query<typeof schema.requestsCsvQuery>,
  page: Pick<EntryQuery, 'accountId' | 'after' | 'limit'>,
): Promise<EntryPage> {
  const { requestId, anyId, fromMs, toMs } = query
  const filter = {
    ...filterOf(query),
    ...(query.deprecated === undefined ? {} : { models: endingModels(snapshot()) }),
  }
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
    ...(query.model === undefined ? {} : { model: modelIn(query.model) }),
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

/** Every request that matches, page by page. */
function csv(
  services: Services,
  request: SignedInRequest<Query<typeof schema.requestsCsvQuery>, undefined>,
): Promise<HandlerResult> {
  const parts = csvParts(services, scopeOf(request.session), request.query)
  return sendCsv(request, { name: 'requests', nowMs: services.now(), parts })
}

async function* csvParts(
  services: Services,
  accountId: string | null,
  query: Query<typeof schema.requestsCsvQuery>,
): AsyncGenerator<string> {
  let head = csvHead()
  const names = newRowNames()
  const read = (after: string | null): Promise<EntryPage> =>
    pageOf(services, query, { accountId, after, limit: CSV_PAGE })
  for (let page = await read(null); ;) {
    // The next page is read while this one is written.
    const next = page.next === null ? null : read(page.next)
    // Its failure is thrown below.
    next?.catch(() => undefined)
    const views = await rowViews(services, page.entries, names)
    yield head + views.map(csvLine).join('')
    head = ''
    if (next === null) return
    page = await next
  }
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
