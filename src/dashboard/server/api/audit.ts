/** The audit log: pages with filters, and a file of all entries that match. */
import type { Writable } from 'node:stream'
import { createGzip } from 'node:zlib'
import { headerOf, type HttpResponse } from '../../../http/message.js'
import { beginReply, isClosed } from '../../../http/respond.js'
import { csvCell } from '../../../ledger/export-columns.js'
import type { AuditEntry, AuditSearch } from '../../../store/audit-trail.js'
import { accepts } from '../compress.js'
import {
  SELF_REPLIED,
  signedRoute,
  type HandlerResult,
  type Reply,
  type Route,
  type SignedInRequest,
} from '../routing/route.js'
import * as schema from '../schema/schema.js'
import { scopeOf, type Services } from '../services.js'
import { orderOf } from './list-page.js'

const CSV_PAGE = 1_000

type CsvQuery = ReturnType<typeof schema.auditCsvQuery.parse>

/** The routes. */
export function auditRoutes(services: Services): Route[] {
  return [
    signedRoute('GET', '/audit', {
      credential: 'read account',
      query: schema.auditQuery,
      reply: schema.auditReply,
      handle: (request) => audit(services, request),
    }),
    signedRoute('GET', '/audit.csv', {
      credential: 'read account',
      query: schema.auditCsvQuery,
      reply: null,
      handle: (request) => csv(services, request),
    }),
  ]
}

async function audit(
  services: Services,
  { session, query }: SignedInRequest<ReturnType<typeof schema.auditQuery.parse>, undefined>,
): Promise<Reply> {
  const found = await services.store.auditTrail.find({
    ...searchOf(query, scopeOf(session)),
    after: query.after ?? null,
    limit: query.limit ?? 50,
  })
  const json: schema.AuditReply = {
    entries: await entryViews(services, found.entries, new Map()),
    next: found.next,
    total: null,
  }
  return { status: 200, json }
}

/** Which entries, and their order. The cursor is the id of an entry, which has a place in both orders. */
function searchOf(
  { sort, actor, action, target, fromMs, toMs, search }: CsvQuery,
  accountId: string | null,
): Pick<AuditSearch, 'accountId' | 'order' | 'filter'> {
  const order = orderOf({ sort }, { columns: ['atMs'], usual: '-atMs', limit: 1 })
  return {
    accountId,
    order: order?.isDescending === false ? 'oldest_first' : 'newest_first',
    filter: {
      ...(actor === undefined ? {} : { actor }),
      ...(action === undefined ? {} : { action }),
      ...(target === undefined ? {} : { target }),
      ...(fromMs === undefined ? {} : { fromMs }),
      ...(toMs === undefined ? {} : { toMs }),
      ...(search === undefined ? {} : { search }),
    },
  }
}

/** The entries with the names of their accounts; `names` has those that are known already. */
async function entryViews(
  { store }: Services,
  entries: readonly AuditEntry[],
  names: Map<string, string | null>,
): Promise<schema.AuditEntry[]> {
  const unknown = new Set(entries.map(({ accountId }) => accountId))
  for (const accountId of unknown) {
    if (accountId === '' || names.has(accountId)) continue
    names.set(accountId, (await store.accountById(accountId))?.name ?? null)
  }
  return entries.map((entry) => {
    const { id, atMs, accountId, actor, action, target, detail, address } = entry
    return {
      ...{ id, atMs, accountId, actor, action, target, detail, address },
      accountName: names.get(accountId) ?? entry.account ?? null,
      reason: entry.reason ?? null,
      requestId: entry.requestId ?? null,
    }
  })
}

const COLUMNS: readonly [title: string, cell: (view: schema.AuditEntry) => string | null][] = [
  ['id', ({ id }) => id],
  ['time', ({ atMs }) => new Date(atMs).toISOString()],
  ['actor', ({ actor }) => actor],
  ['action', ({ action }) => action],
  ['account', ({ accountName }) => accountName],
  ['account_id', ({ accountId }) => accountId],
  ['target', ({ target }) => target],
  ['detail', ({ detail }) => detail],
  ['reason', ({ reason }) => reason],
  ['address', ({ address }) => address],
  ['request_id', ({ requestId }) => requestId],
]

function line(cells: readonly (string | null)[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`
}

/** Streams the file page by page, so that it is complete and memory use is constant. */
async function csv(
  services: Services,
  { session, query, req, res, requestId }: SignedInRequest<CsvQuery, undefined>,
): Promise<HandlerResult> {
  const search = { ...searchOf(query, scopeOf(session)), limit: CSV_PAGE }
  const { auditTrail } = services.store
  let page = await auditTrail.find({ ...search, after: null })
  const name = `audit-${new Date(services.now()).toISOString().slice(0, 10)}.csv`
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
  out.write(line(COLUMNS.map(([title]) => title)))
  const names = new Map<string, string | null>()
  for (;;) {
    const views = await entryViews(services, page.entries, names)
    const text = views.map((view) => line(COLUMNS.map(([, cell]) => cell(view)))).join('')
    if (!out.write(text)) await drained(out, res)
    if (page.next === null || isClosed(res)) break
    page = await auditTrail.find({ ...search, after: page.next })
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
