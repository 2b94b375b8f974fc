/** Single requests: their list, its CSV file, and the latest ones. */
import { HOUR_MS } from '../../../base/time-units.js'
import { causeOf, GatewayError } from '../../../errors.js'
import { ENTRY_COLUMNS } from '../../../store/entry-order.js'
import type { EntryPage, EntryQuery } from '../../../store/usage-queries.js'
import { datedName, sendCsv } from '../../send-csv.js'
import {
  countRequests,
  groupFailures,
  NO_PAGE,
  pageOf,
  selectRequests,
  type RequestSelection,
} from '../request-selection.js'
import { costPartsOf } from '../cost-parts.js'
import { pricesNow } from './models.js'
import { newRowNames, requestsCsvHeader, requestsCsvLine, rowViews } from '../request-rows.js'
import { notFound } from '../routing/access.js'
import {
  SELF_REPLIED,
  signedRoute,
  type HandlerResult,
  type Reply,
  type Route,
  type SignedInRequest,
} from '../routing/route.js'
import * as schema from '../schema/schema.js'
import { scopeOf, type Services } from '../../services.js'
import { timesOf } from '../../../usage/ranges.js'
import { cursorAt, orderOf } from './list-page.js'

const LIVE_ROWS = 25
/** The period searched for the newest entries, on each poll. */
const LIVE_MS = 24 * HOUR_MS
/** Entries of one part of the file: about 20 ms of the event loop. */
const CSV_PAGE = 250

type Query<S extends { parse: (value: unknown) => unknown }> = ReturnType<S['parse']>

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
    signedRoute('GET', '/failures', {
      credential: 'usage',
      query: schema.failuresQuery,
      reply: schema.failuresReply,
      handle: (request) => failures(services, request),
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
  const order = orderIn(query)
  const limit = query.limit ?? 50
  const page =
    order === null
      ? NO_PAGE
      : await pageOf(services, await selectRequests(services, session, query), {
          ...{ limit, after: order.after },
          ...(order.order === undefined ? {} : { order: order.order }),
        })
  if (page.mostSorted !== undefined) throw tooMany(page.mostSorted, order?.sort ?? '')
  const json: schema.RequestsReply = {
    rows: await rowViews(services, page.entries),
    next: page.next === null ? null : (order?.cursorOf(page.next) ?? null),
    ...(query.count === undefined ? {} : { count: await countRequests(services, session, query) }),
  }
  return { status: 200, json }
}

const MOST_GROUPS = 100

async function failures(
  services: Services,
  { session, query }: SignedInRequest<Query<typeof schema.failuresQuery>, undefined>,
): Promise<Reply> {
  const nowMs = services.now()
  const { range, toMs: endMs = range === undefined ? nowMs : undefined } = query
  const { fromMs, toMs } = timesOf({ ...query, toMs: endMs }, nowMs)
  const selection = await selectRequests(services, session, { ...query, range: undefined, fromMs, toMs })
  const { groups, isPart } = await groupFailures(services, selection)
  const json: schema.FailuresReply = {
    groups: groups.slice(0, MOST_GROUPS).map(({ newest, requests, firstMs, accounts }) => ({
      ...{ upstream: newest.upstream, outcome: newest.outcome, upstreamStatus: newest.upstreamStatus },
      ...{ cause: causeOf(newest.outcome), model: newest.model, requests, accounts: accounts.size },
      ...{ firstMs, lastMs: newest.atMs, requestId: newest.requestId },
    })),
    requests: groups.reduce((sum, group) => sum + group.requests, 0),
    ...{ isPart, fromMs, toMs, nowMs },
  }
  return { status: 200, json }
}

const NEWEST = '-atMs'

interface AskedOrder extends Pick<EntryQuery, 'order' | 'after'> {
  readonly sort: string
  /** The cursor of a reply, which belongs to this order. */
  readonly cursorOf: (next: string) => string | null
}

/** The order of a query; null for a cursor that is none. Throws as `orderOf` does. */
function orderIn(query: Query<typeof schema.requestsQuery>): AskedOrder | null {
  const list = orderOf(query, { columns: ENTRY_COLUMNS, usual: NEWEST, limit: 50 })
  // A cursor of the usual order is a place in the ledger.
  if (list === null && (query.sort ?? NEWEST) === NEWEST) {
    return { sort: NEWEST, after: query.after ?? null, cursorOf: (next) => next }
  }
  if (list === null) return null
  const { column, isDescending, sort, after } = list
  return {
    ...{ sort, order: { column, isDescending } },
    after: after === null ? null : after.id,
    cursorOf: (id) => (sort === NEWEST ? id : cursorAt(sort, { value: null, id })),
  }
}

function tooMany(most: number, sort: string): GatewayError {
  const message =
    `Too many requests to sort by "${sort.replace('-', '')}": the store sorts up to ` +
    `${most.toLocaleString('en')}. Choose a shorter time range, one account or one key.`
  return new GatewayError('malformed_request', message, { param: 'sort' })
}

async function requestById(
  services: Services,
  { session, id }: SignedInRequest<Query<typeof schema.requestQuery>, undefined>,
): Promise<Reply> {
  const accountId = scopeOf(session)
  const row = await services.ledger.entry(accountId, id)
  if (row === null) throw notFound()
  const [view] = await rowViews(services, [row])
  const { upstream, model, modelAnswered } = row
  const price = upstream === null ? null : pricesNow(services.snapshot()).find(upstream, model, modelAnswered)
  return { status: 200, json: { row: view, costParts: costPartsOf(row, price) } }
}

/** Every request that matches, page by page. */
async function csv(
  services: Services,
  request: SignedInRequest<Query<typeof schema.requestsCsvQuery>, undefined>,
): Promise<HandlerResult> {
  const selection = await selectRequests(services, request.session, request.query)
  const parts = csvParts(services, selection)
  await sendCsv(request, { name: datedName('requests', services.now()), parts, mayZip: true })
  return SELF_REPLIED
}

async function* csvParts(services: Services, selection: RequestSelection | null): AsyncGenerator<string> {
  let head = requestsCsvHeader()
  const names = newRowNames()
  const read = (after: string | null): Promise<EntryPage> =>
    pageOf(services, selection, { after, limit: CSV_PAGE })
  for (let page = await read(null); ;) {
    // The next page is read while this one is written.
    const next = page.next === null ? null : read(page.next)
    // Its failure is thrown below.
    next?.catch(() => undefined)
    const views = await rowViews(services, page.entries, names)
    yield head + views.map(requestsCsvLine).join('')
    head = ''
    if (next === null) return
    page = await next
  }
}

async function live(
  services: Services,
  { session, query }: SignedInRequest<Query<typeof schema.liveQuery>, undefined>,
): Promise<Reply> {
  const fromMs = services.now() - LIVE_MS
  const selection = await selectRequests(services, session, { ...query, fromMs })
  const page = await pageOf(services, selection, { after: null, limit: LIVE_ROWS })
  const json: schema.Sent<typeof schema.liveReply> = { rows: await rowViews(services, page.entries) }
  return { status: 200, json, etag: true }
}
