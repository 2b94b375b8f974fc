/** Usage of the admin API: sums by a group, single requests, statements; as JSON or CSV. */
import * as z from 'zod'
import { datedName } from '../send-csv.js'
import { jsonText, type JsonObject, type WrittenJson, type WrittenObject } from '../../base/json.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import { csvText, type CsvCell } from '../../base/csv.js'
import { COLUMNS, csvHeader, csvLine } from '../../ledger/export-columns.js'
import type { AdminToken } from '../../store/admin-tokens.js'
import { adminTurns } from '../../base/turn-queue.js'
import { dimensionPair, type EntryFilter } from '../../store/usage-queries.js'
import { monthRange } from '../../usage/ranges.js'
import {
  accountReport,
  isReportGrouping,
  reportCsv,
  reportOf,
  type Report,
  type ReportQuery,
} from '../../usage/reports.js'
import { isStatementGrouping } from '../../usage/is-statement-grouping.js'
import { statementCsv, statementOf } from '../../usage/statements.js'
import { groupsIn, type Grouping, type GroupsQuery } from '../../usage/usage-groups.js'
import { usageOf } from '../services.js'
import { purgedIds, withBelow } from '../../usage/account-selection.js'
import { numberType, textType, TIME } from '../../accounts/changes/field-types.js'
import { invalid } from '../../accounts/changes/refusal.js'
import { notFound } from '../problem-details.js'
import { pageSchema, replyForm, replyObject, wholeNumber } from './reply-forms.js'
import type { AdminReply, AdminRequest, AdminRoute, Parameters } from './route.js'
import { timeText } from '../../base/time-units.js'
import { cursorOf } from '../cursor.js'
import { PAGE_PARAMETERS, pageOf, type AdminServices, TRUE_OR_FALSE } from './services.js'
import { accountNamed, sees } from './token-access.js'

const GROUPINGS = [
  ...['account', 'parent', 'root', 'member', 'key', 'model', 'upstream', 'day', 'month'],
  ...['client_format', 'program', 'user'],
]
/** Entries that one page of the audit trail reads at most, so that a rare filter ends. */
export const AUDIT_READS = 500
const LABEL = /^label:[a-z0-9_.-]{1,32}$|^dimension:[a-z][a-z0-9_]{0,31}$/

const BY = textType((text) => GROUPINGS.includes(text) || LABEL.test(text), {
  fix: `Send one of ${GROUPINGS.join(', ')}, label:NAME, dimension:NAME.`,
})
const SPLIT_BY = textType(isStatementGrouping, {
  fix: 'Send client_format, program, user or dimension:NAME.',
})
/** A text of at most 400 characters. */
export const ANY = textType((text) => text.length <= 400, { fix: 'Send a shorter text.' })

const PERIOD: Parameters = {
  from: { type: TIME, means: 'The first moment.' },
  to: { type: TIME, means: 'The moment after the last.' },
}
/** The filter of a list by account. */
export const OF_ACCOUNT: Parameters = {
  account: { type: ANY, means: 'The name of an account.' },
  tree: { type: TRUE_OR_FALSE, means: 'With `account`: with all accounts below it.' },
}

const VALUE_FILTERS: Parameters = {
  dimension: { type: ANY, means: 'One value of a dimension, as NAME=VALUE.' },
  program: { type: ANY, means: 'A program of clients.' },
  user: { type: ANY, means: 'The e-mail address of a person who signed in.' },
  client_format: {
    type: ANY,
    means:
      'The format or the endpoint of the client, as in the column `ingress`, such as `messages` or `images`.',
  },
}

/** The filters of single requests that are compared for equality, and their names in the code. */
const SAME = {
  key_id: 'keyId',
  model: 'model',
  upstream: 'upstream',
  status: 'status',
  outcome: 'outcome',
  label: 'label',
  batch: 'batch',
} as const

/** Figures as statements have them. */
const figures = () => ({
  requests: wholeNumber(),
  input_tokens: wholeNumber(),
  output_tokens: wholeNumber(),
  cost_nano_usd: wholeNumber(),
  cost_usd: z.string().meta({ description: 'The same in dollars, with nine digits' }),
  units: z.record(z.string(), z.number()).meta({
    description: 'Units other than tokens, those that were used: `{ image: 2, audio_second: 61.5 }`',
  }),
})
const allFigures = () => {
  const { requests, units, ...others } = figures()
  const unpriced = wholeNumber().meta({ description: 'Requests of unknown price' })
  return { requests, failed: wholeNumber(), ...others, unpriced_requests: unpriced, units }
}
const USAGE = replyForm('Usage', () => {
  return replyObject({
    ...{ from: TIME, to: TIME, by: z.string() },
    rows: z.array(replyObject({ group: z.string(), ...allFigures() })),
    total: replyObject(allFigures()),
  })
})
const STATEMENT = replyForm('Statement', () => {
  const names = { account: z.string(), key: z.string().nullable(), key_id: z.string(), model: z.string() }
  const group = z.string().optional().meta({ description: 'The value, with `by`' })
  return replyObject({
    account: z.string(),
    month: z.string().meta({ description: 'Such as 2026-11 (UTC)' }),
    by: z.string().optional().meta({ description: 'What the lines are split by; absent: nothing' }),
    lines: z.array(replyObject({ ...names, group, ...figures() })),
    total: replyObject(figures()),
  })
})
const REQUESTS = replyForm('RequestList', () => {
  const columns = COLUMNS.map(([name, description]) => [name, z.unknown().meta({ description })] as const)
  return pageSchema(replyObject(Object.fromEntries(columns)))
})

export function usageRoutes(services: AdminServices): AdminRoute[] {
  return [
    {
      ...{ method: 'GET', path: '/usage', scopes: ['usage:read'], hasCsv: true },
      summary: 'Requests, tokens and cost by a group',
      query: {
        by: {
          type: BY,
          means: `One of ${GROUPINGS.join(', ')}, label:NAME, dimension:NAME; default: account.`,
        },
        ...PERIOD,
        ...OF_ACCOUNT,
        ...VALUE_FILTERS,
      },
      replies: { 200: USAGE },
      handle: (request) => usage(services, request),
    },
    {
      ...{ method: 'GET', path: '/requests', scopes: ['usage:read', 'requests:read'], hasCsv: true },
      summary: 'Single requests, newest first, with the columns of the export of the ledger',
      query: {
        ...PAGE_PARAMETERS,
        ...PERIOD,
        ...OF_ACCOUNT,
        key_id: { type: ANY, means: 'The id of a key.' },
        model: { type: ANY, means: 'A model.' },
        upstream: { type: ANY, means: 'An upstream.' },
        status: { type: numberType(100, 599), means: 'The HTTP status.', isNumber: true },
        outcome: {
          type: ANY,
          means: '`ok`, `lost`, or a kind of error; of batches also `failed`, `expired` and `cancelled`.',
        },
        label: { type: ANY, means: 'One label, as NAME=VALUE.' },
        batch: {
          type: ANY,
          means: 'The id of a batch: its entry, and its lines that were sent as requests.',
        },
        ...VALUE_FILTERS,
      },
      replies: { 200: REQUESTS },
      handle: (request) => requests(services, request),
    },
    {
      ...{ method: 'GET', path: '/accounts/{name}/statements/{month}' },
      ...{ scopes: ['usage:read'], hasCsv: true },
      summary: 'What an account and all below it used in a month (UTC), by key and model',
      query: {
        by: {
          type: SPLIT_BY,
          means: 'program, user or dimension:NAME: splits each line by the ledger entries that are kept.',
        },
      },
      replies: { 200: STATEMENT },
      handle: (request) => statement(services, request),
    },
  ]
}

/**
 * The accounts of a query: their ids, or null for all, those of purged accounts included. A token without an
 * account also reads what is left of purged accounts, by their ids, or by a name that no account has now.
 */
export async function accountsOf(
  services: AdminServices,
  token: AdminToken,
  { account, tree }: JsonObject,
): Promise<Set<string> | null> {
  const { store } = services
  if (typeof account === 'string') {
    const purged = token.accountId === null ? await purgedIds(store, account) : new Set<string>()
    if (purged.size > 0) return purged
    const found = await accountNamed(services, token, account)
    return tree === 'true' ? withBelow(services, found.id) : new Set([found.id])
  }
  if (tree !== undefined) {
    throw invalid('tree', '"tree" needs "account".', 'Add the name of an account.')
  }
  const own = token.accountId === null ? null : await store.accountById(token.accountId)
  return token.accountId === null ? null : withBelow(services, own?.id ?? token.accountId)
}

async function usage(services: AdminServices, request: AdminRequest): Promise<AdminReply> {
  const { query, token } = request
  const period = periodOf(query, services.now())
  const by = typeof query['by'] === 'string' ? query['by'] : 'account'
  const accounts = await accountsOf(services, token, query)
  const filter = valueFilter(query)
  const isOfEntries = Object.keys(filter).length > 0
  if (isOfEntries && isReportGrouping(by) && !['account', 'key', 'model'].includes(by)) {
    const fix =
      'Leave out the filter, or send by=account, key, model, day, client_format, program, user or dimension:NAME.'
    throw invalid('by', `Groups by "${by}" have no filter.`, fix)
  }
  const report =
    isReportGrouping(by) && !isOfEntries
      ? await reportInTree(services, request, { by, ...period })
      : await sumsOf(services, period, {
          accountId: null,
          group: groupingOf(by),
          accountIds: accounts,
          filter,
        })
  if (request.isCsv) return { csv: once(reportCsv(report)), fileName: 'usage' }
  const { fromMs, toMs } = period
  const rows = report.rows.map((row) => ({ ...row }))
  const json = { from: timeText(fromMs), to: timeText(toMs), by, rows, total: { ...report.total } }
  return { status: 200, json }
}

/** The filters by what distinguishes requests below their key. `ingress`: the client's format. */
function valueFilter({ dimension, program, user, client_format: ingress }: JsonObject): EntryFilter {
  return {
    ...(typeof dimension === 'string' ? { dimension: dimensionPair(dimension) } : {}),
    ...(typeof program === 'string' ? { program } : {}),
    ...(typeof user === 'string' ? { user } : {}),
    ...(typeof ingress === 'string' ? { ingress } : {}),
  }
}

/** By default the current month (UTC). */
function periodOf(query: JsonObject, nowMs: number): { fromMs: number; toMs: number } {
  const now = new Date(nowMs)
  const { from, to } = query
  const monthMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1)
  const toMs = typeof to === 'string' ? Date.parse(to) : Math.max(nowMs, monthMs + 1)
  const fromMs = typeof from === 'string' ? Date.parse(from) : Math.min(monthMs, toMs - 1)
  if (fromMs < toMs) return { fromMs, toMs }
  throw invalid('to', 'The field "to" must be later than "from".', 'Send a later time.')
}

/** Groups of accounts, keys, models and months: each request counts under the tree at its own time. */
async function reportInTree(
  { store }: AdminServices,
  { token, query }: AdminRequest,
  period: Pick<ReportQuery, 'by' | 'fromMs' | 'toMs'>,
): Promise<Report> {
  const own = token.accountId === null ? null : await store.accountById(token.accountId)
  const { account } = query
  const selected =
    typeof account === 'string'
      ? { account, tree: query['tree'] === 'true' }
      : { account: own?.id ?? token.accountId, tree: true }
  return accountReport(store, { ...period, ...selected })
}

function groupingOf(by: string): Grouping {
  // The parameter's type has checked it.
  return by as Grouping
}

/** By day, or by what only entries have. */
async function sumsOf(
  services: AdminServices,
  period: Pick<ReportQuery, 'fromMs' | 'toMs'>,
  query: GroupsQuery,
): Promise<Report> {
  const usage = await usageOf(services, { ...period, by: 'day' })
  return reportOf(await groupsIn(services, usage, query), query.group)
}

/** The statement of a month; that of a purged account for a token without an account. */
async function statement(services: AdminServices, request: AdminRequest): Promise<AdminReply> {
  const { store } = services
  const { token, path, query, isCsv } = request
  const by = typeof query['by'] === 'string' && isStatementGrouping(query['by']) ? query['by'] : null
  const { name = '', month = '' } = path
  if (monthRange(month) === null) {
    throw invalid('month', `"${month.slice(0, 20)}" is no month.`, 'Send one such as 2026-11.')
  }
  const account = await store.accountByName(name)
  const isSeen = account === null ? token.accountId === null : await sees(services, token, account)
  if (!isSeen) throw notFound()
  const result = await statementOf(store, name, month, by)
  if (account === null && result.lines.length === 0) throw notFound()
  if (isCsv) {
    return { csv: once(statementCsv(result, by)), fileName: `statement-${name}-${month}` }
  }
  const { lines, total } = result
  const json = {
    account: name,
    month,
    ...(by !== null && { by }),
    lines: lines.map((line) => ({ ...line })),
    total: { ...total },
  }
  return { status: 200, json }
}

async function requests(services: AdminServices, request: AdminRequest): Promise<AdminReply> {
  const { store } = services
  const { query, token, isCsv } = request
  const accounts = await accountsOf(services, token, query)
  const filter: EntryFilter = Object.fromEntries(
    Object.entries(SAME).flatMap(([name, member]) => {
      return query[name] === undefined ? [] : [[member, query[name]]]
    }),
  )
  const { from, to } = query
  const [only = null, ...others] = accounts ?? []
  const span = {
    ...filter,
    ...valueFilter(query),
    accountId: others.length === 0 ? only : null,
    ...(typeof from === 'string' ? { fromMs: Date.parse(from) } : {}),
    ...(typeof to === 'string' ? { toMs: Date.parse(to) } : {}),
  }
  const read = async (start: string | null, most: number) => {
    const { entries, next } = await store.ledger.entries({ ...span, after: start, limit: most })
    const own = entries.filter(({ accountId }) => accounts?.has(accountId) !== false)
    return { items: own, next }
  }
  const { after, limit } = pageOf(request)
  if (isCsv && query['limit'] === undefined && query['cursor'] === undefined) {
    return { csv: csvOfAll(read), fileName: datedName('requests', services.now()) }
  }
  const { items, next } = await filled(read, after, limit)
  if (isCsv) {
    const text = [csvHeader(), ...items.map(csvLine), ''].join('\r\n')
    const fileName = datedName('requests', services.now())
    return { csv: once(text), fileName, next: nextQuery(request, next) }
  }
  const rows = items.map((entry) => {
    return Object.fromEntries(COLUMNS.map(([name, , cell]) => [name, cell(entry)]))
  })
  return { status: 200, json: { items: rows, next_cursor: next === null ? null : cursorOf(next) } }
}

/** Reads one page of a list from its start or a cursor. */
export type ReadPage<Item> = (
  after: string | null,
  limit: number,
) => Promise<{ readonly items: readonly Item[]; readonly next: string | null }>

/** A full page of a list whose pages may be short because items are left out. */
export async function filled<Item>(
  read: ReadPage<Item>,
  after: string | null,
  limit: number,
): Promise<{ items: Item[]; next: string | null }> {
  const items: Item[] = []
  for (let next = after; ;) {
    const page = await read(next, limit - items.length)
    items.push(...page.items)
    next = page.next
    if (next === null || items.length >= limit) return { items, next }
    await adminTurns.next()
  }
}

/** More lines are not in one file. */
const MAX_LINES = 1_000_000

async function* csvOfAll(read: ReadPage<LedgerEntry>): AsyncGenerator<string> {
  yield `${csvHeader()}\r\n`
  let after: string | null = null
  for (let count = 0; count < MAX_LINES;) {
    const { items, next }: Awaited<ReturnType<typeof read>> = await read(after, 500)
    yield items.map((entry) => `${csvLine(entry)}\r\n`).join('')
    count += items.length
    if (next === null) return
    after = next
    await adminTurns.next()
  }
}

async function* once(text: string): AsyncGenerator<string> {
  await Promise.resolve()
  yield text
}

/** The query of the next page; null after the last one. */
export function nextQuery({ req }: AdminRequest, next: string | null): string | null {
  if (next === null) return null
  const query = new URLSearchParams((req.url ?? '').split('?', 2)[1] ?? '')
  query.set('cursor', cursorOf(next))
  return query.toString()
}

/** A CSV reply of rows with these names; values that are no text or number are JSON. */
export function csvReply(
  fileName: string,
  names: readonly string[],
  rows: readonly WrittenObject[],
  next: string | null = null,
): AdminReply {
  const lines = rows.map((row) => names.map((name) => cellOf(row[name])))
  return { csv: once(csvText([names, ...lines])), fileName, next }
}

function cellOf(value: WrittenJson | undefined): CsvCell {
  return typeof value === 'object' && value !== null ? jsonText(value) : (value ?? null)
}
