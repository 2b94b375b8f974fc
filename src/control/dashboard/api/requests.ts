/** Single requests: their list, its CSV file, and the latest ones. */
import { HOUR_MS } from '../../../base/time-units.js'
import { GatewayError } from '../../../errors.js'
import { ENTRY_COLUMNS } from '../../../store/entry-order.js'
import {
  dimensionPair,
  matchesEntry,
  valuesOf,
  type EntryFilter,
  type EntryPage,
  type EntryQuery,
  type OneOf,
} from '../../../store/usage-queries.js'
import { datedName, sendCsv } from '../../send-csv.js'
import { endingModels } from '../deprecated-models.js'
import { newRowNames, requestsCsvHeader, requestsCsvLine, rowViews } from '../request-rows.js'
import { selectAccount, withinOf } from '../../../usage/account-selection.js'
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
import { keysMadeBy } from '../select-usage.js'
import { figuresOf, groupsOf } from '../usage-figures.js'
import { timesOf } from '../../../usage/ranges.js'
import { modelIn } from '../../../usage/usage-groups.js'
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
      : await pageOf(services, await selectionOf(services, scopeOf(session), query), {
          ...{ limit, after: order.after },
          ...(order.order === undefined ? {} : { order: order.order }),
        })
  if (page.mostSorted !== undefined) throw tooMany(page.mostSorted, order?.sort ?? '')
  const json: schema.RequestsReply = {
    rows: await rowViews(services, page.entries),
    next: page.next === null ? null : (order?.cursorOf(page.next) ?? null),
  }
  return { status: 200, json }
}

const NO_PAGE: EntryPage = { entries: [], next: null }
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

/** What a query selects. */
interface Selection extends Omit<EntryQuery, 'after' | 'limit' | 'order'> {
  readonly filter: EntryFilter
  /** Only this request. */
  readonly requestId?: string | undefined
  /** This request, or those to which the client gave this id. */
  readonly anyId?: string | undefined
}

async function selectionOf(
  services: Services,
  scope: string | null,
  query: Query<typeof schema.requestsCsvQuery>,
): Promise<Selection | null> {
  const { requestId, anyId, range } = query
  // A range that ends now has no end: a request may be recorded while its page is read.
  const { fromMs, toMs } =
    range === undefined ? query : { fromMs: timesOf(query, services.now()).fromMs, toMs: undefined }
  const accountId = scope ?? query.accountId ?? null
  if (query.accountId !== undefined && accountId !== query.accountId) return null
  return {
    ...{ accountId, filter: await filterOf(services, accountId, query), requestId, anyId },
    ...(fromMs === undefined ? {} : { fromMs }),
    ...(toMs === undefined ? {} : { toMs }),
  }
}

/** A page of requests, or the request with the given id if it matches the other filters. */
async function pageOf(
  { ledger }: Services,
  selection: Selection | null,
  place: Pick<EntryQuery, 'after' | 'limit' | 'order'>,
): Promise<EntryPage> {
  if (selection === null) return NO_PAGE
  const { requestId, anyId, filter, ...span } = selection
  const { accountId, fromMs = 0, toMs = Number.POSITIVE_INFINITY } = span
  const named = requestId ?? anyId
  if (named !== undefined) {
    const row = await ledger.entry(accountId, named)
    const isIn = row !== null && row.atMs >= fromMs && row.atMs < toMs
    if (isIn && matchesEntry(row, filter)) return { entries: [row], next: null }
    if (requestId !== undefined) return NO_PAGE
  }
  const byClient = anyId === undefined ? {} : { clientRequestId: anyId }
  return ledger.entries({ ...filter, ...span, ...place, ...byClient })
}

/** Filters that are compared for equality. */
const SAME = [
  ...(['modelAsked', 'upstream', 'status', 'clientRequestId', 'cause', 'label'] as const),
  ...(['program', 'user', 'batch'] as const),
]

async function filterOf(
  services: Services,
  accountId: string | null,
  query: Query<typeof schema.requestsCsvQuery>,
): Promise<EntryFilter> {
  const { outcome, parent, dimension, clientFormat } = query
  const outcomes = outcome === undefined ? [] : valuesOf(outcome)
  const isAnyFailure = outcomes.includes('failed')
  const models = modelsIn(services, query)
  const keyIds = await keysIn(services, accountId, query)
  return {
    ...Object.fromEntries(
      SAME.filter((name) => query[name] !== undefined).map((name) => [name, query[name]]),
    ),
    ...(clientFormat === undefined ? {} : { ingress: clientFormat }),
    ...(models === null ? {} : { model: models }),
    ...(keyIds === null ? {} : { keyId: keyIds }),
    ...(dimension === undefined ? {} : { dimension: valuesOf(dimension).map(dimensionPair) }),
    ...(parent === undefined ? {} : { within: withinOf(await selectAccount(services.store, parent)) }),
    // With `ok` it is every outcome.
    ...(isAnyFailure && !outcomes.includes('ok') ? { failed: true } : {}),
    ...(outcome === undefined || isAnyFailure ? {} : { outcome }),
  }
}

/** The models of a query as the ledger has them; null: all. */
function modelsIn(
  { snapshot }: Services,
  { model, deprecated }: Query<typeof schema.requestsCsvQuery>,
): OneOf<string> | null {
  const ending = deprecated === undefined ? null : endingModels(snapshot())
  if (model === undefined) return ending
  const named = valuesOf(model).map(modelIn)
  if (ending !== null) return named.filter((each) => ending.includes(each))
  return named.length === 1 ? (named[0] ?? null) : named
}

/** The keys of a query; null: all. */
async function keysIn(
  services: Services,
  accountId: string | null,
  { keyId, member }: Query<typeof schema.requestsCsvQuery>,
): Promise<OneOf<string> | null> {
  if (member === undefined) return keyId ?? null
  const made = (await keysMadeBy(services, accountId, member)).map((key) => key.keyId)
  return keyId === undefined ? made : valuesOf(keyId).filter((id) => made.includes(id))
}

/** An account by its name or id; one that no longer exists is in the paths of requests. */
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
async function csv(
  services: Services,
  request: SignedInRequest<Query<typeof schema.requestsCsvQuery>, undefined>,
): Promise<HandlerResult> {
  const selection = await selectionOf(services, scopeOf(request.session), request.query)
  const parts = csvParts(services, selection)
  await sendCsv(request, { name: datedName('requests', services.now()), parts, mayZip: true })
  return SELF_REPLIED
}

async function* csvParts(services: Services, selection: Selection | null): AsyncGenerator<string> {
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
  { session }: SignedInRequest<Query<typeof schema.liveQuery>, undefined>,
): Promise<Reply> {
  const accountId = scopeOf(session)
  const nowMs = services.now()
  const startMs = Math.floor(nowMs / HOUR_MS) * HOUR_MS
  const [page, sums] = await Promise.all([
    services.ledger.entries({ accountId, fromMs: nowMs - LIVE_MS, after: null, limit: LIVE_ROWS }),
    services.ledger.sums({ accountId, by: 'hour', fromMs: startMs, toMs: startMs, per: 'model' }),
  ])
  const json: schema.Sent<typeof schema.liveReply> = {
    rows: await rowViews(services, page.entries),
    hour: { startMs, ...figuresOf(sums) },
    models: groupsOf(sums, ({ model }) => model).map(({ id, total }) => {
      return { id, hour: { startMs, ...total } }
    }),
    generation: services.snapshot().generation,
  }
  return { status: 200, json, etag: true }
}
