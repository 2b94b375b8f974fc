/** The audit log: pages with filters, and a file of all entries that match. */
import { csvText } from '../../../base/csv.js'
import type { AuditEntry, AuditPage, AuditSearch } from '../../../store/audit-trail.js'
import type { JsonValue } from '../../../base/json.js'
import { differencesOf } from '../../../accounts/changes/decide.js'
import { datedName, sendCsv } from '../../send-csv.js'
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
import { orderOf } from './list-page.js'

const CSV_PAGE = 1_000

type CsvQuery = ReturnType<typeof schema.auditCsvQuery.parse>

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
      changes: changesOf(entry),
    }
  })
}

/** The changed values of an entry, by path. */
function changesOf({ before, after }: AuditEntry): schema.AuditEntry['changes'] {
  return Object.entries(differencesOf(before ?? {}, after ?? {})).map(([path, [old, next]]) => {
    return { path, before: textOf(old), after: textOf(next) }
  })
}

function textOf(value: JsonValue): string | null {
  return value === null || typeof value === 'string' ? value : JSON.stringify(value)
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
  ['before', ({ changes }) => sideOf(changes, 'before')],
  ['after', ({ changes }) => sideOf(changes, 'after')],
]

/** The values of one side as JSON by path; null without a change. */
function sideOf(changes: schema.AuditEntry['changes'], side: 'before' | 'after'): string | null {
  if (changes.length === 0) return null
  return JSON.stringify(Object.fromEntries(changes.map((change) => [change.path, change[side]])))
}

function line(cells: readonly (string | null)[]): string {
  return csvText([cells])
}

/** Every entry that matches, page by page. */
async function csv(
  services: Services,
  request: SignedInRequest<CsvQuery, undefined>,
): Promise<HandlerResult> {
  const parts = csvParts(services, searchOf(request.query, scopeOf(request.session)))
  await sendCsv(request, { name: datedName('audit', services.now()), parts, mayZip: true })
  return SELF_REPLIED
}

async function* csvParts(
  services: Services,
  search: ReturnType<typeof searchOf>,
): AsyncGenerator<string, void> {
  const names = new Map<string, string | null>()
  let head = line(COLUMNS.map(([title]) => title))
  let after: string | null = null
  do {
    const page: AuditPage = await services.store.auditTrail.find({
      ...search,
      ...{ limit: CSV_PAGE, after },
    })
    const views = await entryViews(services, page.entries, names)
    yield head + views.map((view) => line(COLUMNS.map(([, cell]) => cell(view)))).join('')
    head = ''
    after = page.next
  } while (after !== null)
}
